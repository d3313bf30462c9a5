"""What a server answers is what `predict`, `predict_new` and `explain` say."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support.run_pages import trained
from support.serving import streams

from gcnii.inference.predict import label_table
from gcnii.serving.records import ARROW
from gcnii.serving.served import Served

LINKS = [{"source": "new", "target": "a 3"}, {"source": "a 70", "target": "new"}]


@pytest.fixture
def row(graph):
    return {"id": "new"} | {f"a {j}": 0.5 * j for j in range(graph.d)}


def test_every_node_is_answered_as_predict_answers_it(client, graph, result):
    table = label_table(result, graph, "cpu", coverage=0.9)
    status, found = client.ask("/predict", {"ids": list(graph.nodes), "probabilities": True})
    assert (status, found["model"]) == (200, "first")
    for name in ("node", "label", "probability", "known", "split"):
        assert [one[name] for one in found["answers"]] == table[name].tolist()
    assert [";".join(one["set"]) for one in found["answers"]] == table["set"].tolist()
    chances = [list(one["probabilities"].values()) for one in found["answers"]]
    np.testing.assert_array_equal(chances, table.filter(like="p(").to_numpy())


def test_a_node_that_is_unknown_gets_a_sentence(client):
    status, found = client.ask("/predict", {"ids": ["a 1", "b 1", "zzz"]})
    assert status == 422
    assert found["error"].startswith("a has no node 'b 1' (1 more are unknown); did you mean")


@pytest.mark.parametrize("exact", [False, True])
def test_a_new_node_is_answered_and_the_graph_stays(client, graph, result, row, exact):
    before = client.ask("/predict", {"ids": list(graph.nodes)})
    body = {"nodes": [row], "edges": LINKS, "exact": exact, "probabilities": True}
    status, found = client.ask("/predict_new", body)
    assert status == 200
    (one,) = found["answers"]
    frames = pd.DataFrame([row]), pd.DataFrame(LINKS)
    table = result.predict_new(*frames, graph, "cpu", coverage=0.9)
    assert one["label"] == table["label"][0]
    assert one["probability"] == pytest.approx(table["probability"][0], abs=0.0 if exact else 0.01)
    assert ";".join(one["set"]) == table["set"][0]
    assert (found["exact"], found["radius"]) == ((True, None) if exact else (False, 2))
    assert (found["error"] is None) == exact
    assert client.ask("/predict", {"ids": list(graph.nodes)}) == before


def test_the_error_of_near_answers_was_measured_on_copies_of_nodes(client):
    about = client.ask("/model")[1]["new_nodes"]
    assert about["error"]["nodes"] >= 1
    assert about["error"]["mean"] <= about["error"]["largest"] < 0.01


def test_a_smaller_radius_has_a_larger_error_and_enough_of_it_has_none(graph, result):
    errors = [Served.of(result, graph, "", device="cpu", radius=i).error for i in (0, 1, 3)]
    assert errors[0]["mean"] > errors[1]["mean"] > 0
    assert errors[2] == {}


@pytest.mark.parametrize("exact", [False, True])
def test_a_new_node_without_links_is_answered_by_its_features(starting, served, row, exact):
    with starting(served) as client:
        _, found = client.ask("/predict_new", {"nodes": [row], "exact": exact})
        assert found["answers"][0]["basis"] == "features"
        assert found["notes"] == [
            "1 node has no edges, unlike the nodes that the model was trained on; the answer is by "
            "the features alone (basis: features)"
        ]


@pytest.mark.parametrize(
    ("changed", "links", "sentence"),
    [
        ({"id": "a 3"}, LINKS, "row 0 of nodes: the new node 'a 3' has the id of a node of a"),
        ({}, [{"source": "new", "target": "b"}], "row 0 of edges names the node 'b', which"),
        ({"more": 1}, LINKS, "more"),
        ({"a 1": "high"}, LINKS, "high"),
        ({"id": None}, LINKS, "row 0 of nodes has no id; give every node one"),
        ({}, [{"source": "new", "target": "a 3", "weight": 2}], "edges has weights, but the edges"),
        ({"a 1": [1]}, LINKS, "row 0 of nodes: the cell of 'a 1' must be text, a number, true, f"),
        ({"a 1": 10**400}, LINKS, "the column 'a 1' of nodes has too large a number"),
    ],
)
def test_what_is_wrong_with_new_nodes_is_one_sentence(client, row, changed, links, sentence):
    status, found = client.ask("/predict_new", {"nodes": [row | changed], "edges": links})
    assert status == 422
    assert sentence in found["error"]


def test_what_is_wrong_with_an_edge_names_its_nodes(starting, graph, row):
    edges = np.unique(np.sort(graph.edges, 0), axis=1)
    weighted = replace(graph, edges=edges, weights=np.ones(edges.shape[1]))
    served = Served.of(trained(weighted, layers=4), weighted, "weighted", device="cpu")
    both = [{"source": "a 3", "target": "new"}, {"source": "new", "target": "a 3"}]
    links = [one | {"weight": i + 1} for i, one in enumerate(both)]
    for exact in (False, True):
        with starting(served) as client:
            body = {"nodes": [row], "edges": links, "exact": exact}
            status, found = client.ask("/predict_new", body)
        assert status == 422
        assert found["error"].startswith("the edge between 'a 3' and 'new' has the weight 1 in one")


def test_where_more_is_wrong_the_number_is_said(client, row):
    body = {"nodes": [row | {"id": None}], "edges": LINKS}
    assert client.ask("/predict_new", body) == (
        422,
        {"error": "row 0 of nodes has no id; give every node one (2 more)"},
    )


def test_an_explanation_is_that_of_explain(client, graph, result):
    status, found = client.ask("/explain", {"id": "a 5", "top": 3})
    expected = result.explain(graph, "a 5", top=3, device="cpu").document()
    assert status == 200
    assert found["explanation"]["sentence"] == expected["sentence"]
    assert len(found["explanation"]["shares"]["nodes"]) == 3


def test_the_model_is_described(client, graph):
    status, found = client.ask("/model")
    assert (status, found["graph"], found["nodes"]) == (200, "a", graph.n)
    assert found["classes"] == list(graph.classes)
    assert found["columns"]["a 0"] == "numeric"
    assert found["metric"] == "accuracy"
    assert found["card"].startswith("# gcnii, 4 layers, on a")
    assert "## How far to trust its probabilities" in found["card"]
    assert "How it was made" not in found["card"]
    assert 0 < found["test_mean"] <= 1


def test_arrow_goes_in_and_out(client, row):
    new = streams(pa.Table.from_pylist([row]), pa.Table.from_pylist(LINKS))
    for path, body in (("/predict", streams(pa.table({"node": ["a 1"]}))), ("/predict_new", new)):
        status, found, heads = client.send(path, body, ARROW, Accept=ARROW)
        assert (status, heads["Content-Type"]) == (200, ARROW)
        table = pa.ipc.open_stream(found).read_all()
        assert {"node", "label", "probability", "set"} <= {*table.column_names}
        assert '"model": "first"' in heads["X-Gcnii"]


def test_what_is_not_arrow_gets_a_sentence(client):
    status, found, _ = client.send("/predict_new", b"x" * 30, ARROW)
    assert status == 422
    assert b"expected 2 Arrow IPC streams (nodes, edges), and the one of nodes cannot" in found


def test_a_stream_too_many_is_refused(client):
    table = pa.table({"node": ["a 1"]})
    status, found, _ = client.send("/predict", streams(table, table), ARROW)
    assert status == 422
    assert b"expected 1 Arrow IPC stream (nodes), and there is more after that" in found


def test_another_graph_is_answered_but_takes_no_new_nodes(starting, graph, result, row):
    other = graph.with_splits([])
    with pytest.warns(UserWarning, match="^no new nodes are answered: new nodes join the graph"):
        served = Served.of(result, other, "other", device="cpu")
    with starting(served) as client:
        assert client.ask("/predict", {"ids": ["a 1"]})[0] == 200
        status, found = client.ask("/predict_new", {"nodes": [row], "edges": LINKS})
        assert status == 422
        assert found["error"].startswith("new nodes join the graph that the model was trained on")
