"""Accuracy by degree over several runs: the groups of a line, and how certain each is."""

import json
from math import inf

import numpy as np
import pytest

from gcnii.analysis import by_degree
from gcnii.graph import Graph, Split
from gcnii_paper.report.figures import DegreeGroup, curves


@pytest.fixture
def star():
    """Node 0 is joined to 1, 2, 3 (to 1 in both directions) and to itself; node 4 is isolated."""
    roles = ["train", "val", "test", "test", "test"]
    edges = [[0, 0, 0, 1, 0], [1, 2, 3, 0, 0]]
    return Graph(
        X=np.eye(5), edges=edges, y=[0, 1, 0, 1, 1], splits=(Split.of_roles(roles),), name="star"
    )


def test_hubs_have_more_than_100_neighbours():
    roles = ["train"] * 50 + ["val"] * 51 + ["test"]
    edges = [np.zeros(101, int), np.arange(1, 102)]
    graph = Graph(X=np.eye(102), edges=edges, y=np.zeros(102), splits=(Split.of_roles(roles),))
    everyone, tested = curves("star", 2, [by_degree(graph, np.zeros(102))])
    assert everyone.hubs == DegreeGroup(101, inf, 1, (1.0,))
    assert [group.low for group in everyone.groups] == [1, 64]
    assert tested.hubs is None


def test_a_curve_is_the_mean_over_runs(star):
    runs = [by_degree(star, np.array(labels)) for labels in ([0, 1, 1, 1, 1], [1, 1, 0, 1, 1])]
    everyone, tested = curves("star", 2, json.loads(json.dumps(runs)))
    assert [group.accuracies for group in everyone.groups] == [(2 / 3, 1), (1, 0)]
    assert [group.accuracy for group in tested.groups] == [0.75]


@pytest.mark.parametrize(
    ("right", "nodes", "low", "high"),
    # the last: Newcombe 1998, table I
    [(0, 1, 0.0, 0.7935), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)],
)
def test_the_interval_is_wilsons(right, nodes, low, high):
    assert DegreeGroup(1, 2, nodes, (right / nodes,)).interval == pytest.approx(
        (low, high), abs=5e-5
    )


def test_more_runs_on_the_same_nodes_do_not_narrow_the_interval():
    assert DegreeGroup(1, 2, 10, (0.5,) * 100).interval == DegreeGroup(1, 2, 10, (0.5,)).interval


@pytest.mark.parametrize(
    ("name", "everyone", "tested"),
    [
        ("cora", (485, 1136, 883, 157, 35, 8, 3, 1), (178, 436, 317, 58, 7, 3, 1)),
        ("pubmed", (9094, 4941, 2470, 1892, 1052, 240, 24, 4), (478, 247, 102, 88, 71, 13, 1)),
    ],
)
def test_the_real_graphs_have_the_counted_groups(name, everyone, tested, real_data):
    graph = real_data(name)
    for line, counts in zip(
        curves(name, 2, [by_degree(graph, graph.labels)]), (everyone, tested), strict=True
    ):
        assert tuple(group.nodes for group in line.groups) == counts
