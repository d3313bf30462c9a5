"""Numbers of edges as types: a column that is cut, `--edge-type amount=3,12`."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from support.command_line import call

import gcnii
from gcnii.errors import DataError, GcniiError
from gcnii.graph.types import cut_column, quarters, types_by_cuts

CUT = "amount=3,12"
pytestmark = pytest.mark.filterwarnings("ignore:edges")


@pytest.fixture
def nodes():
    return pd.DataFrame({"id": list("abcdef"), "age": range(6), "label": ["x", "y"] * 3})


@pytest.fixture
def edges():
    return pd.DataFrame(
        {"source": list("aabcd"), "target": list("bcdef"), "amount": [1, 3, 11.9, 12, 400]}
    )


def read(nodes, edges, edge_type=CUT, **how):
    with pytest.warns(UserWarning, match="amount makes 3 types of edges: amount below 3: 1, "):
        return gcnii.from_frames(nodes, edges, edge_type=edge_type, **how)


def test_a_number_has_the_type_of_the_last_cut_that_it_reaches(nodes, edges):
    graph = read(nodes, edges)
    assert graph.edge_type_names == ("amount below 3", "amount 3 to 12", "amount from 12")
    pairs = zip(graph.edges.T.tolist(), graph.edge_types.tolist(), strict=True)
    assert sorted((*pair, kind) for pair, kind in pairs) == [
        (0, 1, 0),
        (0, 2, 1),
        (1, 3, 1),
        (2, 4, 2),
        (3, 5, 2),
    ]


def test_types_that_no_edge_has_are_none():
    types, names = types_by_cuts(np.array([1.0, 50.0]), "w", (3, 12))
    assert (types.tolist(), names) == ([0, 1], ("w below 3", "w from 12"))


def test_a_networkx_graph_is_cut_alike(nodes, edges):
    G = nx.Graph()
    G.add_nodes_from((row.id, {"age": row.age, "label": row.label}) for row in nodes.itertuples())
    G.add_edges_from((row.source, row.target, {"amount": row.amount}) for row in edges.itertuples())
    with pytest.warns(UserWarning, match="amount from 12: 2"):
        graph = gcnii.from_networkx(G, edge_type=CUT)
    same = read(nodes, edges)
    named = (
        {
            (*pair, one.edge_type_names[kind])
            for *pair, kind in zip(*one.edges.tolist(), one.edge_types, strict=True)
        }
        for one in (graph, same)
    )
    assert next(named) == next(named)


def test_a_column_whose_name_has_an_equals_sign_is_itself(nodes, edges):
    edges[CUT] = ["p", "q"] * 2 + ["p"]
    with pytest.warns(UserWarning, match="makes 2 types of edges"):
        graph = gcnii.from_frames(nodes, edges, edge_type=CUT)
    assert graph.edge_type_names == ("p", "q")


@pytest.mark.parametrize(
    "wanted", ["amount=", "amount=a", "amount=3,2", "amount=3,3", "=3", "w=inf"]
)
def test_what_cannot_be_cut_is_refused_in_a_sentence(wanted, nodes, edges):
    with pytest.raises(DataError, match="or a column of numbers and where to cut it"):
        gcnii.from_frames(nodes, edges, edge_type=wanted)
    with pytest.raises(GcniiError, match="such as amount=10,100"):
        cut_column(wanted)


def test_a_cell_that_is_no_number_is_named(nodes, edges):
    edges = edges.astype({"amount": object})
    edges.loc[1, "amount"] = "much"
    with pytest.raises(DataError, match="row 1 of edges: amount is 'much'; it must be a number"):
        gcnii.from_frames(nodes, edges, edge_type=CUT)
    with pytest.raises(DataError, match="edges has no column 'sum'"):
        gcnii.from_frames(nodes, edges, edge_type="sum=3")


def test_a_column_of_numbers_that_is_not_used_is_said_to_be_cuttable(nodes, edges):
    assert quarters(edges["amount"].to_numpy()) == "3,11.9,12"
    with pytest.warns(UserWarning, match="--edge-type amount=3,11.9,12 makes types of the quart"):
        gcnii.from_frames(nodes, edges)
    with pytest.warns(UserWarning, match="the column kind is not used$"):
        gcnii.from_frames(nodes, edges.drop(columns="amount").assign(kind="x"))


def test_too_many_types_can_be_cut(nodes):
    random = np.random.default_rng(0)
    many = pd.DataFrame({"source": random.choice(list("abc"), 90), "amount": np.arange(90) / 7})
    many["target"] = random.choice(list("def"), 90)
    with pytest.raises(
        DataError, match=r"or cut its numbers: --edge-type amount=3\.18,6\.36,9\.54"
    ):
        gcnii.from_frames(nodes, many, edge_type="amount")


def banded(n=600, seed=0):
    """Nodes whose class is that of the neighbours by edges of middling amounts, and no others."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    u, amount = random.integers(0, n, 8 * n), random.uniform(0, 3, 8 * n).round(3)
    inside = (amount > 1) & (amount < 2)
    pairs = zip(u, inside, strict=True)
    other = [random.choice(np.flatnonzero((y == y[one]) == same)) for one, same in pairs]
    nodes = pd.DataFrame({"id": range(n), "x": y + 1.5 * random.normal(size=n), "label": y})
    nodes["label"] = np.where(y, "yes", "no")
    return nodes, pd.DataFrame({"source": u, "target": other, "amount": amount})


def accuracy(nodes, edges, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = gcnii.from_frames(nodes, edges[edges["source"] != edges["target"]], **how)
        settings = {"layers": 4, "epochs": 150, "seeds": range(3), "device": "cpu", "threads": 1}
        return gcnii.fit(graph, "gcnii", **settings).test.mean()


@pytest.mark.slow
def test_an_answer_that_needs_the_amounts_is_found_with_cuts_alone():
    nodes, edges = banded()
    cut = accuracy(nodes, edges, edge_type="amount=1,2")
    by_quarters = accuracy(nodes, edges, edge_type=f"amount={quarters(edges['amount'].to_numpy())}")
    without = accuracy(nodes, edges.drop(columns="amount"))
    as_weight = accuracy(nodes, edges, weight="amount", duplicates="add")
    assert cut > max(without, as_weight) + 0.1
    assert by_quarters > max(without, as_weight) + 0.05


def test_new_nodes_are_cut_as_the_training_was(nodes, edges, tmp_path):
    shop = tmp_path / "shop"
    shop.mkdir()
    more = pd.concat([nodes.assign(id=nodes["id"] + str(i)) for i in range(6)])
    links = pd.concat([edges.assign(source=edges["source"] + str(i)) for i in range(6)])
    links["target"] = links["target"] + "0"
    more.to_csv(shop / "nodes.csv", index=False)
    links.to_csv(shop / "edges.csv", index=False)
    how = ("--model", "gcn", "--layers", "2", "--epochs", "3", "--out", "run")
    assert call("train", "shop", "--edge-type", CUT, *how, cwd=tmp_path).code == 0
    said = call("predict", "run", "--json", cwd=tmp_path)
    assert said.code == 0, said.err
    result = gcnii.open_bundle(tmp_path / "run")
    new = pd.DataFrame({"id": ["n"], "age": [3]})
    edge = pd.DataFrame({"source": ["n"], "target": ["a0"], "amount": [7]})
    table = result.predict_new(new, edge)
    assert table["node"].tolist() == ["n"]
    with pytest.raises(GcniiError, match="it must be a number"):
        result.predict_new(new, edge.assign(amount="much"))
