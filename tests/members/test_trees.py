"""Trees on a node's own columns and on its neighbourhood."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from support import knobs

from gcnii import Graph, Split, data
from gcnii.errors import BundleError, InputError
from gcnii.members.forest import Forest, available
from gcnii.members.known import Known
from gcnii.members.trees import Encoder, Trees, neighbourhood, refusal
from gcnii.targets import SeveralLabels


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch):
    monkeypatch.setattr(knobs.ROUNDS, 10)


@pytest.fixture(scope="module")
def blocks():
    """Two classes that the graph tells apart, and the features hardly."""
    return data.load("csbm", n=300, degree=8, homophily=0.95, signal=1.0, labels_per_class=20)


def columns(graph, known):
    X = np.asarray(graph.X, np.float32)
    return neighbourhood(graph, X, known, directed=graph.directed)


def variant(graph, kind):
    edges = np.concatenate([graph.edges, graph.edges[:, :50], [[3], [3]]], 1)  # repeated; a loop
    random = np.random.default_rng(0)
    if kind == "weighted":
        u, v = np.unique(np.sort(graph.edges, 0), axis=1)
        return replace(graph, edges=np.stack([u, v]), weights=random.lognormal(0, 2, len(u)))
    return replace(graph, edges=edges, directed=kind == "directed")


@pytest.mark.parametrize("kind", ["undirected", "directed", "weighted"])
def test_a_nodes_own_label_never_enters_its_row(blocks, kind):
    graph, split = variant(blocks, kind), blocks.splits[0]
    seen = columns(graph, Known.of(graph, split))
    changed = 0
    for i in np.flatnonzero(split.train):
        y = graph.labels.copy()
        y[i] = 1 - y[i]
        other = columns(graph, Known.of(replace(graph, y=y), split))
        np.testing.assert_array_equal(other[i], seen[i])
        changed += int(np.nansum(other != seen) > np.isnan(seen).sum())
    assert changed > 30  # the label is among the columns of its neighbours


def test_labels_of_validation_and_test_nodes_are_nowhere(blocks):
    split = blocks.splits[0]
    hidden = replace(blocks, y=np.where(split.train, blocks.labels, 1 - blocks.labels))
    seen = [columns(one, Known.of(one, split)) for one in (blocks, hidden)]
    np.testing.assert_array_equal(*seen)


def test_a_row_has_means_extremes_shares_and_counts_and_nothing_of_isolated_nodes():
    # 0 – 2 – 1, 2 – 3; 4 is alone; edges have weights 1, 3, 1
    split = Split.of_roles(["train", "train", "val", "test", "test"])
    graph = Graph(
        X=[[1.0], [3.0], [5.0], [7.0], [9.0]],
        edges=[[0, 1, 3, 2], [2, 2, 2, 2]],
        y=[0, 1, 1, 0, 0],
        weights=[1.0, 3.0, 1.0, 5.0],
    )
    seen = columns(graph, Known.of(graph, split))
    mean, weight = (1 + 9 + 7) / 5, 5
    # Labels count alike on edges of any weight, and nobody else has a neighbour of node 2.
    centre = [mean, 1, 7, 5, 0.5, 0.5, 2, 0, 0, 3, weight]
    np.testing.assert_allclose(seen[2], centre, rtol=1e-6)
    # Beyond its only neighbour, node 0 finds node 1, and not itself; node 3 finds both.  Two nodes
    # of no label are added to them.
    np.testing.assert_allclose(seen[0, :7], [5, 5, 5, mean, np.nan, np.nan, 0], rtol=1e-6)
    np.testing.assert_allclose(seen[[0, 1, 3], 7:9], [[0, 1 / 3], [1 / 3, 0], [1 / 4, 1 / 4]])
    np.testing.assert_allclose(seen[4], [np.nan] * 6 + [0] + [np.nan] * 2 + [0, 0])


def test_of_directed_edges_both_ways_are_columns_of_their_own():
    split = Split.of_roles(["train", "val", "train", "test"])
    graph = Graph(
        X=[[1.0], [2.0], [4.0], [8.0]], edges=[[0, 1], [1, 2]], y=[0, 0, 1, 1], directed=True
    )
    seen = columns(graph, Known.of(graph, split))
    out, into = seen[1, -14:-7], seen[1, -7:]
    # mean, shares, labels known, neighbours; nobody else has the same neighbour
    np.testing.assert_allclose(out, [4, 0, 1, 1, 1, 0, 0])
    np.testing.assert_allclose(into, [1, 1, 0, 1, 1, 0, 0])


def test_the_labels_of_those_who_point_to_the_same_nodes_are_columns():
    split = Split.of_roles(["train", "val", "train", "test"])
    edges = [[0, 2, 3], [1, 1, 1]]  # all point to node 1
    graph = Graph(X=np.ones((4, 1)), edges=edges, y=[0, 0, 1, 1], directed=True)
    seen = columns(graph, Known.of(graph, split))
    np.testing.assert_allclose(seen[[0, 2, 3], -9:-7], [[0, 1 / 3], [1 / 3, 0], [1 / 4, 1 / 4]])
    assert np.isnan(seen[1, -9:-7]).all()


def test_trees_find_that_a_neighbours_label_decides(monkeypatch):
    """Each node has the label that its one neighbour has not; the features say nothing."""
    monkeypatch.setattr(knobs.ROUNDS, 50)
    random, n = np.random.default_rng(0), 600
    first = random.integers(0, 2, n // 2)
    y = np.stack([first, 1 - first], 1).ravel()
    roles = random.choice(["train", "val", "test"], n, p=[0.8, 0.1, 0.1])
    edges = np.arange(n).reshape(-1, 2).T
    graph = Graph(X=random.normal(size=(n, 3)), edges=edges, y=y)
    split = Split.of_roles(roles)
    known = Known.of(graph, split)
    asked = split.test & known.train[np.arange(n) ^ 1]
    for kind, low, high in (("neighbourhood", 0.99, 1), ("own", 0.3, 0.7)):
        P = Trees.fit(graph, split, columns=kind).answers(graph, known)
        assert low <= (P.argmax(1) == y)[asked].mean() <= high


def test_the_same_seed_grows_the_same_trees_on_any_number_of_threads(blocks, monkeypatch):
    monkeypatch.setattr(knobs.ROUNDS, 3)
    split = blocks.splits[0]
    one = Trees.fit(blocks, split, seed=3, threads=1).document()
    assert Trees.fit(blocks, split, seed=3, threads=2).document() == one
    assert Trees.fit(blocks, split, seed=4).document() != one


@pytest.mark.parametrize("kind", ["own", "neighbourhood"])
def test_text_brings_back_the_same_trees_to_the_last_bit(blocks, kind):
    split, X = blocks.splits[0], sp.random_array((blocks.n, 200), density=0.1, format="csr", rng=0)
    for graph in (variant(blocks, "directed"), replace(blocks, X=X)):
        grown, known = Trees.fit(graph, split, columns=kind), Known.of(graph, split)
        again = Trees.of(json.loads(json.dumps(grown.document())))
        np.testing.assert_array_equal(again.answers(graph, known), grown.answers(graph, known))
        assert again.document() == grown.document()


def test_three_classes_one_of_them_without_training_nodes(blocks):
    split = blocks.splits[0]
    y = np.where(blocks.X[:, 0] > 0, 3, blocks.labels)
    y = np.where(~split.train & (np.arange(blocks.n) % 5 == 0), 2, y)
    graph = replace(blocks, y=y)
    P = Trees.fit(graph, split).answers(graph, Known.of(graph, split))
    np.testing.assert_allclose(P.sum(1), 1)
    assert (P[:, 2] == 0).all()
    asked = split.test & (y != 2)
    assert (P.argmax(1) == y)[asked].mean() > 0.8


def test_one_class_alone_has_its_share_and_no_trees(blocks):
    graph = replace(blocks, y=np.where(blocks.splits[0].train, 1, blocks.labels))
    grown = Trees.fit(graph, blocks.splits[0])
    assert grown.forests == (None,)
    P = Trees.of(grown.document()).answers(graph, Known.of(graph, blocks.splits[0]))
    np.testing.assert_array_equal(P, [[0, 1]] * graph.n)


def test_each_of_several_labels_has_trees_of_its_own(blocks):
    split, y = blocks.splits[0], blocks.labels
    many = replace(blocks, y=np.stack([y, np.zeros_like(y), 1 - y], 1))
    grown, known = Trees.fit(many, split), Known.of(many, split)
    P = Trees.of(grown.document()).answers(many, known)
    assert (P[:, 1] == 0).all()
    assert ((P[:, [0, 2]] > 0.5) == many.labels[:, [0, 2]])[split.test].mean() > 0.85
    assert refusal(SeveralLabels(50)) == ""
    assert refusal(SeveralLabels(121)) == "trees would have to be grown for each of 121 labels"


def test_new_nodes_are_answered_by_the_same_columns(blocks):
    split = blocks.splits[0]
    grown, known = Trees.fit(blocks, split), Known.of(blocks, split)
    X = np.concatenate([blocks.X, blocks.X[:2]])
    edges = np.concatenate([blocks.edges, [[0, 0], [300, 301]]], 1)
    more = Graph(X=X, edges=edges)
    P = grown.answers(more, known)
    assert P.shape == (302, 2)
    far = ~np.isin(np.arange(300), blocks.edges[:, (blocks.edges == 0).any(0)])
    near = np.isin(blocks.edges, np.flatnonzero(~far)).any(0)
    far[blocks.edges[:, near].ravel()] = False
    np.testing.assert_array_equal(P[:300][far], grown.answers(blocks, known)[far])
    with pytest.raises(InputError, match="the trees take 5 features, but X has 6"):
        Trees.fit(replace(blocks, X=blocks.X[:, :5]), split).answers(
            replace(blocks, X=blocks.X[:, :6]), known
        )


def test_wide_features_are_reduced_and_narrow_ones_stay():
    X = sp.random_array((300, 400), density=0.05, format="csr", rng=0, dtype=np.float32)
    few = Encoder.of(X)
    assert few(X).shape == (300, 64)
    np.testing.assert_array_equal(Encoder.stored(400, few.text)(X), few(X))
    np.testing.assert_array_equal(Encoder.of(X[:, :9])(X[:, :9]), X[:, :9].toarray())


def test_a_missing_library_says_what_to_install(blocks, monkeypatch):
    assert available() == ""
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert available() == "trees need LightGBM, which is not installed; pip install lightgbm"
    with pytest.raises(InputError, match="pip install lightgbm"):
        Trees.fit(blocks, blocks.splits[0])


@pytest.fixture(scope="module")
def text():
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 4)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    settings = {"num_leaves": 4, "min_data_in_leaf": 2}
    return Forest.fit(X, y, (X, y), settings=settings, rounds=3, seed=0).text


def changed(text, line, value):
    """The text with another value in the first line of this name."""
    lines = text.split("\n")
    at = next(i for i, one in enumerate(lines) if one.startswith(f"{line}="))
    return "\n".join([*lines[:at], f"{line}={value}", *lines[at + 1 :]])


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("split_feature", "0 1 4"),
        ("split_feature", "0 -1 1"),
        ("split_feature", "0 1"),
        ("left_child", "0 0 0"),
        ("left_child", "1 2 1"),
        ("right_child", "-2 -3 -9"),
        ("leaf_value", "1 2 nan 4"),
        ("leaf_value", "1 2 1e999 4"),
        ("threshold", "a b c"),
        ("decision_type", "1 1 1"),
        ("num_leaves", "99999999999999999999"),
        ("num_leaves", "-1"),
        ("num_leaves", "5"),
        ("num_cat", "1"),
        ("is_linear", "1"),
    ],
)
def test_a_tree_that_lightgbm_would_follow_out_of_bounds_is_refused(text, line, value):
    assert Forest.of(text, 4, 3).text == text
    with pytest.raises(BundleError, match="tree 0 is not one that gcnii has written"):
        Forest.of(changed(text, line, value), 4, 3)


@pytest.mark.parametrize("damage", ["columns", "classes", "cut", "empty", "noise"])
def test_text_of_another_size_is_refused_with_a_sentence(text, damage):
    damaged = {"cut": text[: len(text) // 2], "empty": "", "noise": "x" * 999}.get(damage, text)
    wanted = {"columns": (5, 3), "classes": (4, 2)}.get(damage, (4, 3))
    with pytest.raises(BundleError, match="restore the bundle, or train again"):
        Forest.of(damaged, *wanted)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("columns", "all", "columns must be one of neighbourhood, own, got 'all'"),
        ("features", None, "features must be a whole number, got None"),
        ("features", 7, "max_feature_idx"),
        ("components", "!", "components of the trees are not numbers"),
        ("components", "AAAA", "components of the trees are not numbers"),
        ("shares", [], "trees of 0 labels cannot have 1 forests"),
        ("shares", [1.0, 0.0], "trees of 2 labels cannot have 1 forests"),
        ("shares", [0.5, -0.5], "must lie between 0 and 1"),
        ("forests", [], "trees of 2 labels cannot have 0 forests"),
        ("forests", [""], "restore the bundle"),
    ],
)
def test_a_document_that_was_changed_is_refused_with_a_sentence(blocks, key, value, sentence):
    document = Trees.fit(blocks, blocks.splits[0]).document()
    with pytest.raises(BundleError, match=sentence):
        Trees.of({**document, key: value})


def test_types_of_edges_have_columns_of_their_own():
    random, n = np.random.default_rng(0), 600
    side, edges = random.integers(0, 2, n), random.integers(0, n, (2, 4 * n))
    types = random.integers(0, 2, 4 * n)
    told = np.zeros(n)
    for u, v in edges[:, types == 0].T:
        told[[u, v]] += 2 * side[[v, u]] - 1
    roles = random.permutation(np.repeat(["train", "val", "test"], n // 3))
    about = {"X": side[:, None] + 0.0, "y": (told > 0).astype(int), "edges": edges}
    graph = Graph(**about, edge_types=types, splits=(Split.of_roles(roles),))
    alike, split = Graph(**about, splits=graph.splits), graph.splits[0]
    known = Known.of(graph, split)
    right = []
    for one in (graph, alike):
        trees = Trees.fit(one, split)
        P = trees.answers(one, known)
        right.append((P.argmax(1) == graph.labels)[split.test].mean())
        again = Trees.of(json.loads(json.dumps(trees.document())))
        np.testing.assert_array_equal(again.answers(one, known), P)
        assert ("types" in trees.document()) == one.typed
    assert right[0] > 0.9 > right[1] + 0.05
