"""Edge weights: what they may be, how repeated edges add up, and where they must agree."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gcnii.analysis.degree import degrees
from gcnii.data.converters.join import join
from gcnii.errors import GraphError
from gcnii.graph import Graph
from gcnii.graph.arrays import merged
from gcnii.graph.weights import merged_weighted, skew, weighed

PATH = {"X": np.eye(3), "edges": [[0, 1], [1, 2]]}
TWO_WAYS = {"X": np.eye(3), "edges": [[0, 1, 0, 1], [1, 0, 1, 2]]}


def test_weights_are_frozen_float64_and_a_copy():
    own = np.array([1, 2])
    graph = Graph(**PATH, weights=own)
    own[0] = 7
    assert (graph.weights.tolist(), graph.weights.dtype) == ([1.0, 2.0], np.float64)
    with pytest.raises(ValueError, match="read-only"):
        graph.weights[0] = 7


def test_weights_may_be_a_tensor():
    graph = Graph(X=np.eye(3), edges=[[0, 1], [1, 2]], weights=torch.tensor([0.5, 2.0]))
    assert graph.weights.tolist() == [0.5, 2.0]


def test_a_graph_says_that_it_is_weighted():
    assert repr(Graph(**PATH, weights=[1, 2])) == (
        "Graph(graph: 3 nodes, 2 undirected weighted edges, 3 features, 0 classes)"
    )
    assert "weighted" not in repr(Graph(**PATH))


def test_the_fingerprint_is_of_the_weights_too_and_unchanged_without():
    graph, other = (Graph(**PATH, weights=weights) for weights in ([1, 2], [1, 3]))
    assert len({graph.fingerprint, other.fingerprint, Graph(**PATH).fingerprint}) == 3
    assert replace(graph, weights=None).fingerprint == Graph(**PATH).fingerprint
    assert Graph(**PATH).fingerprint == (
        "57b8f1dd0ee1247cda04b0071fde3e86e32f3086e9fa625a4b3e356b9dbebb44"
    )


def test_an_edge_of_weight_0_is_no_edge():
    graph = Graph(**PATH, weights=[0, 2])
    assert (graph.m, graph.edges.tolist(), graph.weights.tolist()) == (1, [[1], [2]], [2])
    assert degrees(graph).tolist() == [0, 1, 1]


def test_degrees_count_neighbours_and_not_their_weights():
    assert degrees(Graph(**PATH, weights=[0.1, 9])).tolist() == [1, 2, 1]


def test_a_graph_without_edges_has_no_weights_to_give():
    assert Graph(X=np.eye(3), edges=np.zeros((2, 0)), weights=[]).weights.tolist() == []


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([1], "one number per edge, 2 in all, got shape (1,)"),
        ([[1, 2]], "one number per edge, 2 in all, got shape (1, 2)"),
        (["a", "b"], "weights must hold numbers, got <U1"),
        ([1, -2], "edge 1, from 1 to 2, has the weight -2; a weight must be 0 (no edge) or a"),
        ([np.nan, 1], "edge 0, from 0 to 1, has the weight nan; a weight must be"),
        ([1, np.inf], "edge 1, from 1 to 2, has the weight inf; a weight must be"),
        ([1, 1e31], "edge 1, from 1 to 2, has the weight 1e+31; a weight must be"),
        ([1e-31, 1], "has the weight 1e-31; a weight must be 0 (no edge) or a number from 1e-30"),
    ],
)
def test_weights_that_cannot_be_used_are_refused_with_their_edge(weights, sentence):
    with pytest.raises(GraphError) as error:
        Graph(**PATH, weights=weights)
    assert sentence in str(error.value)


def test_a_refused_weight_names_its_nodes_if_they_have_names():
    with pytest.raises(GraphError, match="edge 1, from 'b' to 'c', has the weight -1"):
        Graph(**PATH, weights=[1, -1], nodes="abc")


def test_the_two_directions_of_an_undirected_edge_must_agree_in_their_sums():
    assert Graph(**TWO_WAYS, weights=[1, 3, 2, 1]).m == 2  # 1 + 2 one way, 3 the other
    with pytest.raises(GraphError) as error:
        Graph(**TWO_WAYS, weights=[1, 2.5, 2, 1], nodes="abc")
    assert str(error.value).startswith(
        "the edge between 'a' and 'b' has the weight 3 in one direction and 2.5 in the other; "
    )
    with pytest.raises(GraphError, match="between 0 and 1 has the weight 3 in one"):
        Graph(**TWO_WAYS, weights=[1, 0, 2, 1])
    assert Graph(**TWO_WAYS, weights=[1, 2.5, 2, 1], directed=True).m == 3


def test_small_weights_must_agree_as_closely_as_large_ones():
    two = {"X": np.eye(2), "edges": [[0, 1], [1, 0]]}
    with pytest.raises(GraphError, match="has the weight 1e-12 in one direction and 2e-12"):
        Graph(**two, weights=[1e-12, 2e-12])
    assert Graph(**two, weights=[0.1 + 0.2, 0.3]).m == 1


@pytest.mark.parametrize("directed", [False, True])
def test_merged_edges_keep_the_sum_of_their_weights(directed):
    rng = np.random.default_rng(0)
    edges, weights = rng.integers(0, 9, (2, 60)), rng.integers(0, 4, 60)
    if not directed:
        edges = np.sort(edges, 0)
    A = np.zeros((9, 9))
    np.add.at(A, tuple(edges), weights)
    found, total = merged_weighted(edges, weights, directed=directed)
    assert total.tolist() == A[tuple(found)].tolist()
    assert found.tolist() == merged(edges[:, A[tuple(edges)] > 0], directed=directed).tolist()


def test_merging_counts_an_edge_listed_in_both_directions_once():
    edges, weights = merged_weighted(np.array([[2, 1, 1, 0], [1, 2, 1, 1]]), [3, 3, 1, 0])
    assert (edges.tolist(), weights.tolist()) == ([[1, 1], [1, 2]], [1, 3])
    with pytest.raises(GraphError, match="between 'b' and 'c' has the weight 4"):
        merged_weighted(np.array([[2, 1], [1, 2]]), [3, 4], nodes=("a", "b", "c"))
    with pytest.raises(GraphError, match="edge 0, from 2 to 1, has the weight -3"):
        merged_weighted(np.array([[2, 1], [1, 2]]), [-3, 4], directed=True)


@pytest.mark.parametrize(
    ("duplicates", "both", "one_way"),
    [("add", 17, 10), ("mean", 17 / 3, 5), ("max", 7, 6), ("first", 4, 4)],
)
def test_all_weights_between_two_nodes_become_what_is_asked(duplicates, both, one_way):
    edges, weights = np.array([[2, 0, 1, 0], [2, 1, 0, 1]]), [1, 4, 7, 6]
    how = {"duplicates": duplicates}
    found = merged_weighted(edges, weights, **how)
    assert (found[0].tolist(), found[1].tolist()) == ([[0, 2], [1, 2]], [both, 1])
    found = merged_weighted(edges, weights, directed=True, **how)
    assert (found[0].tolist(), found[1].tolist()) == ([[0, 1, 2], [1, 0, 2]], [one_way, 7, 1])
    assert merged_weighted(edges[:, :0], [], **how)[1].tolist() == []


def test_joined_graphs_keep_their_weights_and_must_all_have_some():
    one = Graph(**PATH, y=[0, 1, 1], weights=[1, 2], name="roads")
    assert join([one, one], ["train", "val"]).weights.tolist() == [1, 2, 1, 2]
    sentence = "the edges of roads have weights but those of paths have none"
    with pytest.raises(GraphError, match=sentence):
        join([replace(one, weights=None, name="paths"), one], ["train", "val"])


def test_columns_in_another_order_leave_the_weights():
    graph = Graph(**PATH, features="abc", weights=[1, 2])
    assert graph.with_features("cba").weights.tolist() == [1, 2]


def test_typical_weights_do_not_depend_on_how_edges_are_listed():
    edges = np.array([[0, 1, 2, 3], [1, 2, 3, 3]])
    once = Graph(X=np.eye(4), edges=edges, weights=[3.0, 1.0, 2.0, 9.0])
    both = Graph(
        X=np.eye(4),
        edges=np.concatenate([edges, edges[::-1, :3], [[0], [1]], [[1], [0]]], 1),
        weights=[2.0, 1.0, 2.0, 9.0, 2.0, 1.0, 2.0, 1.0, 1.0],
    )
    assert once.typical_weights.tolist() == both.typical_weights.tolist() == [1, 2, 3]


def test_ranks_lie_between_0_and_2_and_equal_weights_have_equal_ones():
    typical = np.array([1.0, 2.0, 2.0, 8.0])
    found = weighed(np.array([0.5, 1.0, 2.0, 8.0, 9.0]), "rank", typical)
    assert found.tolist() == [0.25, 0.25, 1.0, 1.75, 2.0]


def test_without_edges_a_typical_weight_is_1():
    graph = Graph(X=np.eye(2), edges=[[0], [1]], weights=[0.0])
    assert (graph.m, graph.typical_weights.tolist()) == (0, [1])


def test_the_skew_is_the_share_of_the_heaviest_hundredth():
    assert skew(np.ones(10)) == pytest.approx(0.01)
    assert skew(np.sort(np.append(np.ones(99), 99.0))) == pytest.approx(0.5)
    assert skew(np.zeros(0)) == 0
