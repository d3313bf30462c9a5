"""from_scipy: a graph of matrices, as other code already has them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

import gcnii
from gcnii.errors import GraphError, InputError
from gcnii.graph import Split

RING = np.roll(np.eye(6), 1, 1)  # 0 → 1 → … → 5 → 0
BOTH = RING + RING.T
X = np.arange(12, dtype=np.float32).reshape(6, 2)
Y = [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.coo_matrix, sp.lil_array])
def test_a_symmetric_matrix_is_an_undirected_graph_with_each_edge_once(kind):
    graph = gcnii.from_scipy(kind(BOTH), X, Y)
    assert (graph.n, graph.m, graph.directed, graph.weights) == (6, 6, False, None)
    assert graph.edges.T.tolist() == [[0, 1], [0, 5], [1, 2], [2, 3], [3, 4], [4, 5]]
    assert (graph.X == X).all()


def test_a_matrix_that_is_not_symmetric_needs_a_word_on_its_direction():
    with pytest.raises(GraphError, match="A is not symmetric; say directed=True"):
        gcnii.from_scipy(RING, X, Y)
    one_way = gcnii.from_scipy(RING, X, Y, directed=True)
    assert one_way.directed
    assert one_way.edges.T.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0]]
    once = gcnii.from_scipy(RING, X, Y, directed=False)
    assert once.fingerprint == gcnii.from_scipy(BOTH, X, Y).fingerprint


@pytest.mark.parametrize("directed", ["no", "True", 1])
def test_directed_is_true_or_false(directed):
    with pytest.raises(GraphError, match=f"directed must be True or False, got {directed!r}"):
        gcnii.from_scipy(BOTH, X, Y, directed=directed)
    assert gcnii.from_scipy(BOTH, X, Y, directed=np.False_).directed is False


def test_entries_other_than_one_are_weights_and_zeros_are_no_edges():
    A = sp.coo_array(([2.0, 2.0, 0.0, 3.0], ([0, 1, 2, 5], [1, 0, 3, 5])), (6, 6))
    graph = gcnii.from_scipy(A, X, Y)
    assert graph.edges.T.tolist() == [[0, 1], [5, 5]]
    assert graph.weights.tolist() == [2, 3]


def test_repeated_entries_add_up_as_they_do_in_scipy():
    A = sp.coo_array(([1, 1, 2], ([0, 0, 1], [1, 1, 0])), (6, 6))
    assert gcnii.from_scipy(A, X, Y).weights.tolist() == [2]


def test_weights_may_differ_by_rounding_in_the_two_directions():
    A = 0.1 * BOTH
    A[0, 1] += 1e-9
    assert gcnii.from_scipy(A, X, Y).m == 6
    A[0, 1] = 0.2
    with pytest.raises(GraphError, match="not symmetric"):
        gcnii.from_scipy(A, X, Y)


@pytest.mark.parametrize("wrong", [-1, np.nan, np.inf])
def test_weights_are_positive_and_finite(wrong):
    A = BOTH.copy()
    A[0, 1] = A[1, 0] = wrong
    with pytest.raises(GraphError, match="weight"):
        gcnii.from_scipy(A, X, Y)


def test_the_matrix_given_is_left_as_it_was():
    A = sp.csr_array(([1.0, 0.0, 1.0], ([0, 0, 1], [1, 2, 0])), (6, 6))
    gcnii.from_scipy(A, X, Y)
    assert A.nnz == 3


def test_a_sparse_x_stays_sparse():
    assert sp.issparse(gcnii.from_scipy(BOTH, sp.csc_array(X), Y).X)


@pytest.mark.parametrize(
    ("y", "ids", "classes"),
    [
        ([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], ("0", "1")),
        ([7, 7, 7, 30, 30, -1], [0, 0, 0, 1, 1, -1], ("7", "30")),
        ([2.0, 2.0, 2.0, 10.0, np.nan, -1.0], [0, 0, 0, 1, -1, -1], ("2", "10")),
        (["b", "b", "b", "a", None, ""], [1, 1, 1, 0, -1, -1], ("a", "b")),
        (["10", "10", "10", "9", np.nan, "9"], [1, 1, 1, 0, -1, 0], ("9", "10")),
        ([True, True, True, False, None, False], [1, 1, 1, 0, -1, 0], ("False", "True")),
        ([[1], [1], [1], [0], [0], [0]], [1, 1, 1, 0, 0, 0], ("0", "1")),
        (pd.Series([1, 1, 1, 2, None, 2], dtype="Int64"), [0, 0, 0, 1, -1, 1], ("1", "2")),
        (pd.Series([*"aaabb", None]).astype("category"), [0, 0, 0, 1, 1, -1], ("a", "b")),
        (np.array([1, 1, 1, 2, 2, 2], np.uint8), [0, 0, 0, 1, 1, 1], ("1", "2")),
        (np.array(list("aaabbb")), [0, 0, 0, 1, 1, 1], ("a", "b")),
        ([0, 0, 0, "b", "b", -1], [0, 0, 0, 1, 1, -1], ("0", "b")),
        ([0.0, 0.0, 0.0, "b", "b", None], [0, 0, 0, 1, 1, -1], ("0", "b")),
        ([False, False, False, "b", "b", ""], [0, 0, 0, 1, 1, -1], ("False", "b")),
        (np.ma.array([3, 3, 3, 4, 4, 5], mask=[0] * 5 + [1]), [0, 0, 0, 1, 1, -1], ("3", "4")),
        ([3, 3, 3, 4, 4, np.ma.masked], [0, 0, 0, 1, 1, -1], ("3", "4")),
        (pd.Series([1, 1, 1, 2, 2, None], dtype="Float64"), [0, 0, 0, 1, 1, -1], ("1", "2")),
    ],
)
def test_labels_are_numbers_or_texts_and_classes_are_named_after_them(y, ids, classes):
    graph = gcnii.from_scipy(BOTH, X, y)
    assert graph.y.tolist() == ids
    assert graph.classes == classes


def test_labels_can_be_numbers_of_named_classes():
    graph = gcnii.from_scipy(BOTH, X, [0, 0, 0, 2, 2, -1], classes=["a", "b", "c"])
    assert (graph.y.tolist(), graph.classes) == ([0, 0, 0, 2, 2, -1], ("a", "b", "c"))
    words = gcnii.from_scipy(BOTH, X, [*"aaacc", None], classes=["a", "b", "c"])
    assert words.y.tolist() == graph.y.tolist()
    with pytest.raises(GraphError, match="less than the 2 named classes, got 2 in row 3"):
        gcnii.from_scipy(BOTH, X, [0, 0, 0, 2, 2, -1], classes=["a", "b"])
    with pytest.raises(GraphError, match="the label 'c', which is not among the named classes"):
        gcnii.from_scipy(BOTH, X, [*"aaacc", None], classes=["a", "b"])


def test_several_labels_are_columns_of_zeros_and_ones():
    y = np.array([[1, 1], [0, 1], [0, 0], [1, 0], [1, 1], [np.nan, np.nan]])
    graph = gcnii.from_scipy(BOTH, X, y, classes=["tall", "old"])
    assert graph.multilabel
    assert graph.y[:2].tolist() == [[1, 1], [0, 1]]
    assert graph.y[5].tolist() == [-1, -1]
    assert not graph.splits[0].train[5]


def test_one_hot_labels_are_doubtful():
    with pytest.warns(UserWarning, match=r"exactly one 1.* give y\.argmax\(1\)"):
        gcnii.from_scipy(BOTH, X, np.eye(2)[Y])


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        ([0, 1], r"one label per node, 6 in all, .* got shape \(2,\)"),
        (np.zeros((6, 2, 2)), r"got shape \(6, 2, 2\)"),
        ([0.5, 1, 1, 1, 1, 1], r"whole numbers, one per class, got 0\.5 in row 0"),
        ([0, 1, -3, 1, 1, 1], r"0 or more, or -1 for unknown, got -3(\.0)? in row 2"),
        ([0, np.inf, 0, 1, 1, 1], "finite numbers"),
        (np.array([0, 1, -3, 1, 1, 1]), "got -3 in row 2"),
        ([{}, 1, 1, 1, 1, 1], r"numbers or texts, got \{\} of dict"),
        (np.zeros(6, "datetime64[D]"), "numbers or texts, got datetime64"),
        ([[0, 2], *[[0, 1]] * 5], r"0 or 1 where it has columns, got 2(\.0)? in row 0"),
        ([[0, -1], *[[0, 1]] * 5], "row 0 of y has some of its labels but not all"),
        ([["a", "b"]] * 6, "2 columns of text"),
        ([2**63, 1, 1, 1, 1, 1], r"numbers below 2\^63, got 9223372036854775808"),
        ([1e300, 1, 1, 1, 1, 1], r"numbers below 2\^63, got 1e\+300 in row 0"),
        (
            np.array([1, 2**64 - 1] * 3, np.uint64),
            r"below 2\^63, got 184467.* in row 1",
        ),
    ],
)
def test_labels_that_are_no_classes_are_refused(y, sentence):
    with pytest.raises(GraphError, match=sentence):
        gcnii.from_scipy(BOTH, X, y)


def test_without_splits_each_class_is_split_by_the_seed():
    graph = gcnii.from_scipy(BOTH, X, Y)
    split = gcnii.stratified_split(np.array(Y), 0)
    assert (graph.splits[0].train == split.train).all()
    assert gcnii.from_scipy(BOTH, X).splits == ()


def test_splits_of_none_are_drawn():
    graph = gcnii.from_scipy(BOTH, X, Y, splits=None)
    assert graph.fingerprint == gcnii.from_scipy(BOTH, X, Y).fingerprint


def test_given_splits_are_kept():
    split = Split.of_roles(["train", "val", "test", "", "", ""])
    assert gcnii.from_scipy(BOTH, X, Y, splits=split).splits == (split,)
    assert gcnii.from_scipy(BOTH, X, Y, splits=[split, split]).splits == (split, split)


@pytest.mark.parametrize(
    ("A", "features", "sentence"),
    [
        (BOTH[:5], X, r"\(6, 6\) for this X, got \(5, 6\)"),
        (sp.eye_array(5), X, r"\(6, 6\) for this X, got \(5, 5\)"),
        (BOTH.astype(complex), X, "A must hold numbers, got complex128"),
        (BOTH.astype(object), X, "A must hold numbers, got object"),
        (BOTH, X[:, 0], r"one row per node, got shape \(6,\)"),
        (BOTH, None, r"one row per node, got shape \(\)"),
        (BOTH, np.full((6, 2), np.nan), "X must be finite"),
        (BOTH, np.ma.masked_less(X, 1), "X has masked entries, which have no value; fill them"),
        (np.ma.masked_less(BOTH, 1), X, "A has masked entries, which have no value; fill them"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(A, features, sentence):
    with pytest.raises(InputError, match=sentence):
        gcnii.from_scipy(A, features, Y)


def test_names_are_kept():
    graph = gcnii.from_scipy(
        BOTH, X, Y, nodes=list("abcdef"), features=["p", "q"], name="ring", seed=3
    )
    assert (graph.nodes, graph.features, graph.name) == (tuple("abcdef"), ("p", "q"), "ring")


@pytest.mark.parametrize("field", ["A", "X"])
def test_rows_of_different_lengths_are_refused(field):
    given = {"A": np.ones((3, 3)).tolist(), "X": np.ones((3, 2)).tolist()}
    given[field][2] = [1.0]
    with pytest.raises(GraphError, match=f"{field} must be an array of numbers"):
        gcnii.from_scipy(given["A"], given["X"])


def test_tensors_with_a_gradient_are_read():
    X = torch.arange(6.0).reshape(3, 2).requires_grad_()
    graph = gcnii.from_scipy(torch.ones(3, 3), X)
    assert graph.X.tolist() == X.tolist()
    assert graph.m == 3


@pytest.mark.parametrize("kind", [">f8", object])
def test_a_sparse_matrix_that_scipy_itself_cannot_use_is_refused(kind):
    X = sp.csr_array(np.eye(3))
    X.data = X.data.astype(kind)
    with pytest.raises(GraphError, match="X must hold numbers"):
        gcnii.from_scipy(np.ones((3, 3)), X)


@pytest.mark.parametrize("field", ["nodes", "features", "splits"])
@pytest.mark.parametrize("value", [7, np.array(7), True, b"abcdef"])
def test_what_is_not_a_list_is_refused_where_one_belongs(field, value):
    with pytest.raises(GraphError, match=f"{field} must"):
        gcnii.from_scipy(np.ones((6, 6)), np.eye(6), [0, 1] * 3, **{field: value})


@pytest.mark.parametrize("classes", [3, 2.5, "ab"])
def test_classes_are_a_list_of_names(classes):
    A, X = sp.csr_array(np.eye(4)), np.eye(4)
    with pytest.raises(InputError, match="classes must be a list of names, got "):
        gcnii.from_scipy(A, X, [0, 1, 0, 1], classes=classes)
