"""The training graph: in memory after a fit, from where it was for a bundle."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.command_line import write_pets

from gcnii import data, fit, open_bundle
from gcnii.errors import DataError, InputError
from gcnii.graph import columns
from gcnii.inference.evaluate import evaluate
from gcnii.inference.evaluate import steps as evaluation_steps
from gcnii.inference.page import steps as page_steps
from gcnii.inference.page import write_page
from gcnii.inference.predict import label_table
from gcnii.inference.training_graph import is_training_graph, load_training_graph

# What is wrong with so small a training is not asked here.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SMALL = {"layers": 2, "width": 8, "epochs": 10, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    """A graph that was made in Python, so that it cannot be loaded again."""
    one = data.load("csbm", n=200, degree=6, labels_per_class=10)
    features = tuple(map(str, range(one.d)))
    nodes = tuple(f"n{i}" for i in range(one.n))
    return replace(one, source="", features=features, nodes=nodes)


@pytest.fixture(scope="module")
def result(graph):
    return fit(graph, seeds=range(2), **SMALL)


def test_a_fit_answers_every_question_about_its_own_graph(graph, result):
    new = pd.DataFrame({"id": ["new"], **{name: [0.1] for name in graph.features}})
    edges = pd.DataFrame({"source": ["new"], "target": ["n0"]})
    assert list(result.predict_new(new, edges, device="cpu")["node"]) == ["new"]
    assert result.explain(node="n0").document()["node"] == "n0"
    assert np.array_equal(result.predict_sets(device="cpu"), result.predict_sets(graph, 0.9, "cpu"))
    assert result.evaluate(device="cpu", baselines=False).nodes == graph.splits[0].test.sum()


def test_a_bundle_of_it_says_that_the_graph_is_needed(result, tmp_path):
    opened = open_bundle(result.save(tmp_path / "bundle"))
    with pytest.raises(InputError, match="trained on a graph made in Python; give it as graph="):
        opened.explain(node="n0")


@pytest.mark.parametrize("baselines", [True, False])
def test_an_evaluation_shows_each_of_its_steps(result, baselines):
    shown = []
    evaluate(result, device="cpu", baselines=baselines, show=shown.append)
    assert shown[:2] == ["seed 0", "seed 1"]
    assert len(shown) == evaluation_steps(result, baselines=baselines)


def test_a_page_shows_its_steps_node_by_node(result, tmp_path):
    shown = []
    write_page(result, tmp_path / "page.html", device="cpu", show=shown.append)
    assert sum(columns.startswith("node ") for columns in shown) > 5
    assert len(shown) <= page_steps(result)


def test_a_result_writes_its_page_and_replaces_no_other_file(result, tmp_path):
    path = result.report(tmp_path / "mine.html", device="cpu")
    assert path.read_text("utf-8").count("<h2") > 5
    result.report(path, device="cpu")  # a page gives way to a newer one
    path.write_text("mine")
    with pytest.raises(InputError, match=r"mine\.html"):
        result.report(path, device="cpu")
    assert path.read_text() == "mine"


def test_data_that_has_moved_is_asked_for_by_the_flag_and_the_argument(tmp_path):
    pets = write_pets(tmp_path / "pets")
    model = open_bundle(fit(data.load(pets), **SMALL).save(tmp_path / "bundle"))
    new = pd.DataFrame({"id": ["new"], "x0": [0.1], "x1": [0.2]})
    edges = pd.DataFrame({"source": ["new"], "target": ["pet0"]})
    moved = pets.rename(tmp_path / "moved")
    sentence = "is not at .*pets any more; say where it is with --graph \\(in Python: graph=\\)"
    with pytest.raises(DataError, match=sentence):
        model.predict_new(new, edges, device="cpu")
    pets.mkdir()
    with pytest.raises(DataError, match=r"a graph is .*; if the training graph has moved, "):
        model.evaluate(device="cpu")
    assert len(model.predict_new(new, edges, data.load(moved), "cpu")) == 1


def test_a_bundle_keeps_the_vocabulary_that_it_was_trained_with(tmp_path, monkeypatch):
    folder = write_pets(tmp_path / "pets")
    nodes = pd.read_csv(folder / "nodes.csv", dtype=str)
    nodes["about"] = ["seen in 2017", "seen in 2018"] * (len(nodes) // 2)
    nodes.to_csv(folder / "nodes.csv", index=False)
    with monkeypatch.context() as earlier:  # versions up to 1.0 had numbers among the words
        earlier.setattr(columns, "WORD", r"(?u)\b\w\w+\b")
        result = fit(data.load(folder, text=["about"]), **SMALL)
    opened = open_bundle(result.save(tmp_path / "bundle"))
    assert "about: 2017" in opened.origin.features
    assert is_training_graph(opened, load_training_graph(opened))
    assert opened.evaluate(device="cpu", baselines=False).nodes > 0


def test_renamed_classes_are_noticed(graph):
    named = replace(graph, classes=("blue", "red"))
    trained = fit(named, seeds=[0], **SMALL)
    renamed = replace(named, classes=("blue", "ugly"))
    assert renamed.fingerprint == named.fingerprint  # which older bundles rest on
    with pytest.raises(InputError, match="is not the graph that the model was trained on, or has"):
        trained.evaluate(renamed, device="cpu")
    with pytest.warns(UserWarning, match="has the classes 'ugly', which the model was not trained"):
        assert label_table(trained, renamed, "cpu")["split"].isna().all()
    assert trained.evaluate(graph, device="cpu", baselines=False).nodes  # its classes have no names
