"""The page of a run in Chromium: at two widths, in light and dark, with names that want to run."""

import pytest
from support import chromium
from support.run_pages import HOSTILE, a_graph, trained

from gcnii.inference.page import write_page

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),  # what `evaluate` has to warn of
    pytest.mark.parametrize(("width", "scheme"), chromium.screens()),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "run.html"
    graph = a_graph(names=HOSTILE, k=7, unknown=6)
    assert write_page(trained(graph, seeds=range(2)), path, graph, "cpu") == path
    assert [one.name for one in path.parent.iterdir()] == ["run.html"]
    return path.as_uri()


@pytest.fixture
def tab(width, scheme, browser, address):
    with chromium.tab_of(browser, address, color_scheme=scheme) as tab:
        chromium.resize(tab, width)
        tab.width = width
        yield tab


def test_it_fits_asks_for_nothing_and_runs_no_name(tab):
    tab.wait_for_timeout(100)
    assert tab.evaluate("document.scrollingElement.scrollWidth") <= tab.width
    assert tab.asked == tab.heard == tab.dialogs == []
    assert tab.locator("img, main style, main script").count() == 0
    assert HOSTILE[0] in tab.inner_text("h1")
    assert tab.is_visible("#scores table")


def test_every_word_stands_out_from_its_ground(tab):
    texts = "p, dt, dd, td, th, li, figcaption, a, code, h1, h2, h3, .ends"
    assert min(tab.eval_on_selector_all(texts, chromium.CONTRAST)) >= 4.5


def test_no_table_or_card_reaches_beyond_the_screen(tab):
    ends = "all => all.map(one => one.getBoundingClientRect().right)"
    assert max(tab.eval_on_selector_all(".edge, .card, figure, .settings", ends)) <= tab.width


def test_a_shadow_shows_that_a_table_goes_on(tab):
    tab.wait_for_timeout(100)
    more = tab.locator("#classes .more-right").count()
    assert more == (1 if tab.width == 400 else 0)


def test_figures_need_no_scrolling(tab):
    wider = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
    assert tab.eval_on_selector_all("figure, .drawing", wider) == 0
    assert tab.locator("figure svg").count() == 4
