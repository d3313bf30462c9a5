"""P̃ is the matrix of the authors' code, and the sparse product equals the dense one."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from support.exact import exact_matrix
from torch.autograd import gradcheck
from torch.func import vmap

from gcnii.errors import InputError
from gcnii.graph import Graph
from gcnii.propagation import Adjacency, Sparse, adjacency, propagation_matrix
from gcnii.train.plan import make_plan
from gcnii.train.task import make_adjacency

STAR = Graph(X=np.eye(4), edges=[[0, 0, 0], [1, 2, 3]])
# 2 links to itself, none to 3
WEB = Graph(X=np.eye(4), edges=[[0, 0, 1, 2, 2], [1, 2, 2, 2, 0]], directed=True)


def literal(A):
    A = np.asarray(A, dtype=float) + np.eye(len(A))
    D = np.diag(A.sum(1) ** -0.5)
    return D @ A @ D


def random_matrix(rng, n=7, d=5):
    return Sparse.from_scipy(sp.csr_array(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)))


def test_the_star_has_the_weights_computed_by_hand():
    P = exact_matrix(STAR).to_dense()
    hub = 8**-0.5  # 1 / √(4 · 2): the centre has degree 3 + 1, a leaf 1 + 1
    expected = [[1 / 4, hub, hub, hub], [hub, 1 / 2, 0, 0], [hub, 0, 1 / 2, 0], [hub, 0, 0, 1 / 2]]
    torch.testing.assert_close(P, torch.tensor(expected, dtype=torch.float64))


def test_undirected_edges_may_be_listed_once_or_twice():
    twice = Graph(X=np.eye(4), edges=np.concatenate([STAR.edges, STAR.edges[::-1], STAR.edges], 1))
    assert torch.equal(exact_matrix(twice).to_dense(), exact_matrix(STAR).to_dense())


OUT = np.array([[0, 1, 1, 0], [0, 0, 1, 0], [1, 0, 1, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("choice", "A"),
    [
        ({}, OUT),  # the authors: out-neighbours, row degrees, a self-loop makes the diagonal 2
        ({"direction": "in"}, OUT.T),
        ({"direction": "both"}, np.maximum(OUT, OUT.T)),
        ({"loops": "remove"}, OUT - np.diag(np.diag(OUT))),
    ],
)
def test_web_graphs_are_propagated_as_named(choice, A):
    np.testing.assert_allclose(
        exact_matrix(WEB, **choice).to_dense().numpy(), literal(A), atol=1e-12
    )


@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_without_self_loops_rows_and_columns_have_degrees_of_their_own(direction):
    P = exact_matrix(WEB, direction=direction, loops="none").to_dense().numpy()
    A = {"out": OUT, "in": OUT.T, "both": np.maximum(OUT, OUT.T)}[direction] * (1 - np.eye(4))
    expected = np.zeros((4, 4))
    for u, v in zip(*A.nonzero(), strict=True):
        expected[u, v] = 1 / np.sqrt(A[u].sum() * A[:, v].sum())
    np.testing.assert_allclose(P, expected, atol=1e-12)
    assert np.linalg.norm(P, 2) <= 1 + 1e-12


def test_a_walk_without_self_loops_goes_to_the_neighbours_alone():
    P = propagation_matrix(WEB, loops="none", norm="walk", dtype=torch.float64).to_dense()
    assert P.tolist() == [[0, 0.5, 0.5, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("norm", ["symmetric+I", "first-order", "enhanced"])
def test_a_norm_that_adds_self_loops_is_refused_without_them(norm):
    with pytest.raises(InputError, match=f"norm {re.escape(norm)} gives every node a self-loop"):
        propagation_matrix(WEB, loops="none", norm=norm)


@pytest.mark.parametrize("settings", [{"geometry": "isomap"}, {"diffusion": "ppr"}])
def test_a_geometry_or_a_diffusion_needs_self_loops(settings):
    with pytest.raises(InputError, match="loops must be keep or remove, got none"):
        make_adjacency(WEB, make_plan("gcnii", {"loops": "none", **settings}))


def test_links_dropped_without_self_loops_leave_no_self_loop():
    links = Adjacency.of(adjacency(WEB, loops="none"), loops="none")
    kept = (links.pattern.row_of != 0).double()
    P = links.matrix(kept).to_dense()
    assert P[0].abs().max() == 0
    assert P.diagonal().abs().max() == 0
    assert P[1, 2] == 1  # the only link into 2 that is left


def test_a_node_without_neighbours_keeps_itself():
    assert exact_matrix(WEB).to_dense()[3].tolist() == [0, 0, 0, 1]


def test_eigenvalues_of_p_lie_above_minus_one_and_reach_one():
    eigenvalues = torch.linalg.eigvalsh(exact_matrix(STAR).to_dense())
    assert eigenvalues.min() > -1
    assert eigenvalues.max() == pytest.approx(1)


def test_the_product_and_its_gradient_are_those_of_the_dense_matrix():
    M = random_matrix(np.random.default_rng(0))
    H = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda H: M @ H, H)
    torch.testing.assert_close(M @ H, M.to_dense() @ H)


def test_the_gradient_of_the_gradient_is_right_too():
    M = random_matrix(np.random.default_rng(1))
    H = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda H: (M @ H) ** 2, H)


def test_replicas_become_columns_and_equal_single_products_to_the_last_bit():
    M = random_matrix(np.random.default_rng(2), 40, 40)
    H = torch.randn(6, 40, 16, dtype=torch.float64)
    assert torch.equal(vmap(lambda H: M @ H)(H), torch.stack([M @ one for one in H]))
    sideways = H.permute(1, 2, 0)
    assert torch.equal(vmap(lambda H: M @ H, in_dims=2)(sideways), vmap(lambda H: M @ H)(H))


def test_replicas_with_their_own_values_become_one_block_diagonal_product():
    M = random_matrix(np.random.default_rng(3))
    values = torch.randn(4, len(M.values), dtype=torch.float64)
    W = torch.randn(4, 5, 3, dtype=torch.float64, requires_grad=True)
    together = vmap(lambda values, W: M.with_values(values) @ W)(values, W)
    alone = torch.stack([M.with_values(own) @ w for own, w in zip(values, W, strict=True)])
    torch.testing.assert_close(together, alone)
    G = torch.randn_like(alone)
    torch.testing.assert_close(
        *(torch.autograd.grad(out, W, G, retain_graph=True)[0] for out in (together, alone))
    )


def test_the_gradient_of_folded_replicas_is_that_of_single_ones():
    M = random_matrix(np.random.default_rng(4), 9, 9)
    H = torch.randn(3, 9, 2, dtype=torch.float64, requires_grad=True)
    G = torch.randn(3, 9, 2, dtype=torch.float64)
    (together,) = torch.autograd.grad(vmap(lambda H: M @ H)(H), H, G)
    (alone,) = torch.autograd.grad(torch.stack([M @ one for one in H]), H, G)
    torch.testing.assert_close(together, alone)


def test_a_linear_layer_takes_sparse_features():
    X = random_matrix(np.random.default_rng(5))
    layer = torch.nn.Linear(5, 3).double()
    torch.testing.assert_close(layer(X), layer(X.to_dense()))


def test_rows_without_entries_are_zero():
    M = Sparse.from_scipy(sp.csr_array(([1.0], ([2], [0])), shape=(4, 2)))
    assert (M @ torch.ones(2, 3, dtype=torch.float64)).sum(1).tolist() == [0, 0, 3, 0]


@pytest.mark.cuda
def test_the_product_is_the_same_on_cuda():
    M = random_matrix(np.random.default_rng(6), 300, 200).to("cuda", torch.float32)
    H = torch.randn(5, 200, 8, device="cuda", requires_grad=True)
    together = vmap(lambda H: M @ H)(H)
    torch.testing.assert_close(together, M.to_dense() @ H, rtol=1e-4, atol=1e-4)
    G = torch.randn_like(together)
    torch.testing.assert_close(
        torch.autograd.grad(together, H, G)[0], M.to_dense().T @ G, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(("name", "loops"), [("citeseer", 124), ("pubmed", 3), ("texas", 16)])
def test_self_loops_of_the_files_give_the_diagonal_2_unless_removed(real_data, name, loops):
    graph = real_data(name)
    looped = np.zeros(graph.n, bool)
    looped[graph.edges[0][graph.edges[0] == graph.edges[1]]] = True
    assert looped.sum() == loops
    for choice, entry in (("keep", 1 + looped), ("remove", np.ones(graph.n))):
        P = exact_matrix(graph, loops=choice)
        stored = P.pattern.rows.diff().numpy()
        rows = np.repeat(np.arange(graph.n), stored)
        diagonal = P.values.numpy()[rows == P.pattern.columns.numpy()]
        np.testing.assert_allclose(diagonal, entry / (stored - 1 + entry))  # P̃_ii = Ã_ii / D̃_i


def test_on_chameleon_a_node_gathers_from_its_out_neighbours(real_data):
    graph = real_data("chameleon")
    P = exact_matrix(graph, loops="remove")
    out_degree = np.bincount(graph.edges[0][graph.edges[0] != graph.edges[1]], minlength=graph.n)
    assert (P.pattern.rows.diff().numpy() == out_degree + 1).all()
