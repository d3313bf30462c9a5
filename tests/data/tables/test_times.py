"""Columns of times: numbers or dates divide the nodes, and are no features."""

import numpy as np
import pandas as pd
import pytest

import gcnii
from gcnii.graph.past import past

DAYS = pd.date_range("2019-12-25", periods=20)


def tables(**columns):
    nodes = {"id": range(20), "size": np.arange(20.0), "label": ["a", "b"] * 10, "when": DAYS}
    edges = {"source": range(19), "target": range(1, 20)}
    return pd.DataFrame(nodes | columns), pd.DataFrame(edges)


def train_of(graph):
    return np.flatnonzero(graph.splits[0].train).tolist()


@pytest.mark.parametrize(
    "when", [DAYS, DAYS.strftime("%Y-%m-%d"), DAYS.strftime("%Y-%m-%dT%H:%M"), range(20)]
)
def test_nodes_are_divided_by_dates_and_by_numbers_alike(when):
    graph = gcnii.from_frames(*tables(when=when), time="when")
    assert train_of(graph) == list(range(12))
    assert graph.features == ("size",)
    assert graph.dated is not isinstance(when, range)


def test_a_time_is_a_feature_where_it_is_named_as_one():
    graph = gcnii.from_frames(*tables(), time="when", date="when")
    assert graph.features == ("size", "when")


def test_cuts_are_read_as_the_times_are():
    graph = gcnii.from_frames(*tables(), time="when", time_cuts="2019-12-27, 2020-01-01")
    assert train_of(graph) == [0, 1]


@pytest.mark.parametrize("shares", [(0.2, 0.1), "0.2,0.1", np.array([0.2, 0.1])])
def test_shares_may_be_others(shares):
    graph = gcnii.from_frames(*tables(), time="when", time_shares=shares)
    assert train_of(graph) == [0, 1, 2, 3]


def test_statistics_of_columns_are_those_of_the_training_period():
    size = np.r_[np.arange(12.0), [1e6] * 4, [np.nan] * 4]
    city = ["x"] * 6 + ["y"] * 6 + ["later"] * 8
    graph = gcnii.from_frames(*tables(size=size, city=city), time="when")
    assert graph.features == ("size", "city=x", "city=y")
    assert graph.X[-1].tolist() == [5.5, 0, 0]


def test_an_edge_has_a_time_of_its_own():
    nodes, edges = tables()
    edges["at"] = ["2030-01-01"] + ["2019-01-01"] * 18
    graph = gcnii.from_frames(nodes, edges, time="when", time_edges="at")
    assert past(graph, "val").m == 14
    assert graph.m == 19


def test_a_folder_has_times_too(tmp_path):
    nodes, edges = tables()
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    graph = gcnii.load(tmp_path, time="when")
    assert graph.fingerprint == gcnii.from_frames(nodes, edges, time="when").fingerprint


def test_a_graph_to_predict_needs_no_periods_and_no_times_of_edges(tmp_path):
    columns = gcnii.from_frames(*tables(), time="when").columns
    nodes, edges = tables(when="2030-01-01")
    edges.to_csv(tmp_path / "edges.csv", index=False)
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    assert gcnii.load(tmp_path, time="when", columns=columns).splits == ()
    nodes.drop(columns="when").to_csv(tmp_path / "nodes.csv", index=False)
    assert gcnii.load(tmp_path, time="when", time_edges="at", columns=columns).times is None


def test_a_network_has_times_of_nodes():
    nx = pytest.importorskip("networkx")
    G = nx.path_graph(20)
    nx.set_node_attributes(G, {i: {"when": i, "a": i, "label": "xy"[i % 2]} for i in range(20)})
    assert train_of(gcnii.from_networkx(G, time="when")) == list(range(12))


def test_a_graphml_file_has_times_of_nodes_alone(tmp_path):
    nx = pytest.importorskip("networkx")
    G = nx.path_graph(20)
    nx.set_node_attributes(G, {i: {"when": i, "a": i, "label": "xy"[i % 2]} for i in range(20)})
    nx.write_graphml(G, tmp_path / "graph.graphml")
    assert train_of(gcnii.load(tmp_path / "graph.graphml", time="when")) == list(range(12))
    with pytest.raises(gcnii.DataError, match="times of edges are read from tables alone"):
        gcnii.load(tmp_path / "graph.graphml", time="when", time_edges="at")


