"""Sets of classes with a promised coverage."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gcnii import data, fit, open_bundle, stratified_split
from gcnii.errors import InputError
from gcnii.inference import label_table
from gcnii.inference.predict import halves
from gcnii.targets.target import conformal_sets

SMALL = {"layers": 2, "width": 8, "epochs": 20, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    one = data.load("csbm", n=400, degree=6, labels_per_class=10)
    return replace(one, classes=("cat", "a;b"), nodes=tuple(f"n{i}" for i in range(400)))


@pytest.fixture(scope="module")
def result(graph):
    return fit(graph, seeds=[0], **SMALL)


def test_halves_share_no_node_and_leave_none_out(graph):
    val = graph.splits[0].val
    first, second = halves(val)
    assert not (first & second).any()
    assert np.array_equal(first | second, val)
    assert abs(first.sum() - second.sum()) <= 1


def test_one_half_sets_the_temperature_and_the_other_the_bound(graph, result):
    import torch

    first, second = halves(graph.splits[0].val)
    scores, y = result.scores(graph, "cpu"), graph.labels
    T = result.target.best_temperature(scores[first], y[first])
    P = result.target.answers(torch.from_numpy(scores / T))
    wanted = conformal_sets(P, P[second], y[second], 0.8)
    assert np.array_equal(result.predict_sets(coverage=0.8, device="cpu"), wanted)


def test_sets_grow_with_the_coverage_and_hold_the_truth_about_as_often(graph, result):
    test, rows = graph.splits[0].test, np.arange(graph.n)
    small, large = (result.predict_sets(graph, c, "cpu") for c in (0.6, 0.95))
    assert (small <= large).all()
    assert small.sum() < large.sum()
    assert large[rows, graph.labels][test].mean() > 0.88


def test_an_opened_bundle_gives_the_same_sets(graph, result, tmp_path):
    opened = open_bundle(result.save(tmp_path / "bundle"))
    wanted = result.predict_sets(coverage=0.9, device="cpu", kind="aps")
    assert np.array_equal(opened.predict_sets(graph, 0.9, "cpu", kind="aps"), wanted)


def test_a_bundle_of_a_graph_made_in_python_needs_it(graph, result, tmp_path):
    opened = open_bundle(
        replace(result, origin=replace(result.origin, source="")).save(tmp_path / "b")
    )
    with pytest.raises(InputError, match="trained on a graph made in Python"):
        opened.predict_sets(coverage=0.9)


def test_the_table_has_a_column_of_sets(graph, result):
    table = label_table(result, graph, "cpu", coverage=0.95)
    sets = result.predict_sets(graph, 0.95, "cpu")
    names = {(True, True): 'cat;"a;b"', (True, False): "cat", (False, True): '"a;b"'}
    assert list(table["set"]) == [names.get(tuple(row), "") for row in sets.tolist()]
    assert "set" not in label_table(result, graph, "cpu")


def test_new_nodes_get_sets_by_the_validation_nodes_of_the_training(graph):
    features = {str(i): [0.1, -0.1] for i in range(graph.d)}
    nodes = pd.DataFrame({"id": ["new1", "new2"], **features})
    edges = pd.DataFrame({"source": ["new1", "new2"], "target": ["n0", "n1"]})
    named = replace(graph, features=tuple(map(str, range(graph.d))))
    result = fit(named, seeds=[0], **SMALL)
    table = result.predict_new(nodes, edges, named, "cpu", coverage=0.9)
    assert list(table["node"]) == ["new1", "new2"]
    assert table["set"].map(bool).all()


def test_too_few_validation_nodes_are_refused(graph):
    split = graph.splits[0]
    val = split.val & (np.cumsum(split.val) <= 12)
    few = replace(graph, splits=(replace(split, val=val),))
    result = fit(few, seeds=[0], **SMALL)
    with pytest.raises(InputError, match=r"coverage 0.9 need 18 validation nodes or more"):
        result.predict_sets(coverage=0.9)


def test_several_labels_per_node_have_no_sets(graph):
    many = replace(graph, y=np.stack([graph.labels, 1 - graph.labels], 1))
    result = fit(many, seeds=[0], **SMALL)
    with pytest.raises(InputError, match="sets are of one true class"):
        result.predict_sets(coverage=0.9)


def test_a_changed_training_graph_is_refused(graph, result, tmp_path):
    opened = open_bundle(result.save(tmp_path / "bundle"))
    other = replace(graph, splits=(stratified_split(graph.labels, seed=3),))
    opened = replace(opened, trained_on=other)
    with pytest.raises(InputError, match="has changed since then; restore it"):
        opened.predict_sets(coverage=0.9)
