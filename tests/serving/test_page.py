"""The page at /, in a real browser."""

import threading

import pytest
from support import chromium
from support.run_pages import HOSTILE, a_graph, trained

from gcnii.serving.served import Served
from gcnii.serving.server import Place


def ask(tab, node):
    tab.fill("#node", node)
    tab.press("#node", "Enter")


@pytest.mark.parametrize(("width", "scheme"), chromium.screens())
def test_who_types_an_id_sees_label_probability_and_why(browser, client, width, scheme):
    with chromium.tab_of(browser, client.address, color_scheme=scheme) as tab:
        chromium.resize(tab, width, 700)
        ask(tab, "a 5")
        tab.wait_for_selector("#nodes:visible")
        answer = client.ask("/predict", {"ids": ["a 5"]})[1]["answers"][0]
        assert tab.inner_text("#label") == answer["label"]
        assert f"probability {answer['probability']:.3f}" in tab.inner_text("#how")
        assert "a 5 is predicted as" in tab.inner_text("#why")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert min(tab.eval_on_selector_all("p:visible, td, h1", chromium.CONTRAST)) > 4.5
        assert tab.heard == []
        own = {client.address + path for path in ("/model", "/predict", "/explain")}
        assert {*tab.asked} <= own


def test_an_id_that_is_unknown_gets_the_sentence_and_nothing_of_the_last_answer(browser, client):
    with chromium.tab_of(browser, client.address) as tab:
        ask(tab, "a 5")
        tab.wait_for_selector("#nodes:visible")
        ask(tab, "b 5")
        tab.wait_for_selector("#error:visible")
        assert "a has no node 'b 5'" in tab.inner_text("#error")
        assert not tab.is_visible("#answer")


SEEN = """() => {
    window.seen = [];
    const note = () => window.seen.push(document.getElementById("why").textContent);
    new MutationObserver(note).observe(document.getElementById("why"), {childList: true});
}"""


def test_an_explanation_that_comes_late_is_not_shown_with_the_next_answer(
    browser, starting, served, monkeypatch
):
    first, explanation = threading.Event(), type(served).explanation

    def late(self, node, *asked):
        assert first.wait(60)
        return explanation(self, node, *asked)

    monkeypatch.setattr(type(served), "explanation", late)
    with starting(served) as client, chromium.tab_of(browser, client.address) as tab:
        tab.evaluate(SEEN)
        for node in ("a 5", "a 6"):
            ask(tab, node)
            tab.wait_for_selector("#label:visible")
        first.set()
        tab.wait_for_selector("#nodes:visible")
        assert "a 6 is predicted as" in tab.inner_text("#why")
        assert not any("a 5 is predicted" in text for text in tab.evaluate("window.seen"))


def test_where_a_token_is_demanded_the_page_asks_for_it(browser, served, starting):
    token = "0123456789abcdef"
    with (
        starting(served, Place(port=0, token=token)) as client,
        chromium.tab_of(browser, client.address) as tab,
    ):
        tab.wait_for_selector("#token:visible")
        tab.fill("#token", token)
        ask(tab, "a 5")
        tab.wait_for_selector("#nodes:visible")
        assert tab.inner_text("#title") == "a"


def test_names_that_want_to_run_are_shown_and_do_not(browser, starting):
    graph = a_graph(names=HOSTILE)
    served = Served.of(trained(graph, "gcn"), graph, "hostile", device="cpu")
    with starting(served) as client, chromium.tab_of(browser, client.address) as tab:
        ask(tab, graph.nodes[0])
        tab.wait_for_selector("#nodes:visible")
        assert tab.inner_text("#title") == HOSTILE[0]
        assert (tab.dialogs, tab.heard) == ([], [])
