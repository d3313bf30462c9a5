"""Draws by torch: those of numpy, entry by entry, on a CPU and on a GPU."""

import numpy as np
import pytest
import torch

from gcnii import data
from gcnii.propagation import GraphAdjacency, adjacency
from gcnii.train.batches import Neighbours
from gcnii.train.batches.device_sampler import DeviceSampler, shuffled
from gcnii.train.batches.history import HistoryHop
from gcnii.train.fit import fit

FANOUTS = {"some": (2, 4), "one and all": (1, 0), "more than there are": (400, 3)}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


def batches(links, X, fanout, history, device):
    settings = {"size": 70, "fanout": fanout, "layers": 3, "history": history}
    nodes = torch.arange(0, len(X), 2)
    return Neighbours(links.to(device, torch.float32), X.to(device), nodes, **settings)


def arrays(batch):
    """Everything that a step reads of its batch."""
    for layer in range(3):
        hop = batch.P.at(layer)
        matrices = (hop, hop.noise, hop.exact) if isinstance(hop, HistoryHop) else (hop,)
        for P in matrices:
            pattern, order = P.pattern.transposed
            yield from (P.pattern.rows, P.pattern.columns, P.values, P.transposed)
            yield from (pattern.rows, pattern.columns, order)
    yield from (batch.X, batch.nodes)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("norm", ["mean", "symmetric", "enhanced"])
@pytest.mark.parametrize("fanout", FANOUTS)
@pytest.mark.parametrize("history", ["none", "cv"])
def test_torch_draws_what_numpy_draws_to_the_last_bit(device, norm, fanout, history):
    graph = data.load("csbm", n=300, degree=9)
    links, X = GraphAdjacency.of(adjacency(graph), norm), torch.arange(300.0)[:, None]
    plain = batches(links, X, FANOUTS[fanout], history, "cpu")
    other = batches(links, X, FANOUTS[fanout], history, device)
    other.sampler = DeviceSampler(other.sampler.P)
    for one, two in zip(plain.epoch(4, 2), other.epoch(4, 2), strict=True):
        for mine, theirs in zip(arrays(one), arrays(two), strict=True):
            assert mine.dtype == theirs.dtype
            assert torch.equal(mine, theirs.cpu())


def test_equal_numbers_keep_the_order_of_their_links():
    count, numbers = torch.tensor([0, 5, 1, 4]), torch.tensor([3, 1, 3, 1, 0, 7, 2, 2, 2, 1])
    assert shuffled(count, numbers).tolist() == [4, 1, 3, 0, 2, 0, 3, 0, 1, 2]


def test_nodes_without_a_link_have_empty_rows():
    P = GraphAdjacency.of(np.zeros((3, 3)), "mean").whole
    urn = DeviceSampler(P)
    drawn, link = urn.draw(torch.tensor([2, 0]), 5, np.random.default_rng(0))
    hop, reached = urn.hop(torch.tensor([2, 0]), drawn, link)
    assert (hop.shape, hop.pattern.rows.tolist()) == ((2, 2), [0, 0, 0])
    assert reached.tolist() == [2, 0]


@pytest.mark.cuda
@pytest.mark.parametrize("model", ["graphsage-mean", "vr-gcn-cv", "gat"])
def test_a_training_on_a_gpu_draws_there_and_learns_the_same(model):
    graph = data.load("csbm", n=200, degree=6, signal=3.0)
    settings = {"layers": 2, "width": 8, "epochs": 5, "dropout": 0.0, "batches": "neighbours"}
    settings |= {"batch_size": 16, "fanout": (2, 3), "precision": "float64"}
    on = [fit(graph, model, device=device, **settings) for device in ("cpu", "cuda")]
    for name, weights in on[0].weights.items():
        torch.testing.assert_close(on[1].weights[name].cpu(), weights, rtol=1e-6, atol=1e-8)
