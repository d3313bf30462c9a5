"""Label propagation, and Correct & Smooth."""

import json
from dataclasses import replace

import numpy as np
import pytest

from gcnii import Graph, Split, data
from gcnii.errors import InputError
from gcnii.members import propagation
from gcnii.members.known import Known
from gcnii.members.propagation import CorrectAndSmooth, LabelPropagation


@pytest.fixture(scope="module")
def blocks():
    """Two classes that the graph tells apart."""
    return data.load("csbm", n=300, degree=8, homophily=0.95, signal=1.0, labels_per_class=20)


def right(P, graph):
    split = graph.splits[0]
    return (P.argmax(1) == graph.labels)[split.test].mean()


def symmetric(graph):
    A = np.zeros((graph.n, graph.n))
    weights = np.ones(graph.edges.shape[1]) if graph.weights is None else graph.weights
    for (u, v), w in zip(graph.edges.T, weights, strict=True):
        A[u, v] = A[v, u] = w
    np.fill_diagonal(A, 0)
    size = np.maximum(A.sum(1), 1e-300)
    return A / np.sqrt(size[:, None] * size)


@pytest.mark.parametrize("weighted", [False, True])
def test_labels_are_propagated_as_in_the_closed_form(blocks, weighted):
    """(1 - α) (I - α S)⁻¹ Y0, rows made to sum to 1."""
    edges = np.unique(np.sort(blocks.edges, 0), axis=1)
    weights = np.random.default_rng(0).random(edges.shape[1]) if weighted else None
    graph = replace(blocks, edges=edges, weights=weights)
    split = graph.splits[0]
    start = np.eye(graph.k)[graph.labels] * split.train[:, None]
    Y = np.linalg.solve(np.eye(graph.n) - 0.5 * symmetric(graph), start)
    P = LabelPropagation(0.5)(graph, Known.of(graph, split))
    asked = split.test & (Y.sum(1) > 0)
    np.testing.assert_allclose(P[asked], (Y / Y.sum(1, keepdims=True))[asked], atol=1e-6)


def test_directed_edges_carry_labels_both_ways():
    split = Split.of_roles(["train", "val", "test", "train"])
    y = [0, 0, 1, 1]
    one_way = Graph(X=np.ones((4, 1)), edges=[[0, 3], [1, 2]], y=y, directed=True)
    P = LabelPropagation(0.9)(one_way, Known.of(one_way, split))
    np.testing.assert_allclose(P[1:3], [[1, 0], [0, 1]])
    back = replace(one_way, edges=one_way.edges[::-1])
    np.testing.assert_allclose(LabelPropagation(0.9)(back, Known.of(back, split)), P)


def test_a_node_that_no_label_reaches_has_the_shares_of_the_training_nodes():
    split = Split.of_roles(["train", "train", "train", "test", "val"])
    graph = Graph(X=np.ones((5, 1)), edges=[[0], [1]], y=[0, 0, 1, 1, 1])
    known = Known.of(graph, split)
    np.testing.assert_allclose(LabelPropagation(0.9)(graph, known)[2:], [[2 / 3, 1 / 3]] * 3)
    elsewhere = Known.elsewhere(5, known.shares, True)
    np.testing.assert_allclose(LabelPropagation(0.9)(graph, elsewhere), [[2 / 3, 1 / 3]] * 5)


def test_a_training_node_is_answered_by_the_others():
    split = Split.of_roles(["train", "train", "train", "val"])
    graph = Graph(X=np.ones((4, 1)), edges=[[0, 0, 0], [1, 2, 3]], y=[0, 1, 1, 1])
    P = LabelPropagation(0.5)(graph, Known.of(graph, split))
    assert P[0, 1] > 0.9  # what returns over four steps is left


def test_alpha_is_chosen_by_validation_and_never_by_test_labels(blocks):
    split = blocks.splits[0]
    chosen = LabelPropagation.fit(blocks, split)
    assert chosen.alpha in propagation.ALPHAS
    hidden = replace(blocks, y=np.where(split.test, 1 - blocks.labels, blocks.labels))
    assert LabelPropagation.fit(hidden, split) == chosen
    np.testing.assert_array_equal(
        chosen(hidden, Known.of(hidden, split)), chosen(blocks, Known.of(blocks, split))
    )


@pytest.mark.parametrize("scale", [None, 1.0, 0.0])
def test_a_weak_guess_is_corrected_and_smoothed_where_neighbours_are_alike(blocks, scale):
    random = np.random.default_rng(0)
    guess = np.eye(2)[blocks.labels] * 0.2 + random.random((blocks.n, 2))
    guess /= guess.sum(1, keepdims=True)
    known = Known.of(blocks, blocks.splits[0])
    P = CorrectAndSmooth(scale=scale)(guess, blocks, known)
    np.testing.assert_allclose(P.sum(1), 1)
    assert right(P, blocks) > right(guess, blocks) + 0.15
    fitted = CorrectAndSmooth.fit(guess, blocks, blocks.splits[0])
    assert right(fitted(guess, blocks, known), blocks) > right(guess, blocks) + 0.15


def test_what_is_right_already_is_left_alone(blocks):
    sure = 0.98 * np.eye(2)[blocks.labels] + 0.01
    chosen = CorrectAndSmooth.fit(sure, blocks, blocks.splits[0])
    assert right(chosen(sure, blocks, Known.of(blocks, blocks.splits[0])), blocks) > 0.99


def test_correct_and_smooth_uses_no_label_of_validation_or_test(blocks):
    split = blocks.splits[0]
    hidden = replace(blocks, y=np.where(split.train, blocks.labels, 1 - blocks.labels))
    P = np.full((blocks.n, 2), 0.5)
    both = [CorrectAndSmooth()(P, one, Known.of(one, split)) for one in (blocks, hidden)]
    np.testing.assert_array_equal(*both)


def test_several_labels_spread_each_by_itself(blocks):
    split, y = blocks.splits[0], blocks.labels
    many = replace(blocks, y=np.stack([y, 1 - y, np.ones_like(y)], 1))
    known = Known.of(many, split)
    P = LabelPropagation(0.9)(many, known)
    reached = split.test & (np.bincount(blocks.edges.ravel(), minlength=blocks.n) > 0)
    np.testing.assert_allclose(P[reached, 2], 1)
    np.testing.assert_allclose(P[reached, 0] + P[reached, 1], 1)
    one = CorrectAndSmooth.fit(P, many, split)(P, many, known)
    assert ((one >= 0) & (one <= 1)).all()
    assert ((one[:, 0] > 0.5) == y)[split.test].mean() > 0.85


def test_numbers_are_kept_as_json_and_others_are_refused():
    for one in (LabelPropagation(0.9), CorrectAndSmooth(scale=1.0), CorrectAndSmooth()):
        assert type(one).of(json.loads(json.dumps(one.document()))) == one
    with pytest.raises(InputError, match=r"alpha must be a number in \[0, 1\], got 2"):
        LabelPropagation.of({"alpha": 2})
    with pytest.raises(InputError, match="smooth is missing"):
        CorrectAndSmooth.of({"correct": 0.5, "scale": None})
