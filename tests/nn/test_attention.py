"""Models that choose among a node's neighbours: GAT, GaAN and GeniePath."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from support.exact import exact_features
from support.small_models import both_ways, build, inputs, web
from torch.nn.functional import elu

from gcnii import data
from gcnii.dropout import epoch_key, keyed
from gcnii.graph import Graph
from gcnii.nn.gat import GATConv
from gcnii.nn.geniepath import Depth
from gcnii.propagation import Adjacency, Sparse, adjacency
from gcnii.results.fit import fit
from gcnii.train.plan import make_plan

ATTENTIVE = ("gat", "gat-ppi", "gaan", "geniepath", "geniepath-lazy")
every_attention = pytest.mark.parametrize("name", ATTENTIVE)


def as_pyg(conv, pyg, concat):
    layer = pyg.GATConv(conv.W.shape[0], conv.a1.shape[1], heads=conv.heads, concat=concat).double()
    layer.lin.weight.data, layer.bias.data = conv.W.data.T, conv.b.data
    layer.att_dst.data, layer.att_src.data = conv.a1.data[None], conv.a2.data[None]
    return layer


@pytest.mark.parametrize(("name", "layers"), [("gat", 2), ("gat", 4), ("gat-ppi", 3)])
def test_gat_is_pygs_gatconv_stacked(undirected, pyg, name, layers):
    model = build(name, undirected, layers=layers, out_heads=3)
    P, X = inputs(undirected)
    H = X.requires_grad_()
    for l, conv in enumerate(model.convs):
        last = l == layers - 1
        skip = model.dense[l](H) if name == "gat-ppi" else 0
        H = as_pyg(conv, pyg, concat=not last)(H, both_ways(undirected)) + skip
        H = H if last else elu(H)
    ours = model(P, X)
    torch.testing.assert_close(ours, H, rtol=1e-10, atol=1e-10)
    gradients = (torch.autograd.grad(scores.square().sum(), X)[0] for scores in (ours, H))
    torch.testing.assert_close(*gradients, rtol=1e-10, atol=1e-10)


def test_gat_on_cora_has_as_many_weights_as_the_authors():
    model = make_plan("gat", {}).build(1433, 7)
    # theirs: two constants more per head, which softmax all but removes
    weights = sum(weight.numel() for weight in model.parameters())
    assert weights == 1433 * 64 + 3 * 64 + 64 * 7 + 3 * 7


def test_gat_drops_what_a_layer_reads_and_the_coefficients(undirected):
    P, _ = inputs(undirected)
    Z = torch.ones(30, 1).double()
    conv = GATConv(1, 1, 4, dropout=0.5).double()
    with torch.no_grad():
        conv.W.fill_(1)
    # Where all neighbours are equal, a node gathers the sum of its coefficients: 1, or twice those
    # that are left.
    torch.testing.assert_close(conv.eval()(P, Z), torch.ones(30, 4).double())
    with keyed(epoch_key(torch.tensor([0]), 0)[0]):
        noisy = conv.train()(P, Z)
    assert noisy.min() == 0
    assert 0.8 < noisy.mean() < 1.2


@every_attention
def test_a_dropped_link_gets_no_attention(name):
    """A link with the value zero is like one that was never there."""
    graph = web()
    A = adjacency(graph, loops="remove")
    links = Adjacency.of(A)
    kept = (
        torch.rand(len(links.weights), generator=torch.Generator().manual_seed(0)).round().double()
    )
    places = torch.stack([links.pattern.row_of, links.pattern.columns.long()])[
        :, (links.weights * kept) > 0
    ].numpy()
    without = sp.csr_array((np.ones(places.shape[1]), tuple(places)), A.shape)
    model, X = build(name, graph), exact_features(graph)
    torch.testing.assert_close(model(links.matrix(kept), X), model(Adjacency.of(without).whole, X))


@every_attention
def test_attention_does_not_depend_on_how_links_are_normalised(name):
    graph = web()
    A = adjacency(graph, loops="remove")
    model, X = build(name, graph), exact_features(graph)
    torch.testing.assert_close(
        model(Adjacency.of(A, "walk").whole, X), model(Adjacency.of(A).whole, X)
    )


@every_attention
@pytest.mark.parametrize("dropped", [0.0, 0.99])
def test_a_node_without_neighbours_has_finite_scores_and_gradients(name, dropped):
    alone = Graph(X=web().X, edges=[[0, 1], [1, 2]], y=web().y)
    links = Adjacency.of(adjacency(alone))
    model = build(name, alone)
    scores = model(
        links.matrix(torch.full_like(links.weights, float(dropped == 0))), exact_features(alone)
    )
    scores.square().mean().backward()
    assert scores.isfinite().all()
    assert all(weight.grad.isfinite().all() for weight in model.parameters())


class Hops:
    """A graph hop by hop: `at(l)` holds the rows of those nodes that are still needed after layer
    l.
    """

    def __init__(self, P, targets, layers):
        dense, self.layers = P.to_dense(), []
        for _ in range(layers):
            near = dense[targets].count_nonzero(0).nonzero()[:, 0]
            columns = torch.cat([targets, near[~torch.isin(near, targets)]])
            self.layers.insert(0, dense[targets][:, columns])
            targets = columns
        self.nodes = targets

    def at(self, layer):
        return Sparse.from_scipy(sp.csr_array(self.layers[layer].numpy()))


@every_attention
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_targets_have_the_same_scores_hop_by_hop_as_in_the_full_graph(name, layers):
    graph, targets = web(n=60, seed=2), torch.tensor([17, 3, 41])
    P, X = inputs(graph)
    hops = Hops(P, targets, layers)
    assert layers > 1 or len(hops.nodes) < graph.n
    model = build(name, graph, layers=layers)
    torch.testing.assert_close(model(hops, X[hops.nodes]), model(P, X)[targets])


def test_gaans_gate_is_a_module_of_its_own_with_a_tenth_of_the_step_size():
    model = build("gaan", web())
    gates = [key for key, _ in model.named_parameters() if "gate" in key.split(".")]
    assert gates == [f"convs.{l}.gate.{part}" for l in range(5) for part in ("weight", "bias")]
    assert model.card.step_sizes == {"gate": 0.1}


def test_gaan_with_closed_gates_ignores_the_neighbours():
    graph = web()
    model = build("gaan", graph)
    for conv in model.convs:
        conv.gate.weight.data.zero_()
        conv.gate.bias.data.fill_(-1e4)
    P, X = inputs(graph)
    torch.testing.assert_close(model(P, X), model(inputs(web(seed=5))[0], X))


def test_gaan_attends_to_neighbours_and_not_to_the_node_itself():
    loops = Graph(X=web().X, edges=np.stack([np.arange(30)] * 2), y=web().y)
    model = build("gaan", loops, layers=1)
    P, X = inputs(loops)
    model.convs[0].value.bias.data.fill_(100.0)
    before = model(P, X)
    model.convs[0].value.bias.data.fill_(0.0)
    assert torch.equal(before, model(P, X))


def test_geniepaths_depth_is_an_lstm_that_does_not_read_its_own_output():
    depth, cell = Depth(5, 4).double(), torch.nn.LSTMCell(5, 4, bias=False).double()
    i, f, o, c = depth.gates.weight.data.chunk(4)
    cell.weight_ih.data, cell.weight_hh.data = torch.cat([i, f, c, o]), torch.zeros(16, 4).double()
    Z, C = torch.randn(6, 5).double(), torch.randn(6, 4).double()
    for ours, theirs in zip(depth(Z, C), cell(Z, (torch.zeros(6, 4).double(), C)), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_attention_reaches_as_many_hops_as_there_are_layers():
    path = Graph(X=np.eye(8), edges=np.stack([np.arange(7), np.arange(1, 8)]), y=np.arange(8) % 2)
    for name in ATTENTIVE:
        P, X = inputs(path)
        X.requires_grad_()
        build(name, path, layers=3)(P, X)[0].sum().backward()
        assert (X.grad.abs().sum(1) > 0).tolist() == [i <= 3 for i in range(8)], name


@every_attention
def test_a_seed_drops_the_same_links_alone_and_batched(name):
    graph = data.load("csbm", n=60, labels_per_class=10)
    settings = {"layers": 2, "width": 8, "epochs": 3, "drop_edge": 0.5}
    settings |= {"precision": "float64", "device": "cpu"}
    together, alone = (
        fit(graph, name, seeds=range(3), batch=batch, **settings) for batch in (3, 1)
    )
    for one, other in zip(together.runs, alone.runs, strict=True):
        np.testing.assert_allclose(one.curve, other.curve, rtol=1e-10)
