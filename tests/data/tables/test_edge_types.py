"""Types of edges in tables, files and graphs of other libraries."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gcnii
from gcnii.errors import DataError, InputError

NODES = pd.DataFrame({"id": list("abcdefgh"), "x": np.arange(8.0), "label": list("pqpqpqpq")})
EDGES = pd.DataFrame(
    {"source": list("aabc"), "target": list("bbcd"), "type": ["writes", "cites", "cites", "cites"]}
)
NOTICE = "edges: type makes 2 types of edges: cites 3, writes 1 .--edge-type"
pytestmark = pytest.mark.filterwarnings("ignore:edges")


def named(graph: gcnii.Graph) -> list[tuple[str, str, str]]:
    """The edges, by the names of nodes and types."""
    types = np.zeros(graph.edges.shape[1], int) if graph.edge_types is None else graph.edge_types
    ends = zip(*graph.edges.tolist(), types.tolist(), strict=True)
    return [(graph.nodes[u], graph.nodes[v], graph.type_names[t]) for u, v, t in ends]


def test_a_column_called_type_makes_types_and_a_notice_says_so():
    with pytest.warns(UserWarning, match=NOTICE):
        graph = gcnii.from_frames(NODES, EDGES)
    assert sorted(named(graph)) == [
        *(("a", "b", "cites"), ("a", "b", "writes"), ("b", "c", "cites"), ("c", "d", "cites"))
    ]


def test_types_that_are_numbers_are_told_from_their_counts():
    with pytest.warns(UserWarning, match=r"type makes 2 types of edges: 1: 3, 10: 1 \(--edge-type"):
        gcnii.from_frames(NODES, EDGES.assign(type=[10, 1, 1, 1]))


def test_the_column_of_types_can_have_any_name_or_be_left_out():
    renamed = EDGES.rename(columns={"type": "kind"})
    assert gcnii.from_frames(NODES, renamed, edge_type="kind").type_names == ("cites", "writes")
    with pytest.warns(UserWarning, match="edges: the column type is not used"):
        assert not gcnii.from_frames(NODES, EDGES, edge_type="").typed


def test_one_type_makes_no_types_and_no_notice():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = gcnii.from_frames(NODES, EDGES.assign(type="cites"))
    plain = gcnii.from_frames(NODES, EDGES.drop(columns="type"))
    assert graph.fingerprint == plain.fingerprint


def test_an_edge_of_one_type_given_twice_counts_once():
    graph = gcnii.from_frames(NODES, pd.concat([EDGES, EDGES]))
    assert graph.m == 4
    counted = gcnii.from_frames(NODES, pd.concat([EDGES, EDGES]), duplicates="add")
    assert counted.weights.tolist() == [2, 2, 2, 2]


def test_a_missing_type_is_an_error_that_names_the_row():
    gap = EDGES.assign(type=["writes", None, "cites", "cites"])
    with pytest.raises(DataError, match="row 1 of edges has no type; give every edge a type, or"):
        gcnii.from_frames(NODES, gap)


def test_a_column_of_many_values_is_refused_as_types():
    many = pd.DataFrame({"source": ["a"] * 65, "target": ["b"] * 65, "type": range(65)})
    with pytest.raises(DataError, match="the column type of edges: edges are of 65 types, but at"):
        gcnii.from_frames(NODES, many)


def test_a_column_that_does_not_exist_is_an_error():
    with pytest.raises(DataError, match="edges has no column 'kind'; its columns are source"):
        gcnii.from_frames(NODES, EDGES, edge_type="kind")


def test_a_folder_keeps_types(tmp_path):
    NODES.to_csv(tmp_path / "nodes.csv", index=False)
    EDGES.to_csv(tmp_path / "edges.csv", index=False)
    assert gcnii.load(tmp_path).fingerprint == gcnii.from_frames(NODES, EDGES).fingerprint


@pytest.mark.parametrize("features", [True, False])
def test_a_networkx_multigraph_keeps_parallel_edges_of_several_types(features):
    G = nx.MultiGraph()
    G.add_nodes_from((name, {"x": x, "label": y}) for name, x, y in NODES.to_numpy())
    G.add_edges_from((u, v, {"type": t}) for u, v, t in EDGES.to_numpy())
    graph = gcnii.from_networkx(G, X=None if features else np.eye(8), weight=None)
    assert sorted(named(graph)) == sorted(named(gcnii.from_frames(NODES, EDGES)))


def test_graphml_has_types_as_an_attribute_of_edges(tmp_path):
    G = nx.MultiGraph()
    G.add_nodes_from((name, {"x": x, "label": y}) for name, x, y in NODES.to_numpy())
    G.add_edges_from((u, v, {"type": t}) for u, v, t in EDGES.to_numpy())
    nx.write_graphml(G, tmp_path / "G.graphml")
    assert sorted(named(gcnii.load(tmp_path / "G.graphml"))) == sorted(
        named(gcnii.from_frames(NODES, EDGES))
    )


def new(**changes: object) -> tuple[pd.DataFrame, pd.DataFrame]:
    edges = {"source": ["e"], "target": ["a"], "type": ["cites"]} | changes
    kept = {name: value for name, value in edges.items() if value is not None}
    return pd.DataFrame({"id": ["e"], "x": [2.0]}), pd.DataFrame(kept)


@pytest.fixture
def result():
    graph = gcnii.from_frames(pd.concat([NODES] * 3).assign(id=range(24)), _ends(24))
    return gcnii.fit(graph, "gcnii", layers=2, epochs=3, seeds=[0], verbose=False)


def _ends(n: int) -> pd.DataFrame:
    at = np.arange(n)
    return pd.DataFrame({"source": at, "target": (at + 1) % n, "type": np.where(at % 3, "a", "b")})


def test_new_nodes_are_joined_by_edges_of_known_types(result):
    nodes, edges = new(target=["3"], type=["b"])
    assert len(result.predict_new(nodes, edges)) == 1


def test_types_of_new_edges_are_not_news(result):
    nodes, edges = new(source=["e", "e"], target=["3", "4"], type=["b", "a"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(result.predict_new(nodes, edges)) == 1
    with pytest.raises(DataError, match=r"row 1 of edges has no type; give every edge a type$"):
        result.predict_new(nodes, edges.assign(type=["b", None]))


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (["c"], "edges has edges of the type 'c', unlike the training graph, whose types"),
        (None, "are of the types a, b; edges needs a column of types, too"),
    ],
)
def test_new_edges_need_a_known_type(result, kind, error):
    nodes, edges = new(target=["3"], type=kind)
    with pytest.raises((InputError, gcnii.errors.GraphError), match=error):
        result.predict_new(nodes, edges)