def test_shares_that_ties_move_are_said():
    with pytest.warns(UserWarning, match=r"train up to 0 \(16, 80%\).*; nodes of one time"):
        gcnii.from_frames(*tables(when=[0] * 16 + [1, 2, 3, 4]), time="when")


def test_a_column_of_roles_that_follow_the_times_divides_as_it_says():
    roles = ["train"] * 4 + ["val"] * 12 + ["test"] * 4
    assert train_of(gcnii.from_frames(*tables(split=roles), time="when")) == [0, 1, 2, 3]
    with pytest.warns(UserWarning, match=r"by 'split': train up to 3 .* 1 node has no time and no"):
        gcnii.from_frames(*tables(when=[*range(19), None], split=[*roles[:19], ""]), time="when")


def test_nodes_without_a_time_are_said():
    when = [None, *range(19)]
    with pytest.warns(UserWarning, match="1 node has no time and no role"):
        graph = gcnii.from_frames(*tables(when=when), time="when")
    assert train_of(graph)[0] == 1


@pytest.mark.parametrize(
    ("options", "columns", "message"),
    [
        ({"time": "wen"}, {}, "nodes has no column 'wen' to take times from; its columns are id"),
        (
            {"time": "when"},
            {"when": ["now"] + [1] * 19},
            "row 0 of nodes: the time 'when' is 'now'",
        ),
        (
            {"time": "when"},
            {"when": [*range(19), "2020-01-01"]},
            "row 19 of nodes: the time 'when' is '2020-01-01'",
        ),
        ({"time": "when"}, {"when": [*range(19), "inf"]}, "row 19 of nodes: the time 'when' is"),
        (
            {"time": "when"},
            {"when": [*map(str, DAYS[1:]), "NaT"]},
            "'NaT'; .* leave the cell empty where it is unknown",
        ),
        ({"time": "when"}, {"when": [1] * 20}, "have 1 different times"),
        ({"time_edges": "at"}, {}, "time_edges needs time, the column that says when a node came"),
        (
            {"time": "when", "time_cuts": "2020-01-01"},
            {},
            "time_cuts must be two values such as 20",
        ),
        ({"time": "when", "time_cuts": "5,6"}, {}, "time_cuts must be two dates, as the times are"),
        (
            {"time": "when", "time_shares": "60%,20%"},
            {},
            "time_shares must be two values such as 0",
        ),
        (
            {"time": "when", "time_shares": "0.5,0.2", "time_cuts": "1,2"},
            {},
            "time_shares and time_cuts both divide the nodes; give one",
        ),
        (
            {"time": "when", "time_cuts": "2020-01-01,2020-01-05"},
            {"split": ["train"] * 12 + ["val"] * 4 + ["test"] * 4},
            "time_cuts divides the nodes, and so does the column 'split' of nodes; leave one",
        ),
        (
            {"time": "when"},
            {"split": ["test", "train", "val", ""] * 5},
            "every train node is earlier than every val node",
        ),
    ],
)
def test_what_cannot_be_a_time_is_refused(options, columns, message):
    with pytest.raises(gcnii.InputError, match=message):
        gcnii.from_frames(*tables(**columns), **options)


def test_dates_of_nodes_and_numbers_of_edges_do_not_go_together():
    nodes, edges = tables()
    edges["at"] = range(19)
    with pytest.raises(
        gcnii.DataError, match="in the column 'at', are numbers, and those of nodes"
    ):
        gcnii.from_frames(nodes, edges, time="when", time_edges="at")


@pytest.mark.filterwarnings("ignore:edges. type makes 2 types")
def test_edges_of_several_types_have_times_of_their_own():
    nodes, _ = tables(when=range(20))
    ends = {"source": [0, 0, 0, 1], "target": [1, 1, 1, 2]}
    edges = pd.DataFrame({**ends, "type": ["x", "y", "x", "y"], "at": [9, 5, 7, 3]})
    graph = gcnii.from_frames(nodes, edges, time="when", time_edges="at")
    found = zip(graph.edges.T.tolist(), graph.edge_types, graph.edge_times, strict=True)
    assert sorted(found) == [([0, 1], 0, 7), ([0, 1], 1, 5), ([1, 2], 1, 3)]
