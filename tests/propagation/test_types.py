"""P of several types of edges against its equation, dense."""

import numpy as np
import pytest
import torch

from gcnii.graph import Graph
from gcnii.propagation import TypedAdjacency, adjacency, adjacency_of_types

N = 12


def typed(seed: int = 0, types: int = 3, **more: object) -> Graph:
    random = np.random.default_rng(seed)
    edges = random.integers(0, N - 1, (2, 30))  # the last node has no edge
    return Graph(X=np.eye(N), edges=edges, edge_types=random.integers(0, types, 30), **more)


def dense(graph: Graph, shares: np.ndarray) -> np.ndarray:
    """Σ s_t P_t over the types that a node has, divided by the sum of their shares."""
    total, whole = np.zeros((N, N)), np.zeros(N)
    each = [A.toarray() for A in adjacency_of_types(graph, "out", "keep", "raw")]
    nowhere = ~np.any([A.any(1) for A in each], axis=0)
    for share, A in zip(shares, each, strict=True):
        looped = A + np.eye(N)
        D = np.diag(looped.sum(1) ** -0.5)
        has = A.any(1) | nowhere
        total += share * has[:, None] * (D @ looped @ D)
        whole += share * has
    return total / whole[:, None]


def matrix(graph: Graph):
    return TypedAdjacency.of_types(adjacency_of_types(graph, "out", "keep", "raw")).matrix()


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 30)])
@pytest.mark.parametrize("directed", [False, True])
def test_a_layer_gathers_over_the_mean_of_the_types_that_a_node_has(directed, weights):
    if not directed and weights is not None:
        weights = np.ones(30)
    graph, w = typed(directed=directed, weights=weights), torch.tensor([0.3, -1.0, 2.0]).double()
    P = matrix(graph)
    found = P.mixed(w).to_dense().numpy()
    np.testing.assert_allclose(found, dense(graph, w.softmax(0).numpy()), atol=1e-12)
    np.testing.assert_allclose(P.to_dense().numpy(), dense(graph, np.full(3, 1 / 3)), atol=1e-12)


def test_a_node_without_links_keeps_itself():
    P = matrix(typed()).mixed(torch.tensor([1.0, 2.0, 3.0]).double()).to_dense()
    assert P[-1].tolist() == [0] * (N - 1) + [1]


def test_gradients_reach_the_weights_of_types():
    P, w = matrix(typed()), torch.tensor([0.3, -1.0, 2.0]).double().requires_grad_()
    H = torch.randn(N, 4).double()
    assert torch.autograd.gradcheck(lambda w: P.mixed(w) @ H, w)


def test_a_link_that_is_left_out_is_in_none_of_its_types():
    graph = typed()
    links = TypedAdjacency.of_types(adjacency_of_types(graph, "out", "keep", "raw"))
    kept = torch.tensor(adjacency(graph).toarray()[links.pattern.row_of, links.pattern.columns] < 2)
    gone = (links.pattern.row_of == 0) & (links.diagonal == 0)
    P = links.matrix((kept & ~gone).double()).to_dense()
    assert P[0].count_nonzero() == 1


def test_the_induced_matrix_is_that_of_the_induced_graph():
    graph, nodes = typed(), torch.arange(0, 6)
    links = TypedAdjacency.of_types(adjacency_of_types(graph, "out", "keep", "raw"))
    inside = (graph.edges < 6).all(0)
    few = Graph(X=np.eye(N), edges=graph.edges[:, inside], edge_types=graph.edge_types[inside],
                edge_type_names=graph.type_names)  # fmt: skip
    w = torch.tensor([0.3, -1.0, 2.0]).double()
    found = links.induced(nodes).matrix().mixed(w).to_dense()
    torch.testing.assert_close(found, matrix(few).mixed(w).to_dense()[:6, :6])


@pytest.mark.parametrize("ends", [(0, 1), (1, 0)])
def test_weights_of_two_types_add_up_however_their_edges_are_listed(ends):
    edges, types = np.array([(0, 1), ends]).T, [0, 1]
    graph = Graph(X=np.eye(2), edges=edges, weights=[2, 3], edge_types=types)
    assert adjacency(graph).toarray().tolist() == [[0, 5], [5, 0]]
