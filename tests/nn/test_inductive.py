"""GraphSAGE, VR-GCN and Cluster-GCN: against PyG's versions, and on drawn neighbours."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.each_kind import of_each_kind
from support.exact import exact_features, exact_matrix
from support.fitting import fitting
from support.small_models import both_ways, build, inputs, web

from gcnii import data
from gcnii.dropout import epoch_key, keyed
from gcnii.graph import Graph
from gcnii.nn import MODELS
from gcnii.nn.cluster_gcn import neighbour_sum
from gcnii.nn.graphsage import LONGEST, LSTMConv, MeanConv, PoolConv, Turns
from gcnii.propagation import Adjacency, adjacency
from gcnii.results.fit import fit
from gcnii.train.batches import NeighbourBatches

SAMPLED = [name for name, model in MODELS.items() if model.supports_sampling]
GRAPHSAGE = [name for name in SAMPLED if name.startswith("graphsage")]
INDUCTIVE = [*SAMPLED, "cluster-gcn"]


def test_a_layer_of_graphsage_mean_is_pygs_sageconv(undirected, pyg):
    P, X = exact_matrix(undirected, norm="mean"), exact_features(undirected)
    conv = MeanConv(undirected.d, 4).double()
    theirs = pyg.SAGEConv(undirected.d, 8, bias=False).double()
    none = torch.zeros(4, undirected.d, dtype=torch.float64)
    # theirs adds where ours concatenates
    theirs.lin_r.weight.data = torch.cat([conv.own.data.T, none])
    theirs.lin_l.weight.data = torch.cat([none, conv.neighbours.data.T])
    torch.testing.assert_close(conv(P, X), theirs(X, both_ways(undirected)), rtol=1e-10, atol=1e-10)


def test_a_layer_of_graphsage_pool_is_pygs_sageconv_with_projection_and_maximum(undirected, pyg):
    P, X = exact_matrix(undirected, norm="mean"), exact_features(undirected)
    conv = PoolConv(undirected.d, 4).double()
    theirs = pyg.SAGEConv((16, undirected.d), 4, aggr="max", bias=False, root_weight=False).double()
    theirs.lin_l.weight.data = conv.neighbours.data.T
    said = (X @ conv.pool + conv.b).relu()
    expected = theirs((said, X), both_ways(undirected))
    torch.testing.assert_close(conv.near(P, X), expected, rtol=1e-10, atol=1e-10)


def test_a_layer_of_cluster_gcn_is_pygs_clustergcnconv(undirected, pyg):
    P, X = exact_matrix(undirected, norm="enhanced"), exact_features(undirected)
    W = torch.randn(2 * undirected.d, 5, dtype=torch.float64)
    theirs = pyg.ClusterGCNConv(undirected.d, 5, diag_lambda=1.0, bias=False).double()
    theirs.lin_out.weight.data = W[: undirected.d].T
    theirs.lin_root.weight.data = W[undirected.d :].T
    expected = theirs(X, both_ways(undirected))
    # PyG counts degrees in float32.
    torch.testing.assert_close(torch.cat([P @ X, X], 1) @ W, expected, rtol=1e-6, atol=1e-6)


def test_cluster_gcn_first_sums_over_the_neighbours_and_not_over_the_node_itself():
    graph = web()
    P = exact_matrix(graph, norm="enhanced")
    A = adjacency(graph, loops="remove").toarray()
    np.testing.assert_array_equal(neighbour_sum(P).to_dense().numpy(), A)


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("sparse", [False, True])
def test_with_all_neighbours_drawn_the_scores_are_those_of_the_full_graph(name, sparse):
    graph = web(sparse=sparse)
    links, X = Adjacency.of(adjacency(graph), "mean"), exact_features(graph)
    model = build(name, graph, layers=3)
    scores = model(links.whole, X)
    batches = NeighbourBatches(
        links, X, torch.arange(0, 30, 3), size=4, fanout=(0,), layers=3, history="cv"
    )
    for batch in batches.epoch(0, 0):
        torch.testing.assert_close(
            model(batch.P, batch.X), scores[batch.nodes], rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("name", GRAPHSAGE)
def test_a_link_of_value_zero_has_no_effect(name):
    graph = web()
    links = Adjacency.of(adjacency(graph, loops="remove"), "mean")
    kept = torch.rand(len(links.weights), dtype=torch.float64) < 0.5
    left = links.to("cpu", torch.float64).weights * kept
    bare = Graph(
        X=graph.X,
        edges=torch.stack([links.pattern.row_of, links.pattern.columns.long()])[
            :, left > 0
        ].numpy(),
        y=graph.y,
        directed=True,
    )
    model = build(name, graph, layers=2)
    dropped, without = links.matrix(kept), Adjacency.of(adjacency(bare), "mean").whole
    X = exact_features(graph)
    torch.testing.assert_close(model(dropped, X), model(without, X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", GRAPHSAGE)
def test_the_aggregate_of_no_neighbours_is_zero(name):
    alone = Graph(X=np.ones((3, 4)), edges=[[0], [1]], y=[0, 1, 1])
    conv = build(name, alone, layers=1).convs[0]
    aggregate = conv.near(exact_matrix(alone, norm="mean"), exact_features(alone))
    assert aggregate[0].abs().max() > 0
    assert aggregate[2].abs().max() == 0


@pytest.mark.parametrize("name", GRAPHSAGE)
def test_the_embedding_of_graphsage_has_length_one(name):
    graph = web()
    lengths = build(name, graph).embed(*inputs(graph)).square().sum(1)
    torch.testing.assert_close(lengths, torch.ones(30, dtype=torch.float64))


def test_an_lstm_reads_neighbours_one_by_one_in_the_order_of_their_states():
    graph = Graph(
        X=np.random.default_rng(0).normal(size=(5, 3)), edges=[[0, 0, 0], [1, 2, 3]], directed=True
    )
    P, X = exact_matrix(graph, norm="mean"), exact_features(graph)
    conv, cell = LSTMConv(3, 4).double(), torch.nn.LSTM(3, 4, batch_first=True).double()
    torch.nn.init.normal_(conv.b)
    cell.weight_ih_l0.data = conv.W.data.T.contiguous()
    cell.weight_hh_l0.data = conv.U.data.T.contiguous()
    cell.bias_ih_l0.data, cell.bias_hh_l0.data = conv.b.data, torch.zeros(16).double()
    cell.bias_hh_l0.data[4:8] = 1  # what TensorFlow adds to the forget gate
    order = 1 + torch.argsort(X[1:4] @ torch.arange(1, 4).double().sin())
    aggregate = cell(X[order][None])[0][0, -1] @ conv.neighbours
    torch.testing.assert_close(conv.near(P, X)[0], aggregate)


def test_an_lstm_reads_no_more_than_128_neighbours():
    n = 200
    graph = Graph(
        X=np.random.default_rng(0).normal(size=(n, 3)),
        edges=[[0] * (n - 1), range(1, n)],
        directed=True,
    )
    P, X = exact_matrix(graph, norm="mean"), exact_features(graph)
    conv = LSTMConv(3, 2).double()
    nearest = 1 + torch.argsort(X[1:] @ torch.arange(1, 4).double().sin())[:LONGEST]
    few = Graph(X=graph.X, edges=[[0] * LONGEST, nearest.tolist()], directed=True)
    assert len(Turns.of(P.pattern).active) == LONGEST
    torch.testing.assert_close(conv.near(P, X)[0], conv.near(exact_matrix(few, norm="mean"), X)[0])


def test_the_gradient_of_a_maximum_goes_to_the_largest_and_is_shared_among_equals():
    graph = Graph(
        X=np.array([[0.0], [1.0], [2.0], [2.0]]), edges=[[0, 0, 0], [1, 2, 3]], directed=True
    )
    P = exact_matrix(graph, norm="mean")
    conv = PoolConv(1, 1).double()
    conv.pool.data.fill_(1.0)
    H = exact_features(graph).requires_grad_()
    conv.near(P, H)[0].sum().backward()
    full = conv.neighbours.detach().sum()
    torch.testing.assert_close(H.grad[:, 0], torch.stack([0 * full, 0 * full, full / 2, full / 2]))


@pytest.mark.parametrize("name", ["vr-gcn-cv", "vr-gcn-cvd"])
def test_on_the_full_graph_both_forms_of_vr_gcn_are_the_same_network(name):
    graph = web()
    scores = []
    for one in (build(form, graph, dropout=0.4).train() for form in (name, "vr-gcn-cv")):
        with keyed(epoch_key(torch.tensor([0]), 3)[0]):
            scores.append(one(*inputs(graph)))
    torch.testing.assert_close(*scores)


@pytest.fixture(scope="module")
def small():
    return data.load("csbm", n=60, degree=6, signal=3.0, labels_per_class=5)


@of_each_kind("name", INDUCTIVE)
@pytest.mark.parametrize("drop_edge", [0.0, 0.3])
def test_on_the_full_graph_a_seed_trains_the_same_alone_and_batched(name, drop_edge, small):
    settings = {"batches": "full", "layers": 2, "width": 8, "dropout": 0.2, "epochs": 4}
    settings |= {"precision": "float64", "device": "cpu", "seeds": range(3), "drop_edge": drop_edge}
    together, alone = (fit(small, name, batch=batch, **fitting(name, settings)) for batch in (3, 1))
    for one, other in zip(together.runs, alone.runs, strict=True):
        np.testing.assert_allclose(one.curve, other.curve, rtol=1e-9)


def test_sparse_features_train_as_dense_ones_do(small):
    import scipy.sparse as sp

    sparse = replace(small, X=sp.csr_array(small.X))
    for name in INDUCTIVE:
        settings = {"layers": 2, "width": 8, "dropout": 0.0, "epochs": 2, "clusters": 3}
        settings |= {"precision": "float64", "device": "cpu", "scale": "none", "lr": 0.01}
        curves = [
            fit(graph, name, **fitting(name, settings)).runs[0].curve for graph in (small, sparse)
        ]
        np.testing.assert_allclose(*curves, rtol=1e-9)
