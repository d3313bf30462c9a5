"""New nodes are labelled on the graph of the training, without training again."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from support.command_line import write_pets

from gcnii import data, fit
from gcnii.errors import DataError, GraphError, InputError
from gcnii.graph import Graph
from gcnii.inference.new_nodes import NewNodes, joined

SMALL = {"layers": 2, "width": 8, "epochs": 5, "device": "cpu"}
NODES = pd.DataFrame({"x1": [0.1, 0.9], "id": ["new0", "new1"], "x0": [0.0, 1.0]})
EDGES = pd.DataFrame({"source": ["new0", "pet1", "new0"], "target": ["pet0", "new1", "new1"]})


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    return data.load(write_pets(tmp_path_factory.mktemp("home") / "pets"))


@pytest.fixture(scope="module")
def model(pets):
    return fit(pets, seeds=range(2), **SMALL)


def by_hand(pets):
    """Pets and the two new nodes, as someone would write them into one graph."""
    X = np.concatenate([pets.X, [[0.0, 0.1], [1.0, 0.9]]])
    edges = np.concatenate([pets.edges, [[12, 1, 12], [0, 13, 13]]], 1)
    return Graph(X=X.astype(np.float32), edges=edges, features=pets.features, classes=pets.classes)


def test_new_nodes_get_the_labels_that_they_would_have_in_the_whole_graph(pets, model):
    table = model.predict_new(NODES, EDGES, device="cpu")
    assert list(table) == ["node", "label", "probability", "known", "split", "p(cat)", "p(dog)"]
    assert list(table["node"]) == ["new0", "new1"]
    P = model.predict_proba(by_hand(pets), "cpu")[12:]
    np.testing.assert_allclose(table[["p(cat)", "p(dog)"]], P, atol=1e-6)
    assert table["known"].isna().all()
    assert table["split"].isna().all()


def test_their_neighbours_matter(model):
    alone = model.predict_new(NODES, EDGES[:0], device="cpu")
    linked = model.predict_new(NODES, EDGES, device="cpu")
    assert not np.allclose(alone["p(cat)"], linked["p(cat)"], atol=1e-4)


def test_a_label_of_a_new_node_is_shown_as_known_and_changes_nothing(model):
    told = model.predict_new(NODES.assign(label=["wolf", None]), EDGES, device="cpu")
    assert list(told["known"]) == ["wolf", None]
    plain = model.predict_new(NODES, EDGES, device="cpu")
    assert told.drop(columns="known").equals(plain.drop(columns="known"))


def test_columns_of_edges_that_are_not_used_are_named(model):
    plain = model.predict_new(NODES, EDGES, device="cpu")
    with pytest.warns(UserWarning, match="edges: the columns since, weight are not used"):
        table = model.predict_new(NODES, EDGES.assign(since=1, weight=2), device="cpu")
    assert table.equals(plain)


@pytest.mark.parametrize(
    ("nodes", "edges", "sentence"),
    [
        (NODES.assign(id=["new0", "pet3"]), EDGES, "'pet3' has the id of a node of pets; rename"),
        (NODES.assign(id=["new0", "new0"]), EDGES, "row 1 of nodes repeats the id 'new0' of row"),
        (NODES.drop(columns="x0"), EDGES, "nodes lacks 'x0' among its feature columns"),
        (
            NODES,
            EDGES.assign(target=["pet0", "pet99", "new1"]),
            "row 1 of edges names the node 'pet99', which is neither a new node nor one of pets",
        ),
        (
            NODES,
            EDGES.rename(columns={"source": "pet1", "target": "new1"}),
            "the header of the edges, pet1,new1, holds node ids; begin the table with the header",
        ),
    ],
)
def test_what_does_not_fit_the_graph_is_refused(nodes, edges, sentence, model):
    with pytest.raises(InputError, match=sentence):
        model.predict_new(nodes, edges, device="cpu")


def test_a_graph_that_has_changed_is_refused(pets, model):
    changed = replace(pets, edges=pets.edges[:, 1:])
    with pytest.raises(InputError, match="but pets has changed since, or is another graph; rest"):
        model.predict_new(NODES, EDGES, changed, "cpu")


def test_a_graph_made_in_python_is_given(pets):
    made = replace(pets, source="")
    model = fit(made, seeds=[0], **SMALL)
    with pytest.raises(InputError, match="trained on a graph made in Python; give it as graph="):
        model.predict_new(NODES, EDGES, device="cpu")
    assert len(model.predict_new(NODES, EDGES, made, "cpu")) == 2


def test_a_model_that_places_the_nodes_in_a_plane_is_refused(pets):
    model = fit(pets, "geom-gcn-i", seeds=[0], epochs=1, device="cpu")
    with pytest.raises(InputError, match="geom-gcn-i places all nodes in a plane, where new nodes"):
        model.predict_new(NODES, EDGES, device="cpu")


def test_nodes_without_names_are_named_by_their_numbers():
    graph = Graph(X=np.eye(3), edges=[[0], [1]], y=[[0, 1], [1, 0], [-1, -1]])
    new = Graph(X=np.ones((1, 3)), edges=[[], []], nodes=("x",))
    whole = joined(graph, NewNodes(new, [("x", "2"), ("0", "2")]))
    assert whole.nodes == ("0", "1", "2", "x")
    assert whole.edges.tolist() == [[0, 3, 0], [1, 2, 2]]
    assert whole.labels.tolist() == [[0, 1], [1, 0], [-1, -1], [-1, -1]]


def test_sparse_features_stay_sparse():
    graph = Graph(X=sp.csr_array(np.eye(3)), edges=[[0], [1]])
    whole = joined(graph, NewNodes(Graph(X=np.ones((1, 3)), edges=[[], []], nodes=("x",)), []))
    assert sp.issparse(whole.X)
    assert whole.X.toarray()[3].tolist() == [1, 1, 1]


def test_columns_without_names_are_matched_by_position_with_a_warning():
    graph = Graph(X=np.eye(2), edges=[[0], [1]])
    new = Graph(X=[[1, 2]], edges=[[], []], nodes=("x",), features=("a", "b"))
    with pytest.warns(UserWarning, match="graph does not name its feature columns, so those of"):
        assert joined(graph, NewNodes(new, [])).X[2].tolist() == [1, 2]
    wide = replace(new, X=[[1, 2, 3]], features=None)
    with pytest.raises(GraphError, match="graph has 2 features per node, the new nodes 3"):
        joined(graph, NewNodes(wide, []))


def test_names_that_cannot_tell_nodes_apart_are_refused():
    new = Graph(X=np.ones((1, 2)), edges=[[], []])
    with pytest.raises(GraphError, match="new nodes need names; give each an id"):
        joined(Graph(X=np.eye(2), edges=[[0], [1]]), NewNodes(new, []))
    twins = Graph(X=np.eye(2), edges=[[0], [1]], nodes=("a", "a"))
    with pytest.raises(GraphError, match="several nodes of graph have the same name, so an edge"):
        joined(twins, NewNodes(replace(new, nodes=("x",)), []))


def test_an_edge_to_nobody_says_which_edge_it_is():
    graph = Graph(X=np.eye(2), edges=[[0], [1]])
    new = Graph(X=np.ones((1, 2)), edges=[[], []], nodes=("x",))
    with pytest.raises(DataError, match="edge 1 names the node '7', which is neither a new node"):
        joined(graph, NewNodes(new, [("x", "0"), ("x", "7")]))
