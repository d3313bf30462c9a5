"""The page of a run: what was trained, how well, and nothing that is not its own."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from support.elements import Elements
from support.run_pages import HOSTILE, a_graph, trained

import gcnii
from gcnii.errors import InputError
from gcnii.inference.evaluate import evaluate
from gcnii.inference.page import again, draw_curves, page, write_page
from gcnii.targets.scores import percent

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # what `evaluate` has to warn of


def words(html):
    """The text of a page without its tags."""
    return unescape(re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", html)))


@pytest.fixture(scope="module")
def graph():
    return a_graph(unknown=6)


@pytest.fixture(scope="module")
def result(graph):
    return trained(graph, seeds=range(3))


@pytest.fixture(scope="module")
def evaluation(result, graph):
    return replace(evaluate(result, graph), warnings=("the sky <falls>; run",))


@pytest.fixture(scope="module")
def html(result, graph, evaluation):
    made = {"versions": {"torch": "2.9"}, "git": "abc1234", "command": "gcnii train my_graph"}
    return page(replace(result, made=made), graph, evaluation, "cpu")


def test_it_begins_with_the_score_its_interval_and_what_the_majority_gives(html, evaluation):
    (first,) = re.findall(r'<p class="takeaway">(.*?)</p>', html)
    own, usual = evaluation.scores["accuracy"], evaluation.baselines["majority"]["accuracy"]
    assert first.startswith(f"Accuracy {percent(own.mean)} % ({percent(own.low)} to ")
    assert first.endswith(f"predicting the same for every node gives {percent(usual.mean)} %.")
    assert html.index('class="takeaway"') < html.index("<nav")
    assert evaluation.graph_helps.sentence in unescape(html)


def test_it_says_what_was_trained_on_what_and_how_to_repeat_it(html):
    text = words(html)
    for part in (
        "gcnii, 2 layers, width 8",
        "made-up: 160 nodes",
        "80 train, 40 validation, 34 test, 6 unused",
        "3 (seeds 0 to 2) on split 0",
        "Trained by: gcnii train my_graph",
        "versions torch 2.9 commit abc1234",
        "gcnii.fit(graph, 'gcnii', seeds=range(0, 3), layers=2, width=8, epochs=25)",
    ):
        assert part in text
    assert len(re.findall('<div class="given"><dt>(?:layers|width|epochs)</dt>', html)) == 3


def test_what_repeats_it_loads_the_graph_as_it_was_loaded_and_trains_on_its_split():
    graph = gcnii.load("csbm", n=60, seed=1)
    result = gcnii.fit(graph, "gcn", epochs=2, seeds=[3])
    assert again(result, graph) == (
        "gcnii.fit(gcnii.load('csbm', n=60, seed=1), 'gcn', seeds=range(3, 4), epochs=2)"
    )
    several = graph.with_splits([graph.splits[0], replace(graph.splits[0])])
    result = gcnii.fit(several, "gcn", epochs=2, seeds=[0], split=1)
    assert ", 'gcn', seeds=range(0, 1), split=1, epochs=2)" in again(result, several)


def test_every_warning_of_the_evaluation_is_shown(html):
    assert "<li>The sky &lt;falls&gt;; run.</li>" in html


def test_the_confusion_matrix_has_the_counts_of_the_evaluation(html, evaluation):
    (table,) = re.findall('<table class="named confusion">(.*?)</table>', html, re.S)
    cells = re.findall(r'<td class="(?:hit|miss)-\d">(.*?)</td>', table)
    counts = [0 if cell == "·" else int(cell) for cell in cells]
    assert counts == np.ravel(evaluation.confusion).tolist()


def test_calibration_is_shown_before_and_after(html, result, graph):
    test = graph.splits[0].test
    raw = [result.alone(i).scores(graph, "cpu") for i in range(3)]
    before = np.mean([result.target.answers(one) for one in map(as_tensor, raw)], 0)
    after = result.predict_proba(graph, "cpu")
    for title, P in (("Before", before), ("After", after)):
        error = percent(result.target.calibration_error(P[test], graph.labels[test]))
        assert f"{title} calibration: error {error} %" in html
    assert "By class, the rarest first: is its mean probability its share of the nodes?" in html


def as_tensor(array):
    import torch

    return torch.from_numpy(array)


def test_a_calibration_that_made_it_worse_is_not_passed_over(graph):
    good = trained(graph)
    bad = replace(good, runs=tuple(replace(run, temperature=100.0) for run in good.runs))
    for result, worse in ((good, False), (bad, True)):
        html = page(result, graph, evaluate(result, graph, baselines=False), "cpu")
        assert ("calibration did not help" in html) == worse


def test_without_temperatures_there_is_one_diagram_and_a_word(graph):
    result = trained(graph, calibrate="none")
    html = page(result, graph, evaluate(result, graph, baselines=False), "cpu")
    assert "were not calibrated" in html
    assert html.count("Reliability, ") == 1


def test_curves_are_drawn_if_they_are_known(html, result):
    assert 'id="training"' in html
    assert "faint: 2 other runs" in html
    bare = replace(result, runs=tuple(replace(run, curve=[]) for run in result.runs))
    assert draw_curves(bare) == []


def test_one_run_of_a_graph_with_several_labels_and_no_names_has_a_page():
    graph = a_graph(n=80, several=True)
    result = trained(graph)
    html = page(result, graph, evaluate(result, graph, baselines=False), "cpu")
    assert "several a node" in html
    assert 'id="confusion"' not in html
    assert html.count('<article class="card">') == 10
    assert "<h2>Labels</h2>" in html


def test_of_many_classes_there_is_a_heat_map_and_the_most_frequent_confusions():
    graph = a_graph(n=280, k=70)
    result = trained(graph, epochs=3)
    evaluation = evaluate(result, graph, baselines=False)
    html = page(result, graph, evaluation, "cpu")
    C = np.array(evaluation.confusion)
    (heat,) = re.findall('<svg class="heat".*?</svg>', html, re.S)
    assert heat.count("<title>") == np.count_nonzero(C)
    assert 'class="named confusion"' not in html
    wrong = C - np.diag(C.diagonal())
    i, j = np.unravel_index(wrong.argmax(), wrong.shape)
    assert f"true {i}, predicted {j}: {C[i, j]} of {C[i].sum()}" in heat
    assert len(html) < 700_000


def test_where_links_cannot_be_ranked_the_page_says_why(graph):
    result = trained(graph, "mlp")
    html = page(result, graph, evaluate(result, graph, baselines=False), "cpu")
    sentence = result.explain(graph, 0, device="cpu").unranked
    assert sentence
    assert html.count(f"<dd>{sentence}</dd>") == 10


def test_hostile_names_add_no_element_and_no_attribute(html):
    evil_graph = a_graph(names=HOSTILE, unknown=6)
    result = trained(evil_graph)
    made = {"versions": {HOSTILE[0]: HOSTILE[1]}, "git": HOSTILE[2], "command": HOSTILE[0]}
    told = replace(result, made=made)
    evil = page(told, evil_graph, evaluate(result, evil_graph, baselines=False), "cpu")
    found, usual = Elements(evil), Elements(html)
    assert {*found.tags} <= {*usual.tags} | {"tspan"}
    assert not [name for name in found.names if name.startswith("on") or name == "style"]
    assert (found.tags.count("script"), found.tags.count("style")) == (1, 1)
    assert not set("\x1b\u202e") & set(evil)
    assert "\\x1b[31mred" in evil
    assert "{{ 7 * 7 }}" in evil
    assert "long " * 40 not in evil


def test_it_names_no_file_but_itself(html):
    assert not re.findall(r'(?:src|href)="(?!#|data:,)[^"]*"', html)
    assert "url(" not in html.replace("url(#", "")


def test_an_id_stands_once(html):
    names = re.findall(r'\bid="([^"]+)"', html)
    assert len(names) == len(set(names))


def test_another_graph_is_refused_and_nothing_is_written(result, tmp_path):
    with pytest.raises(InputError, match="is not the graph that the model was trained on"):
        write_page(result, tmp_path / "run.html", a_graph(n=100), "cpu")
    assert list(tmp_path.iterdir()) == []
