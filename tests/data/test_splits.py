"""Drawn splits have the sizes they promise, and never change."""

import numpy as np
import pytest

import gcnii
from gcnii.data import load
from gcnii.data.splits import at_least_one, per_class, rounded_up, stratified, stratified_split
from gcnii.data.splits import with_stratified_splits as redrawn

# What was measured on these graphs holds as long as they stay the same to the last bit.
DIGESTS = {
    ("digits",): "fcb3abf722c4cbd8adc7dd668c6d5d94ef4c41916c65a29815f73bfe000f100c",
    ("csbm",): "d85bfeb46507fbbddf686de66c16594d3729bfb459116f99453676f251a9ec6a",
    ("csbm", ("n", 500), ("seed", 3), ("classes", 3)): (
        "aaa505c72b2985d858d5f65bf5c4c2ef5d99e5d8a87f3ca2024a0f932e69a432"
    ),
    ("ppi-like", ("graphs", 4), ("n", 400), ("degree", 6)): (
        "71713daac1d788d7eb7f290cdd62478862e4afc9c21f9e60cb64b23051099644"
    ),
}
FOLDER = "0a282c85022a7c1e6493ba71ae6da2c28fdd29dd30edb1366a89aebb0d0c6622"
TEXAS = "5b716ac1637aed49df3b597dbcd8281a33e5e2fa3854b9fffca5fb86c145c895"
Y = np.array([0, 1] * 10 + [-1] * 3)


def counts(split, y=Y):
    """(3, classes) the number of nodes of each class in each mask."""
    return [np.bincount(y[mask]).tolist() for mask in (split.train, split.val, split.test)]


@pytest.mark.parametrize(("given", "digest"), DIGESTS.items())
def test_a_generated_graph_is_the_same_to_the_last_bit(given, digest):
    name, *parameters = given
    assert load(name, **dict(parameters)).fingerprint == digest


def test_a_folders_split_is_the_same_to_the_last_bit(tmp_path):
    nodes = [f"n{i},{i % 7},{'abc'[i * i % 3] if i % 11 else ''}" for i in range(97)]
    edges = [f"n{i},n{(i * 5 + 1) % 97}" for i in range(97)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,x,label", *nodes]))
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *edges]))
    assert load(tmp_path).fingerprint == FOLDER


def test_the_stratified_splits_of_texas_are_the_same_to_the_last_bit(real_data):
    assert redrawn(real_data("texas")).fingerprint == TEXAS


def test_redrawn_splits_leave_a_graph_the_catalogs(real_data):
    graph = redrawn(real_data("texas"), 2)
    assert (graph.catalog_name, graph.source, len(graph.splits)) == ("texas", "texas", 2)


@pytest.mark.parametrize("sizes", [rounded_up, at_least_one])
def test_a_stratified_split_takes_60_20_20_of_each_class_and_no_unlabelled_node(sizes):
    split = stratified(Y, np.random.default_rng(0), sizes)
    assert counts(split) == [[6, 6], [2, 2], [2, 2]]
    assert not (split.train | split.val | split.test)[Y < 0].any()


@pytest.mark.parametrize(
    ("members", "up", "one"),
    [(1, (1, 0), (1, 0)), (2, (2, 0), (1, 0)), (3, (2, 1), (2, 1)), (4, (3, 1), (2, 1))],
)
def test_small_classes_are_rounded_in_two_ways(members, up, one):
    assert (rounded_up(members), at_least_one(members)) == (up, one)


def test_a_split_per_class_takes_the_same_number_of_each_class():
    y = np.array([0] * 5 + [1] * 15)
    split = per_class(y, 3, np.random.default_rng(0), val=4)
    assert counts(split, y)[0] == [3, 3]
    assert (split.val.sum(), split.test.sum()) == (4, 10)
    assert per_class(y, 3, np.random.default_rng(0), val=4, test=2).test.sum() == 2


def masks(split):
    return [mask.tolist() for mask in (split.train, split.val, split.test)]


@pytest.mark.parametrize("seed", [0, 3])
def test_the_public_split_is_the_one_that_a_folder_gets(tmp_path, seed):
    nodes = [f"n{i},{i % 7},{'abc'[y] if y >= 0 else ''}" for i, y in enumerate(Y)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,x,label", *nodes]))
    (tmp_path / "edges.csv").write_text("source,target\nn0,n1")
    assert masks(gcnii.stratified_split(Y, seed)) == masks(load(tmp_path, seed=seed).splits[0])


def test_several_labels_per_node_are_split_without_regard_to_them():
    Y2 = np.where(np.arange(30)[:, None] < 20, np.arange(60).reshape(30, 2) % 2, -1)
    split = stratified_split(Y2)
    assert [mask.sum() for mask in (split.train, split.val, split.test)] == [12, 4, 4]
    assert not (split.train | split.val | split.test)[20:].any()
    assert masks(split) != masks(stratified_split(Y2, seed=1))


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        ([0, 0, 1, 1, -1], "every class has fewer than 3 labelled nodes, so none is left for val"),
        ([-1, -1], "every class has fewer than 3 labelled nodes"),
        ([[0, 1], [1, 1], [-1, -1]], "there are fewer than 3 labelled nodes"),
        ([0.5, 1.0], "y must be (n,) class ids or (n, k) zeros and ones, -1 if unknown, got float"),
        (["a", "b"], "y must be (n,) class ids"),
    ],
)
def test_labels_that_cannot_be_split_are_refused_in_one_sentence(y, sentence):
    with pytest.raises(gcnii.GraphError) as error:
        gcnii.stratified_split(y)
    assert sentence in str(error.value)
