"""from_networkx: a graph of a networkx graph."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gcnii
from gcnii.errors import InputError

ROLES = ("train", "train", "val", "test")


def pets(kind=nx.Graph, **more):
    G = kind(name="pets")
    for i in range(8):
        G.add_node(i, size=i / 2, label=("cat", "dog")[i % 2], split=ROLES[i // 2], **more)
    G.add_edges_from([(0, 1), (1, 2), (7, 3)])
    return G


def test_node_attributes_are_features_labels_and_splits():
    graph = gcnii.from_networkx(pets())
    assert (graph.name, graph.n, graph.m, graph.directed) == ("pets", 8, 3, False)
    assert graph.features == ("size",)
    assert graph.X[:, 0].tolist() == [i / 2 for i in range(8)]
    assert graph.classes == ("cat", "dog")
    assert graph.nodes == tuple("01234567")
    assert graph.splits[0].val.tolist() == [role == "val" for role in np.repeat(ROLES, 2)]
    assert graph.columns is not None


def test_the_karate_club_has_no_attributes_and_each_node_is_a_feature():
    with pytest.warns(UserWarning, match="a model of such a graph cannot label new nodes"):
        graph = gcnii.from_networkx(nx.karate_club_graph(), label="club")
    assert (graph.n, graph.d, graph.m, graph.classes) == (34, 34, 78, ("Mr. Hi", "Officer"))
    assert (graph.X.toarray() == np.eye(34)).all()
    assert graph.weights.sum() == 231
    assert graph.features == graph.nodes


@pytest.mark.filterwarnings("ignore:the nodes have no attributes:UserWarning")
def test_attributes_of_roles_are_found_in_any_case():
    G = nx.path_graph(6)
    nx.set_node_attributes(G, {i: "ab"[i % 2] for i in G}, "Label")
    assert gcnii.from_networkx(G).classes == ("a", "b")


def test_a_matrix_takes_the_place_of_the_attributes():
    G, X = pets(tags=["a", "b"]), np.arange(16).reshape(8, 2)
    graph = gcnii.from_networkx(G, X=X)
    assert (graph.X == X).all()
    assert (graph.classes, graph.splits[0].train.sum()) == (("cat", "dog"), 4)
    assert graph.columns is None


def test_a_missing_attribute_is_a_missing_cell():
    G = pets()
    del G.nodes[3]["size"], G.nodes[3]["label"], G.nodes[3]["split"]
    graph = gcnii.from_networkx(G)
    assert graph.features == ("size", "size (missing)")
    assert (graph.y[3], graph.X[3, 1], graph.X[2, 1]) == (-1, 1, 0)


def test_a_digraph_is_directed():
    graph = gcnii.from_networkx(pets(nx.DiGraph))
    assert graph.directed
    assert graph.edges.T.tolist() == [[0, 1], [1, 2], [7, 3]]


def test_weights_are_used_if_all_edges_have_them():
    G = pets()
    nx.set_edge_attributes(G, 2, "weight")
    assert gcnii.from_networkx(G).weights.tolist() == [2, 2, 2]
    assert gcnii.from_networkx(G, weight=None).weights is None
    del G.edges[1, 2]["weight"]
    with pytest.raises(InputError, match="1 of 3 edges have no 'weight', first the edge from '1'"):
        gcnii.from_networkx(G)


def test_a_weight_can_have_another_name_and_must_be_there():
    G = pets()
    nx.set_edge_attributes(G, 3.5, "strength")
    assert gcnii.from_networkx(G, weight="strength").weights.tolist() == [3.5] * 3
    with pytest.raises(InputError, match="no edge has the attribute 'mass'; edges have strength"):
        gcnii.from_networkx(G, weight="mass")


def test_other_edge_attributes_are_named_as_not_used():
    G = pets()
    G.edges[0, 1]["since"] = 1999
    with pytest.warns(UserWarning, match="the edge attributes since are not used"):
        gcnii.from_networkx(G)
    assert gcnii.from_networkx(G, drop="since").m == 3


def test_the_weights_of_parallel_edges_add_up():
    G = pets(nx.MultiGraph)
    nx.set_edge_attributes(G, 2.0, "weight")
    G.add_edge(1, 0, weight=5)
    assert gcnii.from_networkx(G).weights.tolist() == [7, 2, 2]


def test_parallel_edges_without_weights_count_once_or_by_their_number():
    G = pets(nx.MultiDiGraph)
    G.add_edges_from([(0, 1), (1, 0)])
    with pytest.warns(UserWarning, match="1 edges are parallel to others and count once"):
        graph = gcnii.from_networkx(G)
    assert graph.edges.T.tolist() == [[0, 1], [1, 0], [1, 2], [7, 3]]
    assert graph.weights is None
    graph = gcnii.from_networkx(G, duplicates="add")
    assert graph.weights.tolist() == [2, 1, 1, 1]


@pytest.mark.parametrize(
    ("duplicates", "weight"), [("add", 9), ("mean", 3), ("max", 5), ("first", 2)]
)
def test_the_weights_of_parallel_edges_become_what_is_asked(duplicates, weight):
    G = pets(nx.MultiGraph)
    nx.set_edge_attributes(G, 2.0, "weight")
    G.add_edge(1, 0, weight=5)
    G.add_edge(0, 1, weight=2)
    found = gcnii.from_networkx(G, duplicates=duplicates)
    assert found.weights.tolist() == [weight, 2, 2]
    assert gcnii.from_networkx(G, X=np.eye(8), duplicates=duplicates).weights[0] == weight


@pytest.mark.parametrize("weight", [-1, "heavy", float("nan"), "1_000", "\u0661\u0662", b"12"])
def test_a_weight_is_a_positive_number(weight):
    G = pets()
    nx.set_edge_attributes(G, 1, "weight")
    G.edges[7, 3]["weight"] = weight
    with pytest.raises(InputError, match=r"edge.*from '[37]' to '[37]'"):
        gcnii.from_networkx(G)


def test_an_attribute_may_be_called_id():
    G = pets()
    nx.set_node_attributes(G, {i: i % 3 for i in G}, "id")
    assert gcnii.from_networkx(G).features == ("id", "size")


def test_the_order_of_the_nodes_does_not_order_the_features():
    columns = {}
    for turn in (1, -1):
        G = nx.Graph()
        for i in range(12)[::turn]:
            G.add_node(i, label="ab"[i % 2], **{f"x{j}": i % j for j in (10, 9, 2)[::turn]})
            G.nodes[i].pop(f"x{(10, 9, 2)[i % 3]}")
        columns[turn] = [one.name for one in gcnii.from_networkx(G).columns]
    assert columns[1] == columns[-1] == ["x2", "x9", "x10"]


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        (lambda G: G.add_node("1"), {}, "two nodes of G are called '1'"),
        (lambda G: G.clear(), {}, "G has no nodes"),
        (lambda G: G.nodes[0].update({1: 0, "1": 0}), {}, "different names as text"),
        (lambda G: None, {"label": "clubb"}, "no column 'clubb' to take labels from"),
        (lambda G: G.nodes[0].update(size=[1, 2]), {}, r"'size' holds values of type list"),
        (lambda G: G.nodes[3].update(size="big"), {}, "node '3': the feature 'size' is 'big'"),
        (lambda G: G.nodes[3].update(split="later"), {}, "node '3': the split is 'later'"),
        (lambda G: None, {"X": np.ones((3, 2))}, r"one row per node, 8 in all, got shape \(3, 2\)"),
        (lambda G: None, {"drop": "sise"}, "no feature column 'sise'; did you mean 'size'"),
    ],
)
def test_what_is_wrong_is_said_by_the_names_of_nodes(change, options, sentence):
    G = pets()
    change(G)
    with pytest.raises(InputError, match=sentence):
        gcnii.from_networkx(G, **options)


def test_something_else_is_refused():
    with pytest.raises(InputError, match="takes a networkx graph, got ndarray"):
        gcnii.from_networkx(np.eye(3))


def test_the_class_of_a_graph_is_not_a_graph():
    with pytest.raises(InputError, match="takes a networkx graph, got type"):
        gcnii.from_networkx(nx.Graph)


def test_labels_of_bytes_are_refused():
    G = nx.path_graph(4)
    nx.set_node_attributes(G, {0: b"a", 1: b"b", 2: b"a", 3: b"b"}, "label")
    with pytest.raises(InputError, match="'label' of nodes holds values of type bytes"):
        gcnii.from_networkx(G, X=np.eye(4))


def test_a_weight_that_is_not_a_name_is_refused():
    with pytest.raises(InputError, match="<NA>"):
        gcnii.from_networkx(pets(), weight=pd.NA)


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("X", [None, np.eye(4)])
def test_an_attribute_of_numbers_is_cut_into_types_with_or_without_weights(weight, X):
    G = nx.path_graph(4)
    nx.set_node_attributes(G, {i: i for i in G}, "size")
    nx.set_edge_attributes(G, {(0, 1): 1.0, (1, 2): 5.0, (2, 3): 9.0}, "amount")
    with pytest.warns(UserWarning, match="amount makes 3 types of edges: amount below 3: 1"):
        graph = gcnii.from_networkx(G, weight=weight, edge_type="amount=3,8", X=X)
    assert graph.edge_types.tolist() == [0, 1, 2]
    assert graph.type_names == ("amount below 3", "amount 3 to 8", "amount from 8")


def test_nodes_may_be_called_as_the_ends_of_an_edge_are():
    G = nx.path_graph(["source", "between", "target"])
    nx.set_node_attributes(G, {"source": 1, "between": 2, "target": 4}, "size")
    assert gcnii.from_networkx(G).nodes == ("source", "between", "target")
