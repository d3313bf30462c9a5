"""Groups of nodes by what the graph around them is like, against literal counting."""

import networkx as nx
import numpy as np
import pytest

from gcnii import Graph
from gcnii.inference.groups import (
    NodeNeighbourhoods,
    accuracies,
    degree_spans,
    quarters,
    steps,
)


@pytest.fixture(scope="module")
def graph():
    random = np.random.default_rng(0)
    return Graph(
        X=np.ones((60, 1)),
        edges=random.integers(0, 55, (2, 70)),
        y=random.integers(-1, 3, 60),
        directed=True,
    )


@pytest.fixture(scope="module")
def G(graph):
    G = nx.Graph()
    G.add_nodes_from(range(graph.n))
    G.add_edges_from((u, v) for u, v in graph.edges.T.tolist() if u != v)
    return G


def test_degree_and_homophily_are_counted_over_both_directions(graph, G):
    around = NodeNeighbourhoods(graph)
    assert around.degree.tolist() == [G.degree(i) for i in range(graph.n)]
    for i in range(graph.n):
        labels = [graph.labels[j] for j in G[i] if graph.labels[j] >= 0]
        expected = np.mean(np.array(labels) == graph.labels[i]) if labels else np.nan
        if graph.labels[i] < 0:
            expected = np.nan
        assert around.homophily[i] == pytest.approx(expected, nan_ok=True)


def test_distance_is_the_number_of_steps_up_to_three(graph, G):
    train = np.arange(graph.n) % 17 == 0
    lengths = nx.multi_source_dijkstra_path_length(G, set(np.flatnonzero(train).tolist()))
    expected = [lengths.get(i, np.inf) for i in range(graph.n)]
    found = NodeNeighbourhoods(graph).distance(train)
    assert found.tolist() == [one if one <= 3 else np.inf for one in expected]


def test_tiny_spans_of_degrees_are_joined():
    degree = np.array([0] * 3 + [1] * 30 + [2] * 20 + [5] * 4 + [9] * 7 + [200] * 2)
    right = np.arange(len(degree)) % 2 == 0
    rows = accuracies(degree_spans(degree), right)
    assert [(row["group"], row["nodes"]) for row in rows] == [
        *(("0–1", 33), ("2–3", 20), ("4 and more", 13)),
    ]
    assert rows[0]["accuracy"] == pytest.approx(right[:33].mean())
    assert rows[0]["low"] < rows[0]["accuracy"] < rows[0]["high"]


def test_there_are_at_most_eight_spans():
    degree = np.repeat(2 ** np.arange(14), 20)
    rows = accuracies(degree_spans(degree), np.ones(len(degree), bool))
    assert [row["group"] for row in rows] == [
        *("1", "2–3", "4–7", "8–15", "16–31", "32–63", "64 and more"),
    ]


def test_homophily_and_distance_have_groups_for_what_is_not_there():
    right = np.array([True, True, False, False])
    rows = accuracies(quarters(np.array([0.0, 0.25, 1.0, np.nan])), right)
    assert [(row["group"], row["nodes"], row["accuracy"]) for row in rows] == [
        ("0% to 25%", 1, 1.0),
        ("25% to 50%", 1, 1.0),
        ("75% to 100%", 1, 0.0),
        ("no labelled neighbour", 1, 0.0),
    ]
    rows = accuracies(steps(np.array([1, 1, 3, np.inf])), right)
    assert [row["group"] for row in rows] == ["1", "3", "more, or none in reach"]
