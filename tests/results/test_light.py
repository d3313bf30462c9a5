"""Prediction of large graphs in little memory: the numbers are those of a forward pass at once."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from support.fitting import fitting

from gcnii import data
from gcnii.data.formats.packed import save
from gcnii.graph import Graph
from gcnii.nn import MODELS
from gcnii.propagation import by_rows as parts_of_rows
from gcnii.results import result as results
from gcnii.results.fit import fit
from gcnii.train.task import LightTask

SMALL = {"layers": 3, "width": 8, "epochs": 2, "device": "cpu", "scale": "standard"}
SKELETON = [name for name, model in MODELS.items() if model.can_recompute]
PLUS = (
    {"residual": True, "row_norm": "none", "head": "last"},
    {"head": "features", "product_first": True},
    {"row_norm": "layer", "residual": True},
)
LOOPS = {"loops": "keep"}  # without them, a symmetric P is not known row by row
CASES = [(name, LOOPS) for name in SKELETON]
CASES += [("gcnii-plus", options | LOOPS) for options in PLUS]
CASES += [
    ("gcnii", {"loops": "none", "norm": "walk"}),
    ("gcnii", {"loops": "remove", "direction": "in"}),
    ("gcnii", {"precision": "float64", "scale": "rows"}),
]


@pytest.fixture(scope="module")
def graph():
    return data.load("csbm", n=200, degree=6, signal=3.0, labels_per_class=10)


@pytest.fixture
def in_blocks(monkeypatch):
    """Call it, and all graphs are large; blocks have a few rows."""

    def begin():
        monkeypatch.setattr(results, "LARGE", 0)
        monkeypatch.setattr(parts_of_rows, "ENTRIES", 100)
        monkeypatch.setattr(parts_of_rows, "NUMBERS", 30 * 8)
        used = []
        make = LightTask.of
        monkeypatch.setattr(LightTask, "of", lambda *given: used.append(given) or make(*given))
        return used

    return begin


def answers(result, graph):
    result = replace(result, outputs=None)  # as it is when a bundle was opened
    return result.scores(graph), result.embed(graph), result.predict_proba(graph)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_every_model_of_the_skeleton_predicts_the_same_in_blocks(name, options, graph, in_blocks):
    result = fit(graph, name, seeds=[0, 1], split=0, **fitting(name, SMALL) | options)
    at_once, used = answers(result, graph), in_blocks()
    for whole, found in zip(at_once, answers(result, graph), strict=True):
        assert whole.std() > 0
        np.testing.assert_allclose(found, whole, rtol=2e-6, atol=1e-7)
    assert len(used) == 3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_so_do_sparse_features_one_way_links_and_weights(graph, sparse, weighted, in_blocks):
    edges = np.unique(graph.edges, axis=1)
    weights = np.linspace(0.5, 2, edges.shape[1]) if weighted else None
    X = np.abs(graph.X) * (graph.X > 1)
    other = replace(
        graph,
        X=sp.csr_array(X) if sparse else X,
        edges=edges,
        directed=True,
        weights=weights,
    )
    result = fit(other, seeds=[0], split=0, **SMALL | {"scale": "length", "direction": "out"})
    result = replace(result, outputs=None)
    at_once, used = result.scores(other), in_blocks()
    np.testing.assert_allclose(result.scores(other), at_once, rtol=2e-6, atol=1e-7)
    assert used


def test_with_blocks_that_hold_all_rows_every_bit_is_the_same(graph, monkeypatch):
    result = fit(graph, seeds=[0], split=0, **SMALL)
    at_once = answers(result, graph)
    monkeypatch.setattr(results, "LARGE", 0)
    for whole, found in zip(at_once, answers(result, graph), strict=True):
        assert np.array_equal(whole, found)


@pytest.mark.parametrize(("name", "options"), [("gat", {}), ("gcnii", {"diffusion": "ppr"})])
def test_what_cannot_be_had_in_blocks_is_predicted_as_ever(graph, name, options, in_blocks):
    own = {"epochs": 2, "device": "cpu"} | ({"layers": 2} if name == "gcnii" else {})
    result = fit(graph, name, seeds=[0], split=0, **own | options)
    at_once, used = result.scores(graph), in_blocks()
    assert np.array_equal(result.scores(graph), at_once)
    assert not used


def test_other_features_than_those_of_the_training_are_refused(graph, in_blocks):
    result = fit(graph, seeds=[0], split=0, **SMALL)
    in_blocks()
    with pytest.raises(ValueError, match="the model was trained on"):
        result.predict(Graph(X=np.ones((9, 3)), edges=np.zeros((2, 0), np.int64)))


def test_a_packed_graph_is_predicted_from_its_file(graph, tmp_path, in_blocks):
    packed = data.load(str(save(graph, tmp_path / "graph.safetensors")))
    result = fit(graph, seeds=[0], split=0, **SMALL)
    at_once, used = result.scores(graph), in_blocks()
    found = result.scores(packed)
    np.testing.assert_allclose(found, at_once, rtol=2e-6, atol=1e-7)
    assert used
    assert np.array_equal(packed.X, graph.X)  # its pages were handed back, and are read again
    assert torch.equal(torch.tensor(packed.edges), torch.tensor(graph.edges))
