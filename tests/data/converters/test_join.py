"""join: classes and features by name, edges as they were, or refused."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import gcnii
from gcnii.errors import GraphError
from gcnii.graph import Graph

ROLES = ("train", "val")


def pair(**fields):
    """Two nodes and an edge."""
    usual = {"X": np.eye(2), "edges": [[0], [1]], "y": [0, 1], "classes": ("ant", "bee")}
    return Graph(**usual | {"features": ("p", "q")} | fields)


def join(*graphs):
    return gcnii.join(graphs, ROLES)


def named(graph):
    return [graph.classes[c] for c in graph.y]


def test_classes_are_joined_by_name():
    graph = join(pair(), pair(classes=("bee", "cat")))
    assert graph.classes == ("ant", "bee", "cat")
    assert named(graph) == ["ant", "bee", "bee", "cat"]
    assert named(join(pair(), pair(classes=("bee", "ant")))) == ["ant", "bee", "bee", "ant"]


def test_several_labels_are_joined_by_name():
    one, other = pair(y=[[1, 0], [1, 1]]), pair(y=[[1, 0], [1, 1]], classes=("bee", "ant"))
    assert join(one, other).y.tolist() == [[1, 0], [1, 1], [0, 1], [1, 1]]


def test_features_are_joined_by_name():
    graph = join(pair(), pair(X=[[1, 2], [3, 4]], features=("q", "p")))
    assert graph.features == ("p", "q")
    assert graph.X.tolist() == [[1, 0], [0, 1], [2, 1], [4, 3]]


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"classes": None}, "classes of graph have names but those of graph have none"),
        ({"y": [[1, 0], [1, 1]]}, "can have several labels but a node of graph has one class"),
        ({"features": ("p", "r")}, "graph lacks 'q' and has 'r' among its features, unlike graph"),
        ({"features": None}, "features of graph have names but those of graph have none"),
        ({"X": np.eye(2)[:, :1], "features": ("p",)}, "graph lacks 'q' among its features"),
        ({"weights": [2.0]}, "the edges of graph have weights but those of graph have none"),
    ],
)
def test_graphs_that_cannot_be_matched_are_refused(other, sentence):
    with pytest.raises(GraphError, match=sentence):
        join(pair(), pair(**other))


def test_widths_that_differ_are_refused():
    one, other = pair(features=None), pair(X=np.ones((2, 3)), features=None)
    with pytest.raises(GraphError, match="graph has 2 features per node but graph has 3; give all"):
        join(one, other)
    several = {"y": [[1, 0], [1, 1]], "classes": None}
    with pytest.raises(GraphError, match="the graphs have 2 and 3 labels; give all of them"):
        join(pair(**several), pair(**several | {"y": np.ones((2, 3))}))
    with pytest.raises(GraphError, match="lacks the label 'cat' of another graph"):
        join(pair(y=[[1, 0], [1, 1]]), pair(y=[[1, 0], [1, 1]], classes=("ant", "cat")))


def test_a_role_that_does_not_exist_is_refused():
    with pytest.raises(GraphError, match="a role must be train, val or test, got 'tset'"):
        gcnii.join([pair(), pair(), pair()], ["train", "val", "tset"])


@pytest.mark.parametrize("weights", [None, [2.0, 3.0]])
def test_undirected_edges_stay_so_beside_directed_ones(weights):
    loop = {"edges": [[0, 1], [1, 1]], "weights": weights}
    graph = join(pair(**loop), pair(**loop, directed=True))
    A = sp.coo_array((np.ones(5) if weights is None else graph.weights, graph.edges)).toarray()
    there, own = weights or (1, 1)
    assert graph.directed
    assert A.tolist() == [[0, there, 0, 0], [there, own, 0, 0], [0, 0, 0, there], [0, 0, 0, own]]


def test_edges_listed_both_ways_are_not_doubled():
    both = pair(edges=[[0, 1], [1, 0]], weights=[2.0, 2.0])
    graph = join(both, replace(both, directed=True))
    assert graph.weights.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("given", [(3, ["train"]), ([0], ["train"]), ([], 1j)])
def test_what_is_not_a_list_of_graphs_is_refused(given):
    with pytest.raises(GraphError, match=r"must be a list|must hold gcnii\.Graph"):
        gcnii.join(*given)
