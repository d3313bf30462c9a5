"""Drawn neighbours: a fair draw without repetition, hops that fit together, and estimates without
bias.
"""

from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.func import vmap

from gcnii import data
from gcnii.propagation import Adjacency, Propagation, Sparse
from gcnii.propagation.sparse import row_sums
from gcnii.results.fit import fit
from gcnii.train.batches import (
    ActivationHistory,
    HistoryHop,
    NeighbourBatches,
    NeighbourSampler,
)

NORMS = ["mean", "symmetric", "walk", "enhanced", "first-order", "symmetric+I"]


def tangle(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return sp.csr_array((rng.random((n, n)) < 0.15).astype(float))


def neighbours(A, nodes=None, norm="mean", X=None, **settings):
    X = torch.arange(A.shape[0], dtype=torch.float64)[:, None] if X is None else X
    nodes = torch.arange(A.shape[0]) if nodes is None else nodes
    return NeighbourBatches(
        Adjacency.of(A, norm),
        X,
        nodes,
        **{"size": 8, "fanout": (3, 5), "layers": 2} | settings,
    )


def test_an_epoch_has_every_node_once_in_another_order_each_time():
    batches = neighbours(tangle(), nodes=torch.arange(0, 40, 2))
    first, again, second = (
        torch.cat([batch.nodes for batch in batches.epoch(*at)]) for at in ((1, 0), (1, 0), (1, 1))
    )
    assert first.sort().values.tolist() == list(range(0, 40, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_the_same_seed_epoch_and_step_draw_the_same_and_others_do_not():
    one, same = ([batch.X for batch in neighbours(tangle()).epoch(3, 5)] for _ in range(2))
    other = [batch.X for batch in neighbours(tangle()).epoch(4, 5)]
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert not all(
        a.shape == b.shape and torch.equal(a, b) for a, b in zip(one, other, strict=True)
    )


def test_the_rows_of_a_hop_are_the_first_columns_of_it_and_the_columns_of_the_next():
    A = tangle()
    for batch in neighbours(A, layers=3).epoch(0, 0):
        first, second, third = (batch.P.at(l) for l in range(3))
        assert (second.shape[1], third.shape[1]) == (first.shape[0], second.shape[0])
        assert len(batch.X) == first.shape[1]
        # X here is the number of the node
        assert torch.equal(batch.X[: third.shape[0], 0].long(), batch.nodes)
        ids = batch.X[:, 0].long().numpy()
        for hop in (first, second, third):
            inside = sp.coo_array(hop.to_dense().numpy())
            assert (A.toarray()[ids[inside.row], ids[inside.col]] == 1).all()


def test_up_to_fanout_different_neighbours_are_drawn_from_the_last_layer_on():
    A = tangle()
    degree = A.sum(1) - A.diagonal()
    batch = next(iter(neighbours(A, fanout=(2, 4), layers=3, size=40).epoch(0, 0)))
    ids = batch.X[:, 0].long().numpy()
    for layer, fanout in ((2, 2), (1, 4), (0, 4)):
        hop = batch.P.at(layer)
        links = (hop.pattern.row_of != hop.pattern.columns).long()
        drawn = row_sums(hop.pattern, links.double())
        assert drawn.tolist() == np.minimum(degree, fanout)[ids[: hop.shape[0]]].tolist()
        places = torch.stack([hop.pattern.row_of, hop.pattern.columns.long()], 1)
        assert len(places.unique(dim=0)) == len(places)


def test_a_mean_is_over_those_drawn():
    A = tangle()
    A.setdiag(0)
    A.eliminate_zeros()
    hop = next(iter(neighbours(A, fanout=(3,), layers=1).epoch(0, 0))).P.at(0)
    counts = hop.pattern.rows.diff()
    assert counts.max() == 3
    torch.testing.assert_close(hop.values, 1 / counts[hop.pattern.row_of].double())


def test_every_neighbour_is_drawn_equally_often():
    A = sp.csr_array((np.ones(5), ([0] * 5, [1, 2, 3, 4, 5])), (6, 6))
    urn = NeighbourSampler(Adjacency.of(A, "mean").whole)
    random = np.random.default_rng(0)
    draws = np.concatenate(
        [urn.links["column"][urn.draw(np.array([0]), 2, random)[1]] for _ in range(5000)]
    )
    np.testing.assert_allclose(np.bincount(draws)[1:] / 5000, 2 / 5, atol=0.03)


@pytest.mark.parametrize("norm", NORMS)
def test_all_neighbours_give_the_rows_of_the_full_matrix(norm):
    A = tangle()
    batches = neighbours(A, norm=norm, fanout=(0,), layers=1, size=40)
    batch = next(iter(batches.epoch(0, 0)))
    ids = batch.X[:, 0].long()
    expected = Adjacency.of(A, norm).whole.to_dense()[batch.nodes][:, ids]
    torch.testing.assert_close(batch.P.at(0).to_dense(), expected)


def small(norm="symmetric", weighted=False):
    """Rows 0 and 1 have 4 and 3 neighbours; one of them has a loop of its own."""
    A = np.zeros((6, 6))
    A[0, [1, 2, 3, 5]] = A[1, [0, 4, 5]] = A[1, 1] = A[2, [0, 1]] = 1
    A *= np.random.default_rng(0).random((6, 6)) if weighted else 1
    return Adjacency.of(sp.csr_array(A), norm).whole


def every_draw(urn, nodes, fanout):
    """How many links of each node, and which, in each possible draw."""
    links = [range(urn.start[node], urn.start[node] + urn.count[node]) for node in nodes]
    choices = [list(combinations(own, min(fanout, len(own)))) for own in links]
    for chosen in product(*choices):
        yield (
            np.array([len(own) for own in chosen]),
            np.array([link for own in chosen for link in own], dtype=int),
        )


def estimates(P, fanout, H, mean=None, history=None):
    """What `gather` gives in each possible draw for rows 0 and 1."""
    urn, nodes = NeighbourSampler(P), np.array([0, 1])
    for drawn, link in every_draw(urn, nodes, fanout):
        memory = None if history is None else ActivationHistory(6)
        if memory:
            memory.tables[0] = history
        hop, reached = urn.hop(nodes, drawn, link, memory)
        assert isinstance(hop, HistoryHop) == (history is not None)
        yield hop.gather(H[reached], None if mean is None else mean[reached])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("fanout", [1, 2, 3])
@pytest.mark.parametrize("history", ["none", "zero", "any"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_over_all_draws_is_the_product_for_any_history(norm, fanout, history, weighted):
    P, H = small(norm, weighted), torch.randn(6, 3, dtype=torch.float64)
    past = {"none": None, "zero": torch.zeros_like(H), "any": torch.randn_like(H)}[history]
    mean = torch.stack(list(estimates(P, fanout, H, history=past))).mean(0)
    torch.testing.assert_close(mean, (P @ H)[:2])


def test_with_dropout_the_mean_over_all_samples_and_signs_is_the_product_of_the_means():
    P, M, past = (
        small(),
        torch.randn(6, 2, dtype=torch.float64),
        torch.randn(6, 2, dtype=torch.float64),
    )
    noise = torch.randn(6, 2, dtype=torch.float64)
    both = [
        torch.stack(list(estimates(P, 1, M + sign * noise, M, past))).mean(0) for sign in (-1, 1)
    ]
    torch.testing.assert_close((both[0] + both[1]) / 2, (P @ M)[:2])


def test_the_noise_of_dropout_keeps_the_variance_that_it_has_over_all_neighbours():
    P, M = small("mean"), torch.zeros(6, 1, dtype=torch.float64)
    # With independent noise of variance 1 a node, the variance of an estimate is the sum of its
    # squared weights.
    I = torch.eye(6, dtype=torch.float64)
    for weights in estimates(P, 1, I, M.expand(6, 6), M.expand(6, 6)):
        torch.testing.assert_close(weights.square().sum(1)[0], P.to_dense()[0].square().sum())


def test_a_perfect_history_leaves_no_variance():
    P, H = small(), torch.randn(6, 3, dtype=torch.float64)
    for estimate in estimates(P, 1, H, history=H.clone()):
        torch.testing.assert_close(estimate, (P @ H)[:2])


def test_with_all_neighbours_the_estimate_is_exact_whatever_the_history_and_the_dropout():
    P, H, M, past = small(), *torch.randn(3, 6, 3, dtype=torch.float64)
    (estimate,) = estimates(P, 9, H, M, past)
    torch.testing.assert_close(estimate, (P @ H)[:2])


def test_gradients_reach_what_is_gathered_now_and_not_the_history():
    P, past = small("mean"), torch.randn(6, 3, dtype=torch.float64)
    H = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    grads = [
        torch.autograd.grad(estimate.sum(), H)[0] for estimate in estimates(P, 1, H, history=past)
    ]
    torch.testing.assert_close(
        torch.stack(grads).mean(0), (P.to_dense()[:2].sum(0))[:, None].expand(6, 3)
    )


def test_the_history_is_that_of_the_step_before_and_of_the_nodes_it_computed():
    batches = neighbours(tangle(), fanout=(2, 0), history="cv", size=10)
    steps = batches.epoch(0, 0)
    batch = next(steps)
    hop = batch.P.at(1)
    assert not isinstance(batch.P.at(0), HistoryHop)  # draws all, and needs no history
    H = torch.randn(hop.shape[1], 4, dtype=torch.float64)
    first = hop.gather(H)
    assert torch.equal(hop.gather(H), first)  # within the step nothing is taken in
    next(steps)
    table = batches.state()["1"]
    assert torch.equal(table[hop.nodes], H)
    assert int((table != 0).any(1).sum()) == len(hop.nodes)


def test_sampled_neighbours_are_a_propagation_that_dropedge_leaves_alone():
    batch = next(iter(neighbours(tangle()).epoch(0, 0)))
    assert isinstance(batch.P, Propagation)
    assert batch.adjacency is None


@pytest.mark.parametrize("replicas", [None, 3])
def test_a_hop_without_its_transpose_passes_the_gradient_of_one_with_it(replicas):
    hop = next(iter(neighbours(tangle()).epoch(0, 0))).P.at(0)
    whole = Sparse(hop.pattern, hop.values)
    shape = (hop.shape[1], 4) if replicas is None else (replicas, hop.shape[1], 4)
    H = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    G = torch.randn((*shape[:-2], hop.shape[0], 4), dtype=torch.float64)

    def result(P):
        Z = P @ H if replicas is None else vmap(lambda own: P @ own)(H)
        return Z, torch.autograd.grad(Z, H, G)[0]

    for own, other in zip(result(hop), result(whole), strict=True):
        assert torch.equal(own, other)
    assert torch.equal(hop.transposed, whole.transposed)


@pytest.mark.parametrize(("model", "made"), [("graphsage-mean", False), ("gat", True)])
def test_the_first_hop_is_transposed_only_where_a_gradient_passes_it(model, made, monkeypatch):
    batches, draw = [], NeighbourBatches._batch

    def seen(self, *args):
        batches.append(draw(self, *args))
        return batches[-1]

    monkeypatch.setattr(NeighbourBatches, "_batch", seen)
    settings = {"layers": 2, "width": 8, "epochs": 1, "device": "cpu", "threads": 1}
    fit(data.load("csbm", n=60), model, batches="neighbours", fanout=(3,), **settings)
    assert batches
    for batch in batches:
        assert ("transposed" in batch.P.at(0).pattern.__dict__) == made
        assert "transposed" in batch.P.at(1).pattern.__dict__
