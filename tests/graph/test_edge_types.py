"""Edges of several types: what a graph makes of them."""

from dataclasses import replace

import numpy as np
import pytest

import gcnii
from gcnii.errors import GraphError
from gcnii.graph import Graph

X = np.eye(4)
EDGES = [[0, 0, 1, 2], [1, 1, 2, 3]]


def typed(**changes: object) -> Graph:
    """A pair that is joined by edges of two types, and two more edges."""
    known = {"X": X, "edges": EDGES, "edge_types": [0, 1, 1, 0], "edge_type_names": ("a", "b")}
    return Graph(**known | changes)  # type: ignore[arg-type]


def test_a_pair_can_be_joined_by_edges_of_several_types():
    graph = typed(edges=[[0, 1, 0, 2], [1, 0, 1, 3]], edge_types=[0, 0, 1, 0])
    assert graph.m == 3, "that of type a is listed twice"
    assert "3 undirected edges of 2 types" in repr(graph)


def test_edges_of_one_type_have_none():
    one = typed(edge_types=[0] * 4, edge_type_names=("a",))
    plain = Graph(X=X, edges=EDGES)
    assert not one.typed
    assert one.fingerprint == plain.fingerprint


def test_types_and_their_names_are_part_of_the_fingerprint():
    others = {
        typed(edge_types=[0, 1, 0, 0]).fingerprint,
        typed(edge_type_names=("a", "c")).fingerprint,
        Graph(X=X, edges=EDGES).fingerprint,
    }
    assert typed().fingerprint not in others
    assert len(others) == 3


def test_weights_of_each_type_are_checked_by_themselves():
    both = typed(edges=[[0, 1], [1, 0]], edge_types=[0, 1], weights=[1, 2])
    assert both.weights is not None
    with pytest.raises(GraphError, match="the edge between 0 and 1 has the weight 1 in one"):
        typed(edges=[[0, 1], [1, 0]], edge_types=[0, 0], weights=[1, 2])


def test_an_edge_of_weight_0_takes_its_type_with_it():
    graph = typed(weights=[1, 0, 2, 3])
    assert graph.edge_types.tolist() == [0, 0, 1], "type by type"
    assert graph.edges.tolist() == [[0, 2, 1], [1, 3, 2]]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"edge_types": [0, 1]}, "edge_types must be a vector with one number per edge, 4 in all"),
        ({"edge_types": [0, 1, 2, 0]}, "edge_types must lie in 0…1, got 0…2"),
        ({"edge_type_names": ("a", "a")}, "edge_type_names must have different names"),
        ({"edge_types": None}, "edge_type_names names several types; give edge_types"),
        (
            {"edge_types": [0, 1, 2, 64], "edge_type_names": None},
            "edges are of 65 types, but at most 64 can be kept apart",
        ),
    ],
)
def test_wrong_types_are_refused(changes, error):
    with pytest.raises(GraphError, match=error):
        typed(**changes)


def test_a_saved_graph_keeps_its_types(tmp_path):
    graph = typed(weights=[1, 2, 3, 4])
    same = gcnii.load(gcnii.save(graph, tmp_path / "typed.safetensors"))
    assert same.fingerprint == graph.fingerprint
    assert same.edge_type_names == ("a", "b")


def test_joined_graphs_match_types_by_name():
    one = typed(y=[0, 1, 0, 1])
    other = replace(one, edge_types=[1, 0, 0, 0], edge_type_names=("b", "c"))
    both = gcnii.join([one, other], ["train", "test"])
    names = [both.edge_type_names[t] for t in both.edge_types]
    assert names == ["a", "b", "b", "a", "c", "b", "b", "b"]


def test_types_are_kept_when_a_joined_graph_becomes_directed():
    one = typed(y=[0, 1, 0, 1])
    both = gcnii.join([one, replace(one, directed=True)], ["train", "test"])
    assert both.m == 2 * one.m + one.m


def test_a_graph_without_types_cannot_join_one_with_types():
    plain = Graph(X=X, edges=EDGES, y=[0, 1, 0, 1], name="plain")
    with pytest.raises(GraphError, match="the edges of plain have no types but those of others"):
        gcnii.join([plain, typed(y=[0, 1, 0, 1])], ["train", "test"])
