"""New nodes are labelled on the training graph, without training again."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from support.command_line import write_pets

from gcnii import data, fit, open_bundle, stratified_split
from gcnii.data.converters.frames import from_frames, open_frames
from gcnii.data.tables.reading import Reading
from gcnii.errors import GraphError, InputError
from gcnii.graph import Graph
from gcnii.graph.columns import Column, Columns
from gcnii.inference.new_nodes import OldNodes
from gcnii.train.presets import MANY

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
    front = ["node", "label", "probability", "known", "split", "basis"]
    assert list(table) == [*front, "p(cat)", "p(dog)"]
    assert list(table["node"]) == ["new0", "new1"]
    assert list(table["basis"]) == ["model", "model"]
    P = model.predict_proba(by_hand(pets), "cpu")[12:]
    np.testing.assert_allclose(table[["p(cat)", "p(dog)"]], P, atol=1e-6)
    assert table["known"].isna().all()
    assert table["split"].isna().all()


def test_their_neighbours_matter(model):
    with pytest.warns(UserWarning, match="2 nodes have no edges"):
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
    """The graph with new nodes."""
    links = pd.DataFrame(list(edges), columns=["source", "target"], dtype=object)
    columns = graph.features and Columns(tuple(Column(f, "numeric") for f in graph.features))
    return joined(graph, pd.DataFrame(nodes), links, Reading(), columns)


def joined(graph, nodes, edges, reading, columns):
    arrivals = OldNodes(graph).read(*open_frames(nodes, edges, reading, columns))
    return arrivals.joined(graph)


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


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("features", [("a", "b"), None])
@pytest.mark.filterwarnings("ignore:.*matched by position:UserWarning")
def test_an_empty_cell_is_the_median_also_without_a_table(features, sparse):
    random = np.random.default_rng(0)
    X = np.stack([random.normal(5, 1, 30), np.arange(30) < 10], 1)
    X = sp.csr_array(X) if sparse else X
    graph = Graph(X=X, edges=[range(29), range(1, 30)], y=np.arange(30) % 2, features=features)
    graph = replace(graph, splits=(stratified_split(graph.y, 0),))
    model = fit(graph, seeds=[0], **SMALL)
    links = pd.DataFrame({"source": ["x"], "target": ["3"]})
    medians = np.median(X.toarray() if sparse else X, 0)
    full = pd.DataFrame({"id": ["x"], "a": medians[:1], "b": medians[1:]})
    gaps = pd.DataFrame({"id": ["x"], "a": [np.nan], "b": [None]}, dtype=object)
    found, expected = (model.predict_new(nodes, links, device="cpu") for nodes in (gaps, full))
    assert found.equals(expected)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"target": ["pet99"]}, "row 0 of edges names the node 'pet99', which the nodes do not"),
        ({"weight": [None]}, "row 0 of edges: the weight is empty; it must be a number of 0 or mo"),
        (
            {"weight": [-1.0]},
            "row 0 of edges: the weight is '-1'; it must be a number of 0 or more",
        ),
    ],
)
def test_each_mistake_in_a_weighted_edge_has_a_sentence_of_its_own(changed, sentence, pets):
    graph = replace(pets, weights=np.ones(pets.m))
    links = pd.DataFrame({"source": ["new0"], "target": ["pet0"], "weight": [1.0]}).assign(
        **changed
    )
    columns = Columns(tuple(Column(name, "numeric") for name in pets.features))
    with pytest.raises(InputError, match=sentence) as refused:
        joined(graph, NODES, links, Reading(), columns)
    assert "--drop" not in str(refused.value)


def churn(n=1500):
    """Customers of whom one in ten leaves; part of why is seen in their linked customers alone."""
    random = np.random.default_rng(0)
    hidden, plan = np.sort(random.normal(size=n)), random.choice(["basic", "plus", "pro"], n)
    tenure, calls = random.exponential(24, n), random.poisson(2, n)
    risk = 1.5 * hidden - 0.03 * tenure + 0.5 * calls + (plan == "basic")
    risk += random.normal(0, 0.5, n)
    nodes = pd.DataFrame({"id": [f"c{i}" for i in range(n)], "tenure": tenure, "calls": calls})
    nodes["plan"], nodes["region"] = plan, random.choice(list("nesw"), n)
    nodes["label"] = np.where(risk > np.quantile(risk, 0.9), "left", "stayed")
    one = np.tile(np.arange(n), 3)
    ends = np.sort([one, np.clip(one + random.integers(1, 30, 3 * n), 0, n - 1)], 0)
    names, (u, v) = nodes["id"].to_numpy(), np.unique(ends[:, ends[0] != ends[1]], axis=1)
    weights = random.lognormal(0, 1, len(u))
    return nodes, pd.DataFrame({"source": names[u], "target": names[v], "weight": weights})


@pytest.fixture(scope="module")
def customers():
    nodes, edges = churn()
    graph = from_frames(nodes, edges)
    how = {**MANY, "epochs": 100, "patience": 100, "edge_weights": "rank", "metric": "accuracy"}
    model = fit(graph, "gcnii", seeds=[0], device="cpu", **how)
    copies = nodes[::5].reset_index(drop=True)
    copies["id"] = [f"copy {i}" for i in range(len(copies))]
    return model, copies, edges


ALONE = "300 nodes have no edges, unlike the nodes that the model was trained on; the answer is by"


def test_copies_without_links_get_on_average_what_the_same_nodes_get_in_the_graph(customers):
    model, copies, edges = customers
    in_graph = model.predict_proba(model.trained_on, "cpu")[::5, 0]
    with pytest.warns(UserWarning, match=ALONE):
        table = model.predict_new(copies, edges[:0], device="cpu")
    assert set(table["basis"]) == {"features"}
    assert table["p(left)"].mean() == pytest.approx(in_graph.mean(), abs=0.02)
    assert table["p(left)"].max() < 0.9
    left = table["known"] == "left"
    assert table["p(left)"][left].mean() > 2 * table["p(left)"][~left].mean()
    # What the network itself says of them, which was the answer.
    known = model.trained_on
    whole = joined(known, copies, edges[:0], Reading(), model.origin.columns)
    assert model.predict_proba(whole, "cpu")[-300:, 0].mean() > in_graph.mean() + 0.05


def test_sets_of_nodes_without_links_cover_as_often_as_promised(customers):
    model, copies, edges = customers
    with pytest.warns(UserWarning, match=ALONE):
        table = model.predict_new(copies, edges[:0], device="cpu", coverage=0.9)
    held = [
        known in row.split(";") for known, row in zip(table["known"], table["set"], strict=True)
    ]
    assert np.mean(held) == pytest.approx(0.9, abs=0.05)


def test_nodes_with_links_are_answered_by_the_model_whoever_else_asks(customers):
    model, copies, _ = customers
    linked = pd.DataFrame({"source": ["copy 0"], "target": ["c7"], "weight": [1.0]})
    with pytest.warns(UserWarning, match="1 node has no edges"):
        table = model.predict_new(copies[:2], linked, device="cpu")
    assert list(table["basis"]) == ["model", "features"]
    assert table[:1].equals(model.predict_new(copies[:1], linked, device="cpu"))


def several(n=200):
    """Nodes that can have two labels, each told by a column."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    y = (X[:, :2] > 0.5).astype(int)
    graph = Graph(X=X, edges=[range(n - 1), range(1, n)], y=y, features=tuple("abc"))
    return replace(graph, splits=(stratified_split(y, 0),))


