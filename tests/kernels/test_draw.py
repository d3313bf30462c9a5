"""Neighbours that the kernels draw: those of numpy, entry by entry."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcnii import data, kernels
from gcnii.propagation import Adjacency, adjacency
from gcnii.train.batches import HistoryHop, NeighbourBatches, NeighbourSampler

FANOUTS = {"some": (2, 4), "one and all": (1, 0), "more than there are": (400, 3)}


def batches(links, X, fanout, history, device):
    settings = {"size": 70, "fanout": fanout, "layers": 3, "history": history}
    nodes = torch.arange(0, len(X), 2)
    return NeighbourBatches(links.to(device, torch.float32), X.to(device), nodes, **settings)


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


def by_numpy(monkeypatch, *given):
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "usable", lambda tensor: False)
        found = batches(*given, "cpu")
    assert isinstance(found.sampler, NeighbourSampler)
    return found


def assert_same(found, expected, epochs=1):
    for epoch in range(epochs):
        pairs = zip(found.epoch(3, epoch), expected.epoch(3, epoch), strict=True)
        for one, other in pairs:
            for mine, theirs in zip(arrays(one), arrays(other), strict=True):
                assert torch.equal(mine.cpu(), theirs)


@pytest.mark.cuda  # in the interpreter a sort takes a second
@pytest.mark.parametrize("norm", ["mean", "symmetric", "enhanced"])
@pytest.mark.parametrize("fanout", FANOUTS)
@pytest.mark.parametrize("history", ["none", "cv"])
def test_a_gpu_draws_what_numpy_draws_to_the_last_bit(norm, fanout, history, monkeypatch):
    graph = data.load("csbm", n=200, degree=7)
    links, X = Adjacency.of(adjacency(graph), norm), torch.arange(200.0)[:, None]
    found = batches(links, X, FANOUTS[fanout], history, "cuda")
    assert not isinstance(found.sampler, NeighbourSampler)
    assert_same(found, by_numpy(monkeypatch, links, X, FANOUTS[fanout], history))


@pytest.fixture(scope="module")
def star():
    """Nodes of 0 to 5,000 links: each class of lengths that the kernels have."""
    rng, n = np.random.default_rng(0), 6000
    counts = np.zeros(n, int)
    counts[:12] = [0, 1, 63, 64, 65, 256, 257, 1024, 1025, 2000, 5000, 300]
    columns = [rng.choice(n, count, replace=False) for count in counts]
    rows = np.repeat(np.arange(n), counts)
    A = sp.csr_array((np.ones(counts.sum()), (rows, np.concatenate(columns))), (n, n))
    return Adjacency.of(A, "mean")


@pytest.mark.slow
@pytest.mark.parametrize("fanout", [1, 25, 300, 0])
def test_nodes_of_any_number_of_links_are_drawn_alike(device, star, fanout):
    from gcnii.train.device_sampler import DeviceSampler

    if device == "cpu" and fanout in (1, 300):
        pytest.skip("takes too long in Triton's interpreter")
    nodes = torch.tensor([0, 1, 3, 4, 8, 19]) if device == "cpu" else torch.arange(20)
    random = [np.random.default_rng(1) for _ in range(2)]
    sampler = DeviceSampler.of(star.to(device, torch.float32).whole)
    assert sampler.can_draw(fanout)
    found = sampler.sample(nodes.to(device), fanout, random[0], None, 0)
    plain = NeighbourSampler(star.to("cpu", torch.float32).whole)
    expected = plain.sample(nodes, fanout, random[1], None, 0)
    assert torch.equal(found[1].cpu(), expected[1])
    for name in ("rows", "columns"):
        mine, theirs = (getattr(one[0].pattern, name) for one in (found, expected))
        assert torch.equal(mine.cpu(), theirs), name
    assert torch.equal(found[0].values.cpu(), expected[0].values)


def test_what_the_kernels_cannot_draw_is_left_to_numpy(device, star):
    links = star.to(device, torch.float32)
    X = torch.zeros(6000, 1, device=device)
    assert isinstance(batches(links, X, (2, 600), "none", device).sampler, NeighbourSampler)
