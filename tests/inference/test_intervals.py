"""Intervals of numbers hold the true one as often as was asked."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.amounts import diffused

import gcnii
from gcnii.data.splits import stratified_split
from gcnii.errors import InputError
from gcnii.inference.predict import label_table, unlabelled

QUICK = {"layers": 2, "width": 8, "epochs": 25, "device": "cpu"}


@pytest.fixture(scope="module")
def noisy():
    """A grid whose numbers are noisier where they are larger."""
    plain = diffused(side=40, targets=("price",), unit=10.0)
    noise = np.random.default_rng(0).normal(size=plain.y.shape)
    y = plain.y + noise * np.where(plain.y > 30, 3.0, 0.5)
    names = tuple(f"n{i}" for i in range(plain.n))
    return replace(plain, y=y, splits=(stratified_split(y, 0),), nodes=names)


@pytest.fixture(scope="module")
def result(noisy):
    return gcnii.fit(noisy, "gcnii", **QUICK)


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_the_share_of_test_nodes_in_their_interval_is_the_coverage(noisy, result, coverage):
    test = noisy.splits[0].test
    low, high = result.predict_interval(noisy, coverage)[test].T
    y = noisy.y[test, 0]
    assert np.mean((low <= y) & (y <= high)) == pytest.approx(coverage, abs=0.06)


def test_an_interval_lies_around_the_value_and_is_wider_where_values_are_noisier(noisy, result):
    ends, values = result.predict_interval(noisy), result.predict(noisy)
    np.testing.assert_allclose(ends.mean(1), values)
    width = ends[:, 1] - ends[:, 0]
    order = np.argsort(values)
    assert width[order[-200:]].mean() > 1.4 * width[order[:200]].mean()


def test_a_held_out_node_does_not_judge_itself(noisy, result):
    node = np.flatnonzero(noisy.splits[0].val)[0]
    y = noisy.y.copy()
    y[node] += 1e6
    other = gcnii.Graph(
        X=noisy.X, edges=noisy.edges, y=y, targets=noisy.targets, splits=noisy.splits
    )
    moved = replace(
        result,
        origin=replace(result.origin, fingerprint=other.fingerprint),
        trained_on=other,
        outputs=None,
    )
    ends = moved.predict_interval(other)
    assert np.median(ends[:, 1] - ends[:, 0]) < 1e3  # one of many errors sets no bound


def test_a_table_has_the_ends_beside_the_values(noisy, result):
    table = label_table(result, noisy, coverage=0.9)
    assert [*table] == [
        "node",
        "value(price)",
        "low(price)",
        "high(price)",
        "known(price)",
        "split",
    ]
    assert (table["low(price)"] < table["value(price)"]).all()
    assert len(unlabelled(table)) == 0


def test_new_nodes_have_intervals_and_unlinked_ones_those_of_their_features(noisy, result):
    nodes = pd.DataFrame({"id": ["a", "b"], "x0": [0.5, -0.5]})
    edges = pd.DataFrame({"source": ["a"], "target": ["n5"]})
    with pytest.warns(UserWarning, match="matched by position|has no edges"):
        table = result.predict_new(nodes, edges, noisy, coverage=0.9)
    assert table["basis"].tolist() == ["model", "features"]
    assert (table["high(price)"] > table["low(price)"]).all()


@pytest.mark.filterwarnings("ignore:3 nodes have no edges:UserWarning")
def test_the_interval_of_an_unlinked_node_is_around_its_answer_by_features(noisy, result):
    none = np.full((5, 1), np.nan)
    other = gcnii.Graph(X=noisy.X[:5], edges=[[0], [1]], y=none, targets=noisy.targets)
    table = label_table(result, other, coverage=0.8)
    assert table["basis"].tolist() == ["model"] * 2 + ["features"] * 3
    np.testing.assert_allclose(
        result.predict_interval(other, 0.8), table[["low(price)", "high(price)"]]
    )


def test_several_numbers_have_an_interval_each():
    graph = diffused(side=14, targets=("a", "b"))
    result = gcnii.fit(graph, "mlp", epochs=5, device="cpu")
    few = "set by 39 validation nodes: from so few, the share .* can be off by ± 0.09; label more"
    with pytest.warns(UserWarning, match=few):
        assert result.predict_interval(graph).shape == (graph.n, 2, 2)


def test_what_has_no_intervals_says_so(noisy, result):
    classes = gcnii.load("csbm", n=60)
    labels = gcnii.fit(classes, layers=2, epochs=2)
    with pytest.raises(InputError, match="intervals are of numbers, but nodes of csbm"):
        labels.predict_interval(classes)
    with pytest.raises(InputError, match="sets are for classes, but this model predicts numbers"):
        result.predict_sets(noisy)
    with pytest.raises(InputError, match=r"intervals of coverage 0\.999 need 999 validation nodes"):
        result.predict_interval(noisy, 0.999)
    with pytest.raises(InputError, match="coverage must be a number between 0 and 1"):
        result.predict_interval(noisy, 1.5)
