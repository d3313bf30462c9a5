"""Edge weights are A's entries: in every norm, in diffusions and with DropEdge."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import scipy.linalg
import torch
from support.exact import exact_matrix

from gcnii.dropout import drop_edges, epoch_key, kept_of, keyed
from gcnii.graph import Graph
from gcnii.propagation import Adjacency, Norm, adjacency, diffuse

every_norm = pytest.mark.parametrize("norm", get_args(Norm))


def weighted(n=12, m=40, directed=True, seed=0):
    """Some edges are repeated, some are loops, and the last node has none."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n - 1, (2, m))
    edges = edges if directed else np.sort(edges, 0)
    return Graph(X=np.eye(n), edges=edges, weights=5 * rng.random(m), directed=directed)


def dense_A(graph):
    A = np.zeros((graph.n, graph.n))
    np.add.at(A, tuple(graph.edges), graph.weights)
    return A if graph.directed else np.maximum(A, A.T)


def inverse(D, power):
    return np.diag(np.where(D > 0, np.where(D > 0, D, 1.0) ** power, 0))


def literal(A, norm):
    """Each norm as Adjacency's docstring has it."""
    I, D, D1 = np.eye(len(A)), A.sum(1), A.sum(1) + 1
    symmetric = inverse(D1, -0.5) @ (A + I) @ inverse(D1, -0.5)
    walk = inverse(D1, -1.0) @ (A + I)
    return {
        "symmetric": symmetric,
        "walk": walk,
        "symmetric+I": symmetric + I,
        "first-order": I + inverse(D, -0.5) @ A @ inverse(D, -0.5),
        "mean": inverse(D, -1.0) @ A,
        "enhanced": walk + np.diag(np.diag(walk)),
    }[norm]


@every_norm
@pytest.mark.parametrize("directed", [False, True])
def test_every_norm_of_weighted_links_is_its_equation(norm, directed):
    graph = weighted(directed=directed)
    found = exact_matrix(graph, norm=norm).to_dense().numpy()
    np.testing.assert_allclose(found, literal(dense_A(graph), norm), atol=1e-12)


@pytest.mark.parametrize(
    ("choice", "A"),
    [
        ({"direction": "in"}, lambda A: A.T),
        ({"direction": "both"}, lambda A: np.maximum(A, A.T)),
        ({"loops": "remove"}, lambda A: A - np.diag(np.diag(A))),
    ],
)
def test_direction_and_loops_are_chosen_with_weights_as_without(choice, A):
    graph = weighted()
    found = exact_matrix(graph, **choice).to_dense().numpy()
    np.testing.assert_allclose(found, literal(A(dense_A(graph)), "symmetric"), atol=1e-12)


def test_an_undirected_weight_may_be_listed_once_or_in_both_directions():
    graph = weighted(directed=False)
    u, v = graph.edges
    back = graph.edges[::-1, u != v]
    twice = replace(
        graph,
        edges=np.concatenate([graph.edges, back], 1),
        weights=np.append(graph.weights, graph.weights[u != v]),
    )
    np.testing.assert_allclose(adjacency(twice).toarray(), adjacency(graph).toarray())


def test_weights_of_1_are_no_weights_unless_an_edge_is_repeated():
    once = Graph(X=np.eye(4), edges=[[0, 1, 2], [1, 2, 2]])
    P = exact_matrix(replace(once, weights=np.ones(3))).to_dense()
    assert torch.equal(P, exact_matrix(once).to_dense())
    twice = Graph(X=np.eye(2), edges=[[0, 0], [1, 1]])
    assert adjacency(twice).toarray().tolist() == [[0, 1], [1, 0]]
    assert adjacency(replace(twice, weights=[1, 1])).toarray().tolist() == [[0, 2], [2, 0]]


@every_norm
@pytest.mark.parametrize("weight", [1e-30, 1e30])
def test_the_smallest_and_the_largest_weights_stay_finite_in_float32(norm, weight):
    edges = np.array([[0, 0, 1, 3], [1, 2, 2, 3]])
    graph = Graph(X=np.eye(4), edges=edges, weights=np.full(4, weight))
    links = Adjacency.of(adjacency(graph), norm)
    P, exact = links.to(torch.float32).whole.to_dense(), links.whole.to_dense()
    torch.testing.assert_close(P.double(), exact, rtol=1e-5, atol=1e-35)
    assert exact[0, 1] > 0


@pytest.mark.parametrize("kind", ["ppr", "heat"])
def test_a_diffusion_is_over_the_weighted_links(kind):
    graph = weighted(directed=False)
    T, I = literal(dense_A(graph), "symmetric"), np.eye(graph.n)
    exact = 0.2 * np.linalg.inv(I - 0.8 * T) if kind == "ppr" else scipy.linalg.expm(2 * (T - I))
    S = diffuse(adjacency(graph), kind, teleport=0.2, heat_time=2.0, top_k=0, threshold=0.0)
    np.testing.assert_allclose(S.toarray(), exact / exact.sum(0), atol=1e-9)


def test_the_links_that_drop_edge_leaves_keep_their_weights():
    graph = weighted(directed=False)
    A = adjacency(graph, loops="remove")
    with keyed(epoch_key(torch.tensor([0]), 0)[0]):
        P = drop_edges(Adjacency.of(A), kept_of(0.5), "pairs")
    kept = (P.to_dense().numpy() != 0) * A.toarray()
    assert 0 < np.count_nonzero(kept) < A.nnz
    np.testing.assert_allclose(P.to_dense().numpy(), literal(kept, "symmetric"), atol=1e-12)