def test_several_labels_of_nodes_without_links_are_as_frequent_as_in_the_graph():
    graph = several()
    model = fit(graph, "gcnii", seeds=[0], layers=2, width=16, epochs=30, device="cpu")
    copies = pd.DataFrame(graph.X, columns=list("abc")).assign(id=[f"x{i}" for i in range(200)])
    with pytest.warns(UserWarning, match="200 nodes have no edges"):
        table = model.predict_new(copies, EDGES[:0], graph, "cpu")
    in_graph = model.predict_proba(graph, "cpu")
    found = table[["p(0)", "p(1)"]].to_numpy()
    assert found.mean(0) == pytest.approx(in_graph.mean(0), abs=0.02)
    assert np.corrcoef(found[:, 0], graph.y[:, 0])[0, 1] > 0.5


@pytest.mark.parametrize("knows", ["the model looks at features alone", "it saw such nodes"])
def test_a_model_that_knows_nodes_without_links_answers_itself(knows):
    graph, model = several(), "mlp"
    if knows == "it saw such nodes":
        graph, model = replace(graph, edges=graph.edges[:, :150]), "gcnii"
    fitted = fit(graph, model, seeds=[0], width=8, epochs=3, device="cpu")
    copies = pd.DataFrame(graph.X[:5], columns=list("abc")).assign(id=[f"x{i}" for i in range(5)])
    table = fitted.predict_new(copies, EDGES[:0], graph, "cpu")
    assert set(table["basis"]) == {"model"}


def test_new_edges_given_twice_become_what_those_of_the_training_did():
    nodes = pd.DataFrame({"id": ["a", "b"], "x": [0, 1]})
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "a"]})
    graph = from_frames(nodes, edges, duplicates="add")
    assert graph.weights.tolist() == [2]
    reading = Reading.of(duplicates="add")
    new = pd.DataFrame({"id": ["c", "d"], "x": [1, 0]})
    for source, target, weights in (("cac", "acd", [2, 2, 1]), ("caa", "acc", [2, 3])):
        links = pd.DataFrame({"source": list(source), "target": list(target)})
        whole = joined(graph, new, links, reading, graph.columns)
        assert whole.weights.tolist() == weights


def test_edges_of_new_nodes_need_no_time_of_their_own():
    when = pd.date_range("2020-01-01", periods=20).astype(str)
    nodes = pd.DataFrame({"id": range(20), "size": range(20), "label": ["a", "b"] * 10})
    edges = pd.DataFrame({"source": range(19), "target": range(1, 20), "at": when[1:]})
    graph = from_frames(nodes.assign(when=when), edges, time="when", time_edges="at")
    result = fit(graph, **SMALL)
    new, links = NODES.assign(size=3)[["id", "size"]], EDGES.replace("pet", "", regex=True)
    plain = result.predict_new(new, links, graph)
    assert plain.equals(result.predict_new(new, links.assign(at="2021-01-01"), graph))
