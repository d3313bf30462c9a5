"""Links: each once, with its direction, its weight and its effect."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.small_models import web

from gcnii import fit, load
from gcnii.graph import Graph, Split
from gcnii.inference.attribution import (
    BestRun,
    ExplainedScore,
    near,
    strongest,
)

ROLES = np.array(["train", "val", "test"] * 10, object)


def network_of(graph, **settings):
    graph = replace(graph, splits=(Split.of_roles(ROLES[: graph.n]),))
    result = fit(graph, seeds=[0], layers=2, width=6, epochs=2, device="cpu", **settings)
    return result, BestRun.of(result, graph, "cpu")


def edges_without_loops(graph):
    return {(u, v) for u, v in graph.edges.T.tolist() if u != v}


def test_an_undirected_link_is_one_and_a_loop_is_none():
    graph = replace(web(), directed=False)
    _, network = network_of(graph)
    links = network.links
    pairs = {frozenset(edge) for edge in edges_without_loops(graph)}
    assert len(links) == len(pairs) == graph.m
    assert {frozenset(ends) for ends in links.ends.T.tolist()} == pairs


@pytest.fixture
def two_threads():
    """Two threads for torch, which has one in other tests."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_the_ends_of_a_link_are_two_nodes_however_many_threads_write_them(two_threads):
    graph = load("csbm", n=20_000, degree=10)
    result = fit(graph, "sgc", seeds=[0], layers=1, epochs=1, device="cpu")
    links = BestRun.of(result, graph, "cpu").links
    expected = np.unique(np.sort(graph.edges, 0), axis=1)
    assert np.array_equal(np.unique(links.ends, axis=1), expected)


@pytest.mark.parametrize("direction", ["out", "in"])
def test_a_one_way_link_is_named_as_the_graph_has_it(direction):
    graph = web()
    _, network = network_of(graph, direction=direction)
    ends = network.links.ends.T.tolist()
    assert sorted(map(tuple, ends)) == sorted(edges_without_loops(graph))


def test_hops_follow_what_is_gathered():
    chain = Graph(
        X=np.eye(6), edges=np.array([[0, 1, 2], [1, 2, 3]]), y=np.arange(6) % 2, directed=True
    )
    _, network = network_of(chain, direction="out")
    assert network.paths(0)[0].tolist() == [0, 1, 2, 3, np.inf, np.inf]
    assert network.paths(3)[0].tolist() == [np.inf, np.inf, np.inf, 0, np.inf, np.inf]
    _, network = network_of(chain, direction="in")
    assert network.paths(3)[0].tolist() == [3, 2, 1, 0, np.inf, np.inf]


def test_a_link_of_a_weighted_graph_is_dropped_with_its_weight():
    graph = replace(web(), directed=False)
    graph = Graph(X=graph.X, edges=np.unique(np.sort(graph.edges, 0), axis=1), y=graph.y)
    weights = np.random.default_rng(0).uniform(0.5, 3, graph.edges.shape[1])
    graph = replace(graph, weights=weights)
    # of the others, the median or the ranks would be others without it
    result, network = network_of(graph, edge_weights="raw")
    links = network.links
    kept = np.ones(graph.edges.shape[1], bool)
    gone = {frozenset(links.ends[:, i].tolist()) for i in (0, 5)}
    kept = [frozenset(edge) not in gone for edge in graph.edges.T.tolist()]
    smaller = replace(graph, edges=graph.edges[:, kept], weights=graph.weights[kept])
    np.testing.assert_allclose(
        network.predict_proba(links.without(np.array([0, 5]))),
        result.predict_proba(smaller, "cpu"),
        rtol=1e-5,
    )


def test_the_neighbourhood_is_what_is_within_two_hops_at_both_ends():
    graph = replace(web(), directed=False)
    _, network = network_of(graph)
    links = network.links
    hops, _ = network.paths(4)
    expected = [i for i, (u, v) in enumerate(links.ends.T) if max(hops[u], hops[v]) <= 2]
    assert near(links.ends, hops).tolist() == expected
    assert 0 < len(expected) < len(links)


def test_the_slope_is_taken_halfway_for_the_nodes_own_links_alone():
    _, network = network_of(replace(web(), directed=False))
    pattern, factors = network.task.adjacency.pattern, network.halfway(4)
    for u, v, factor in zip(pattern.row_of, pattern.columns, factors, strict=True):
        assert factor == (0.5 if 4 in (u, v) and u != v else 1)


def test_only_links_that_support_the_label_are_named():
    assert strongest(np.array([0.1, -2.0, 0.0, 0.3]), 3).tolist() == [3, 0]


def test_links_of_a_diffusion_are_said_to_be_its_own():
    graph = replace(web(), directed=False)
    result, network = network_of(graph, diffusion="ppr", top_k=4)
    found = result.explain(network.task.graph, 4, device="cpu")
    assert "edges are those of the diffusion (ppr), which the model gathers over" in found.notes
    assert np.isfinite(network.effects(ExplainedScore(4, 0))).all()


def test_a_one_way_link_that_is_gathered_over_both_ways_is_named_as_the_graph_has_it():
    edges = np.array([[4, 0, 2, 3, 5], [1, 3, 3, 2, 0]])  # 2 and 3 point to each other
    graph = Graph(X=np.eye(6), edges=edges, y=np.arange(6) % 2, directed=True)
    _, network = network_of(graph, direction="both")
    ends = network.links.ends.T.tolist()
    assert sorted(ends) == [[0, 3], [2, 3], [4, 1], [5, 0]]
