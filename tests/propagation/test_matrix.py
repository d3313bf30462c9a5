"""`gcnii.propagation_matrix`: one P for graphs, edge lists and sparse matrices, in any loop."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import gcnii
from gcnii.graph import Graph

EDGES = np.array([[0, 0, 1, 3], [1, 2, 2, 3]])  # a triangle, and a node with a loop
GRAPH = Graph(X=np.eye(4), edges=EDGES)
P = gcnii.propagation_matrix(GRAPH)


def both_ways(edges):
    return torch.tensor(np.concatenate([edges, edges[::-1]], 1))


def sources():
    A = sp.csr_array(([1.0] * 7, both_ways(EDGES)[:, :7].numpy()), (4, 4))
    yield "edge_index, once", (torch.tensor(EDGES), 4)
    yield "edge_index, both ways", (both_ways(EDGES), 4)
    yield "edge_index, numpy", (EDGES, 4)
    yield "scipy array", (A,)
    yield "scipy matrix", (sp.csc_matrix(A),)
    yield "torch COO", (torch.tensor(A.toarray()).to_sparse(),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch: CSR is in beta
        yield "torch CSR", (torch.tensor(A.toarray()).to_sparse_csr(),)


@pytest.mark.parametrize(("kind", "source"), list(sources()))
def test_a_graph_has_the_same_matrix_in_whatever_form_it_is_given(kind, source):
    found = gcnii.propagation_matrix(*source)
    torch.testing.assert_close(found.to_dense(), P.to_dense(), rtol=0, atol=0)


def test_it_has_the_dtype_of_models_unless_asked_otherwise():
    assert P.dtype == gcnii.feature_matrix(GRAPH).dtype == torch.float32
    assert gcnii.propagation_matrix(GRAPH, dtype=torch.float64).dtype == torch.float64
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        assert gcnii.propagation_matrix(GRAPH).dtype == torch.float64
        assert gcnii.feature_matrix(GRAPH).dtype == torch.float64
    finally:
        torch.set_default_dtype(before)


def test_to_takes_what_a_tensor_takes():
    assert P.to(torch.float64).dtype == torch.float64
    assert P.to("cpu").dtype == torch.float32
    assert P.to("cpu", torch.float64).dtype == torch.float64
    assert P.to(torch.zeros(1, dtype=torch.float64)).dtype == torch.float64
    assert P.to(device="cpu", dtype=torch.float64).transposed.dtype == torch.float64
    assert P.to("meta").device.type == "meta"


@pytest.mark.cuda
def test_it_moves_to_a_gpu_and_multiplies_there():
    H = torch.randn(4, 3)
    there = P.to("cuda")
    assert there.device.type == "cuda"
    torch.testing.assert_close((there @ H.cuda()).cpu(), P @ H)
    moved = gcnii.propagation_matrix(torch.tensor(EDGES).cuda(), 4)
    assert moved.device.type == "cuda"


def test_one_way_edges_are_gathered_as_pyg_does_with_direction_in():
    gcn_norm = pytest.importorskip("torch_geometric.nn.conv.gcn_conv").gcn_norm
    index = torch.tensor([[0, 0, 1], [1, 2, 2]])  # PyG: messages go from row 0 to row 1
    edges, values = gcn_norm(index, None, 4)
    expected = torch.zeros(4, 4).index_put((edges[1], edges[0]), values, accumulate=True)
    found = gcnii.propagation_matrix(index, 4, directed=True, direction="in")
    torch.testing.assert_close(found.to_dense(), expected)


def test_weights_of_a_sparse_matrix_count():
    A = sp.csr_array(np.array([[0.0, 2.0], [0.5, 0.0]]))
    looped = A.toarray() + np.eye(2)
    root = np.diag(looped.sum(1) ** -0.5)
    found = gcnii.propagation_matrix(A, dtype=torch.float64).to_dense().numpy()
    np.testing.assert_allclose(found, root @ looped @ root)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ((EDGES,), "an edge_index does not tell the number of nodes; give it"),
        ((EDGES, 3), "edge 3 joins 3 and 3, but node ids go from 0 to 2"),
        ((np.eye(3),), "got float64 of shape (3, 3)"),
        ((GRAPH, 5), "the graph has 4 nodes, but n is 5; leave n out"),
        ((sp.csr_array(np.ones((2, 3))),), "must be square, got shape (2, 3)"),
        ((sp.csr_array(-np.eye(2)),), "must hold finite weights of 0 or more"),
        (("cora",), "or a scipy or torch sparse matrix; got str"),
    ],
)
def test_other_inputs_are_refused_in_one_sentence(source, sentence):
    with pytest.raises(gcnii.GraphError) as error:
        gcnii.propagation_matrix(*source)
    assert sentence in str(error.value)


@pytest.mark.parametrize("wrong", [torch.eye(4), EDGES, GRAPH, sp.eye_array(4)])
def test_a_model_says_how_to_make_p(wrong):
    model = gcnii.nn.GCNII(4, 2, layers=2, width=8)
    with pytest.raises(
        gcnii.InputError, match=r"P must be a propagation matrix, got .*; make P with"
    ):
        model(wrong, torch.eye(4))


def test_a_model_says_how_to_make_x():
    model = gcnii.nn.GCNII(4, 2, layers=2, width=8)
    with pytest.raises(gcnii.InputError, match=r"X must be a tensor, got ndarray; make X with"):
        model(P, GRAPH.X)


def test_the_model_of_the_manual_trains_in_a_plain_loop():
    X, y = gcnii.feature_matrix(GRAPH), torch.tensor([0, 0, 0, 1])
    model = gcnii.nn.GCNII(4, 2, layers=4, width=8, alpha=0.1, lam=0.5, dropout=0.0)
    adam = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(model(P, X), y)
        adam.zero_grad()
        loss.backward()
        adam.step()
    assert model(P, X).argmax(1).tolist() == y.tolist()


def test_its_repr_is_one_line():
    assert repr(P) == "Sparse(4 × 4, 10 entries, float32, cpu)"


def test_rows_of_a_matrix_of_one_step_are_of_one_step():
    assert not P[torch.tensor([2, 0])].pattern.transient
    step = gcnii.propagation.Sparse(*P.rows(torch.tensor([2, 0, 1]), transient=True))
    assert step[:2].pattern.transient
