"""What a graph is, and what it refuses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from gcnii.data.converters.join import join
from gcnii.errors import DataError, GraphError
from gcnii.graph import Graph, Split

TRIANGLE = {"X": np.eye(3), "edges": [[0, 1, 2], [1, 2, 0]], "y": [0, 1, 1]}


def split(train=(1, 0, 0), val=(0, 1, 0), test=(0, 0, 1)):
    train, val, test = map(np.asanyarray, (train, val, test))
    return Split(train=train, val=val, test=test)


def test_a_graph_counts_its_nodes_edges_features_and_classes():
    graph = Graph(**TRIANGLE)
    assert (graph.n, graph.m, graph.d, graph.k) == (3, 3, 3, 2)


def test_an_edge_given_in_both_directions_or_twice_counts_once():
    graph = Graph(X=np.eye(3), edges=[[0, 1, 0, 2], [1, 0, 1, 2]])
    assert graph.m == 1
    assert Graph(X=np.eye(3), edges=graph.edges, directed=True).m == 2


def test_a_graph_without_edges_is_a_graph():
    assert Graph(X=np.eye(3), edges=np.zeros((2, 0))).m == 0


def test_a_name_and_a_source_are_text_as_files_have_them():
    graph = Graph(**TRIANGLE, name=5, source=Path("here"))
    assert (graph.name, graph.source) == ("5", "here")


def test_a_graph_is_frozen():
    graph = Graph(**TRIANGLE)
    with pytest.raises(ValueError, match="read-only"):
        graph.X[0, 0] = 7
    with pytest.raises(AttributeError):
        graph.n = 7


def test_the_caller_keeps_the_right_to_change_its_own_arrays():
    X = np.eye(3)
    graph = Graph(X=X, edges=[[0], [1]])
    X[0, 0] = 7
    assert graph.X[0, 0] == 1


def test_sparse_features_stay_sparse():
    assert sp.issparse(Graph(**TRIANGLE | {"X": sp.eye_array(3, format="coo")}).X)


def test_several_labels_per_node_are_zeros_and_ones():
    graph = Graph(**TRIANGLE | {"y": [[0, 1, 1], [1, 0, 0], [-1, -1, -1]]})
    assert graph.multilabel
    assert graph.k == 3
    assert graph.labelled.tolist() == [True, True, False]


def test_named_classes_decide_their_number():
    assert Graph(**TRIANGLE | {"classes": "abcde"}).k == 5


def test_several_graphs_are_one_block_diagonal_graph_split_by_whole_graphs():
    one = Graph(**TRIANGLE)
    both = join([one, one, one], ["train", "val", "test"])
    assert both.edges[:, 3:6].tolist() == (one.edges + 3).tolist()
    assert both.part.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert np.flatnonzero(both.splits[0].val).tolist() == [3, 4, 5]


def test_the_fingerprint_is_of_the_content_and_not_of_the_name():
    graph = Graph(**TRIANGLE)
    assert graph.fingerprint == Graph(**TRIANGLE, name="other").fingerprint
    for change in (
        {"y": [0, 0, 1]},
        {"directed": True},
        {"splits": (split(),)},
        {"edges": [[0], [1]]},
    ):
        assert graph.fingerprint != Graph(**TRIANGLE | change).fingerprint


def test_a_source_is_free_text_and_not_a_name_in_the_catalog():
    assert Graph(**TRIANGLE, source="cora").catalog_name == ""
    with pytest.raises(TypeError):
        Graph(**TRIANGLE, catalog_name="cora")


def test_a_changed_graph_loses_its_name_in_the_catalog():
    graph = Graph(**TRIANGLE)._with_origin("somewhere", "cora")
    assert (graph.source, graph.catalog_name) == ("somewhere", "cora")
    changed = replace(graph, edges=graph.edges[:, 1:])
    assert (changed.source, changed.catalog_name) == ("somewhere", "")


NAN, INF = np.eye(3), sp.csr_array(np.eye(3))
NAN[1, 2], INF.data[2] = np.nan, np.inf


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"edges": [[0, 1], [1, 7]]}, "edge 1 joins 1 and 7, but node ids go from 0 to 2"),
        ({"edges": [[0, -1], [1, 1]]}, "edge 1 joins -1 and 1, but node ids go from 0 to 2"),
        (
            {"edges": [[0, 1.5], [1, 1]]},
            "edges must hold whole numbers, got 1.5 at position (0, 1)",
        ),
        ({"edges": [["a"], ["b"]]}, "edges must hold whole numbers, got <U1"),
        ({"edges": [[0, 1, 2]]}, "edges must have shape (2, m), sources over targets, got (1, 3)"),
        ({"X": NAN}, "X must be finite, got NaN or infinity in row 1"),
        ({"X": INF}, "X must be finite, got NaN or infinity in row 2"),
        ({"X": [["a"], ["b"], ["c"]]}, "X must hold numbers, got <U1"),
        (
            {"X": np.ones((2, 3)), "edges": [[0], [1]]},
            "X has 2 rows but y has 3; both need one per node",
        ),
        (
            {"X": np.ones((0, 3))},
            "X must be a matrix with at least one node and one feature, got shape (0, 3)",
        ),
        (
            {"X": np.ones(3)},
            "X must be a matrix with at least one node and one feature, got shape (3,)",
        ),
        ({"y": [0, 1, -2]}, "labels must lie in -1…1 (-1 = unknown), got -2 at row 2 of y"),
        (
            {"y": [0, 5, 1], "classes": "ab"},
            "labels must lie in -1…1 (-1 = unknown), got 5 at row 1 of y",
        ),
        ({"y": [[0], [2], [1]]}, "labels must lie in -1…1 (-1 = unknown), got [2] at row 1 of y"),
        ({"y": [0, 0.5, 1]}, "y must hold whole numbers, got 0.5 at position (1,)"),
        ({"y": [[0, 1]] * 3, "classes": "abc"}, "y has 2 columns but 3 classes are named"),
        (
            {"y": np.array([0, 1, 2**64 - 1], np.uint64)},
            "y must hold whole numbers below 2^63, got 18446744073709551615 at position (2,)",
        ),
        (
            {"y": [0, 1, 1e300]},
            "y must hold whole numbers below 2^63, got 1e+300 at position (2,)",
        ),
        (
            {"y": np.ma.masked_less([0, 1, 1], 1)},
            "y has masked entries, which have no value; fill them first (array.filled)",
        ),
        (
            {"X": list(np.ma.masked_less(np.eye(3), 1))},
            "X has masked entries, which have no value; fill them first (array.filled)",
        ),
        (
            {"edges": [[0], [1]], "weights": np.ma.masked_less([0.5], 1)},
            "weights has masked entries, which have no value; fill them first (array.filled)",
        ),
        ({"directed": "no"}, "directed must be True or False, got 'no'"),
        ({"splits": [1]}, "splits must hold gcnii.Split, got int"),
        ({"nodes": ["a"]}, "X has 3 rows but nodes has 1; both need one per node"),
        (
            {"y": [-1, 1, 1], "splits": (split(),)},
            "split 0 uses node 0, whose label is unknown; leave it out of the masks",
        ),
        (
            {"X": np.eye(4), "y": [0] * 4, "splits": (split(),)},
            "split 0 has masks of 3 nodes, but the graph has 4",
        ),
    ],
)
def test_what_is_not_a_graph_is_refused_in_one_sentence(change, sentence):
    with pytest.raises(GraphError) as error:
        Graph(**TRIANGLE | change)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("masks", "sentence"),
    [
        (
            {"val": (1, 1, 0)},
            "the masks train and val overlap, first at row 0; put each node into one mask only",
        ),
        (
            {"test": (0, 1, 1)},
            "the masks val and test overlap, first at row 1; put each node into one mask only",
        ),
        ({"train": (0, 0, 0)}, "the train mask is empty; put at least one node into it"),
        (
            {"val": (0, 1)},
            "the masks train, val and test must have one entry per node, got lengths 3, 2 and 3",
        ),
        (
            {"val": (0, 2, 1)},
            "the val mask must be a vector of true and false, one per node, "
            "got int64 of shape (3,)",
        ),
        (
            {"val": np.ma.array([0, 1, 0], mask=[0, 0, 1])},
            "the val mask has masked entries, which have no value; fill them first (array.filled)",
        ),
    ],
)
def test_what_is_not_a_split_is_refused_in_one_sentence(masks, sentence):
    with pytest.raises(GraphError) as error:
        split(**masks)
    assert str(error.value) == sentence


def test_numbers_keep_their_precision_in_any_order_of_bytes():
    X = np.full((3, 2), 1 / 3)
    swapped = Graph(**TRIANGLE | {"X": X.astype(">f8")})
    assert swapped.X.dtype == np.float64
    assert swapped.fingerprint == Graph(**TRIANGLE | {"X": X}).fingerprint
    assert Graph(**TRIANGLE | {"X": X.astype(">f4")}).X.dtype == np.float32


def test_one_split_or_none_may_be_given():
    assert len(Graph(**TRIANGLE, splits=split()).splits) == 1
    assert Graph(**TRIANGLE, splits=None).splits == ()


def test_the_test_mask_may_be_empty():
    assert not split(test=(0, 0, 0)).test.any()


@pytest.mark.parametrize("several", [False, True])
def test_without_validation_nodes_a_fifth_of_the_training_nodes_of_each_class_validates(several):
    y = np.arange(40) % 2
    y = np.stack([y, 1 - y], 1) if several else y
    test = np.arange(40) < 10
    given = Split(train=~test, val=np.zeros(40, bool), test=test)
    graph = Graph(X=np.eye(40), edges=[[0], [1]], y=y, splits=(given,))
    (found,) = graph.splits
    assert np.array_equal(found.test, test)
    assert np.array_equal(found.train | found.val, ~test)
    assert found.val.sum() == 6
    assert several or y[found.val].sum() == 3
    assert graph.validation_is_drawn(0)
    other = Split(train=~test & (np.arange(40) < 34), val=np.arange(40) >= 34, test=test)
    assert not graph.with_splits([other]).validation_is_drawn(0)


def test_columns_can_be_put_in_another_order_by_their_names():
    graph = Graph(X=[[1, 2, 3]], edges=[[], []], features=("a", "b", "c"), name="g")
    other = graph.with_features(("c", "a", "b"))
    assert (other.X.tolist(), other.features) == ([[3, 1, 2]], ("c", "a", "b"))
    assert graph.with_features(("a", "b", "c")) is graph
    with pytest.raises(DataError, match=r"^g lacks 'd' and has 'b' among its feature columns; "):
        graph.with_features(("a", "c", "d"))


def test_feature_names_are_one_per_column_and_different():
    with pytest.raises(GraphError, match="X has 2 columns but 1 features are named"):
        Graph(X=[[1, 2]], edges=[[], []], features=("a",))
    with pytest.raises(GraphError, match="features must have different names"):
        Graph(X=[[1, 2]], edges=[[], []], features=("a", "a"))
