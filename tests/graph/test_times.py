"""Times divide a graph into the past, what follows, and the last; the past is a graph, too."""

import dataclasses

import numpy as np
import pytest

import gcnii
from gcnii.data.splits import about_times, every_label
from gcnii.graph.past import past

NAN, n = np.nan, 10
EDGES = np.stack([np.arange(n - 1), np.arange(1, n)])


def path(**more):
    """Node i came at time i, and is linked to the one before it."""
    return gcnii.Graph(X=np.eye(n), edges=EDGES, y=[0, 1] * (n // 2), times=range(n), **more)


def roles(graph):
    (split,) = graph.splits
    return [np.flatnonzero(mask).tolist() for mask in (split.train, split.val, split.test)]


def test_the_past_trains_what_follows_validates_and_the_last_test():
    assert roles(gcnii.split_by_time(path())) == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]


def test_nodes_of_one_time_have_one_role():
    graph = dataclasses.replace(path(), times=[0, 1, 1, 1, 1, 1, 1, 1, 2, 3])
    assert roles(gcnii.split_by_time(graph)) == [list(range(8)), [8], [9]]


def test_cuts_are_the_times_at_which_validation_and_testing_begin():
    assert roles(gcnii.split_by_time(path(), cuts=(2, 9))) == [[0, 1], list(range(2, 9)), [9]]


def test_nodes_without_a_label_or_a_time_have_no_role():
    graph = dataclasses.replace(path(), times=[*range(9), NAN], y=[-1] + [0, 1, 0] * 3)
    graph = gcnii.split_by_time(graph)
    assert roles(graph) == [[1, 2, 3, 4, 5], [6], [7, 8]]
    assert about_times(graph) == (
        "train up to 5 (5, 62%), validate up to 6 (1, 12%), test up to 8 (2, 25%); "
        "1 node has no time and no role"
    )


def test_where_every_label_trains_a_node_without_a_time_has_no_role():
    graph = every_label(gcnii.split_by_time(dataclasses.replace(path(), times=[*range(9), NAN])))
    assert roles(graph)[:2] == [list(range(9))] * 2
    assert past(graph, "train").m == 8


def test_the_past_has_the_edges_among_nodes_that_were_there():
    graph = gcnii.split_by_time(path())
    assert past(graph, "train").edges.max() == 5
    assert past(graph, "train").m == 5
    assert past(graph, "val").m == 7
    assert past(graph, "train").present.tolist() == [True] * 6 + [False] * 4


def test_an_edge_that_arrives_later_is_not_there_yet():
    graph = gcnii.split_by_time(path(edge_times=[0, 9, 9, 6, 0, 0, 0, NAN, 0]))
    assert past(graph, "train").edges.T.tolist() == [[0, 1], [4, 5]]
    assert past(graph, "val").edges.T.tolist() == [[0, 1], [3, 4], [4, 5], [5, 6], [6, 7]]


def test_weights_follow_their_edges_into_the_past():
    weights = np.arange(1.0, 10)
    graph = gcnii.split_by_time(path(weights=weights, edge_times=range(9)))
    assert past(graph, "train").weights.tolist() == [1, 2, 3, 4, 5]


def test_a_graph_without_times_is_its_own_past():
    graph = gcnii.load("csbm", n=60)
    assert past(graph, "train") is graph


def test_a_split_without_validation_gives_its_latest_nodes_to_it():
    split = gcnii.Split(
        train=[True] * 8 + [False] * 2, val=[False] * 10, test=[False] * 8 + [True] * 2
    )
    assert roles(path(splits=(split,))) == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]


def test_saved_and_joined_graphs_keep_their_times(tmp_path):
    graph = gcnii.split_by_time(path(edge_times=range(9), dated=True))
    again = gcnii.load(gcnii.save(graph, tmp_path / "graph.safetensors"))
    assert again.fingerprint == graph.fingerprint
    assert again.dated
    assert again.edge_times.tolist() == graph.edge_times.tolist()
    late = dataclasses.replace(path(), splits=(), times=range(50, 60))
    both = gcnii.join([dataclasses.replace(path(), splits=()), late], ["train", "val"])
    assert both.times.tolist() == [*range(10), *range(50, 60)]


def test_times_count_for_the_fingerprint_and_their_absence_does_not():
    bare = dataclasses.replace(path(), times=None)
    later = dataclasses.replace(path(), times=range(1, 11))
    assert len({bare.fingerprint, path().fingerprint, later.fingerprint}) == 3
    assert gcnii.load("csbm", n=60).fingerprint.startswith("5f6ba69493bd3d7a")


def test_repeated_edges_are_known_from_their_first_time():
    edges = [[0, 1, 2], [1, 0, 1]]
    with pytest.raises(gcnii.GraphError, match="between 0 and 1 has weights of several times"):
        gcnii.Graph(
            X=np.eye(3), edges=edges, weights=[1, 1, 1], times=[0, 0, 0], edge_times=[1, 2, 3]
        )


def of_roles(*words):
    return (gcnii.Split.of_roles(list(words) * 2),)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"times": [1, 2]}, "times must hold 10 numbers, NaN where one is unknown, got int64"),
        ({"times": [np.inf] * 10}, "times must be finite or NaN, got infinity in row 0"),
        ({"times": None, "edge_times": range(9)}, "edge_times are given without times"),
        (
            {"splits": of_roles("train", "train", "val", "val", "test")},
            "every train node is earlier than every val node, but the split has a train node of 6 "
            "and a val node of 2; divide the nodes by time, or leave the times out",
        ),
        (
            {"splits": of_roles("train", "val", "test", "", "") * 2},
            "times divide a graph once, but graph has 2 splits",
        ),
        (
            {"times": [NAN] * 10, "splits": of_roles("train", "val", "test", "", "")},
            "the train node in row 0 has no time; give it one, or leave it out of the split",
        ),
    ],
)
def test_what_times_cannot_be_is_refused(given, message):
    with pytest.raises(gcnii.GraphError, match=message):
        gcnii.Graph(**{"X": np.eye(10), "edges": EDGES, "y": [0] * 10, "times": range(10)} | given)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"train": 0.9, "val": 0.1}, "must be above 0 and leave some to test, got 0.9 and 0.1"),
        ({"cuts": (0, 5)}, "no labelled node has a time to train on"),
        ({"cuts": (5.2, 5.6)}, "no labelled node has a time to validate on"),
        ({"cuts": (5, 99)}, "no labelled node has a time to test on"),
    ],
)
def test_cuts_that_leave_a_role_empty_are_refused(how, message):
    with pytest.raises(gcnii.GraphError, match=message):
        gcnii.split_by_time(path(), **how)


def test_two_times_cannot_divide_a_graph():
    graph = dataclasses.replace(path(), times=[0] * 5 + [1] * 5)
    with pytest.raises(gcnii.GraphError, match="have 2 different times, and dividing them by time"):
        gcnii.split_by_time(graph)
