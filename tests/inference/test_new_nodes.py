"""New nodes are labelled on the graph of the training, without training again."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from support.command_line import write_pets

from gcnii import data, fit, open_bundle
from gcnii.columns import Column, Columns
from gcnii.data.converters.frames import from_frames, open_frames
from gcnii.data.tables.reading import Reading
from gcnii.errors import GraphError, InputError
from gcnii.graph import Graph
from gcnii.inference.new_nodes import join_new

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
    with pytest.warns(UserWarning, match="edges: the column since is not used"):
        table = model.predict_new(NODES, EDGES.assign(since=1), device="cpu")
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
            "row 1 of edges names the node 'pet99', which the nodes do not have",
        ),
        (
            NODES,
            EDGES.rename(columns={"source": "pet1", "target": "new1"}),
            "row 1 of edges holds node ids; begin the file with the header",
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


def test_a_graph_made_in_python_is_given(pets, tmp_path):
    made = replace(pets, source="")
    model = open_bundle(fit(made, seeds=[0], **SMALL).save(tmp_path / "bundle"))
    with pytest.raises(InputError, match="trained on a graph made in Python; give it as graph="):
        model.predict_new(NODES, EDGES, device="cpu")
    assert len(model.predict_new(NODES, EDGES, made, "cpu")) == 2


def test_a_model_that_places_the_nodes_in_a_plane_is_refused(pets):
    model = fit(pets, "geom-gcn-i", seeds=[0], epochs=1, device="cpu")
    with pytest.raises(InputError, match="geom-gcn-i places all nodes in a plane, where new nodes"):
        model.predict_new(NODES, EDGES, device="cpu")


def join(graph, nodes, edges=()):
    """The graph with new nodes: the second answer of `join_new`."""
    links = pd.DataFrame(list(edges), columns=["source", "target"], dtype=object)
    columns = graph.features and Columns(tuple(Column(f, "numeric") for f in graph.features))
    return join_new(graph, *open_frames(pd.DataFrame(nodes), links, Reading(), columns))[1]


def test_nodes_without_names_are_named_by_their_numbers():
    graph = Graph(
        X=np.eye(3), edges=[[0], [1]], y=[[0, 1], [1, 0], [-1, -1]], features=tuple("abc")
    )
    new = {"id": ["x"], "a": [1], "b": [1], "c": [1]}
    whole = join(graph, new, [("x", "2"), ("0", "2")])
    assert whole.nodes == ("0", "1", "2", "x")
    assert whole.edges.tolist() == [[0, 3, 0], [1, 2, 2]]
    assert whole.labels.tolist() == [[0, 1], [1, 0], [-1, -1], [-1, -1]]


def test_sparse_features_stay_sparse():
    graph = Graph(X=sp.csr_array(np.eye(2)), edges=[[0], [1]], features=("a", "b"))
    whole = join(graph, {"id": ["x"], "b": [5], "a": [1]})
    assert sp.issparse(whole.X)
    assert whole.X.toarray()[2].tolist() == [1, 5]


def test_columns_without_names_are_matched_by_position_with_a_warning():
    graph = Graph(X=np.eye(2), edges=[[0], [1]])
    with pytest.warns(UserWarning, match="graph does not name its feature columns, so those of"):
        assert join(graph, {"id": ["x"], "a": [1], "b": [2]}).X[2].tolist() == [1, 2]
    with pytest.raises(GraphError, match="graph has 2 features per node, the new nodes 3"):
        join(graph, {"id": ["x"], "a": [1], "b": [2], "c": [3]})


def test_names_that_cannot_tell_nodes_apart_are_refused():
    twins = Graph(X=np.eye(2), edges=[[0], [1]], nodes=("a", "a"))
    with pytest.raises(GraphError, match="several nodes of graph have the same name, so an edge"):
        join(twins, {"id": ["x"], "a": [1], "b": [2]})


def test_new_nodes_are_encoded_as_the_nodes_of_the_training():
    nodes = pd.DataFrame(
        {
            "name": [f"n{i}" for i in range(30)],
            "age": [None if i == 3 else float(i) for i in range(30)],
            "city": ["rome", "oslo", "lima"] * 10,
            "kind": ["a", "b"] * 15,
        }
    )
    edges = pd.DataFrame({"source": ["n0", "n1"], "target": ["n2", "n3"], "weight": [1.0, 2.0]})
    graph = from_frames(nodes, edges, id="name", label="kind")
    model = fit(graph, seeds=[0], **SMALL)
    new = pd.DataFrame({"city": ["oslo", "paris"], "name": ["x", "y"], "age": [None, 7.0]})
    links = pd.DataFrame({"source": ["x"], "target": ["y"], "weight": [3.0]})
    assert list(model.predict_new(new, links, graph, "cpu")["node"]) == ["x", "y"]
    with pytest.raises(InputError, match="edges needs them, too"):
        model.predict_new(new, links.drop(columns="weight"), graph, "cpu")
