"""The draws of a seed: the same numbers today as ever, on any machine, drawn ahead or not."""

import hashlib
from math import comb

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.stats import chisquare
from support.literal.drawing import draw

from gcnii.propagation import Adjacency
from gcnii.train.batches import HistoryHop, NeighbourBatches, NeighbourSampler, shuffled

SHAPES = {  # fanout, history
    "some": ((3, 5), "none"),
    "all": ((0,), "none"),
    "one": ((1, 0), "cv"),
    "more than there are": ((2, 400, 3), "cv"),
}


def skewed(n=300, weighted=False):
    """From no link a node to hubs, in one direction; some loops."""
    rng = np.random.default_rng(7)
    A = rng.random((n, n)) < np.linspace(0, 0.6, n)[:, None] ** 2
    A = A * (rng.random((n, n)) if weighted else 1.0)
    return sp.csr_array(A)


def neighbours(A, norm, fanout, history="none", size=64, layers=3, nodes=None):
    nodes = torch.arange(0, A.shape[0], 2) if nodes is None else nodes
    links = Adjacency.of(A, norm)
    X = torch.arange(A.shape[0], dtype=torch.float64)[:, None]
    return NeighbourBatches(
        links, X, nodes, size=size, fanout=fanout, layers=layers, history=history
    )


@pytest.mark.parametrize("norm", ["mean", "symmetric", "walk"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", SHAPES)
def test_a_step_draws_what_the_rule_says_node_by_node(norm, weighted, kind):
    A, (fanout, history) = skewed(weighted=weighted), SHAPES[kind]
    batches, seed, epoch = neighbours(A, norm, fanout, history), 5, 11
    P = Adjacency.of(A, norm).whole.to_dense().numpy()
    fanouts = ([*fanout] + [fanout[-1]] * 3)[:3][::-1]
    order = np.random.default_rng((seed, epoch)).permutation(np.arange(0, 300, 2))
    for step, batch in enumerate(batches.epoch(seed, epoch), 1):
        targets = order[(step - 1) * 64 : step * 64]
        random = np.random.default_rng((seed, epoch, step))
        nodes, hops = draw(P, targets, fanouts, random)
        assert batch.nodes.tolist() == targets.tolist()
        assert batch.X[:, 0].tolist() == nodes
        for layer, rows in enumerate(hops):
            check(batch.P.at(layer), rows)
    assert step == 3


def check(hop, rows):
    """Each entry of a hop to the last bit, and its transpose."""
    entries = [entry for row in rows for entry in row]
    assert hop.pattern.rows.diff().tolist() == [len(row) for row in rows]
    assert hop.pattern.columns.tolist() == [column for column, _, _ in entries]
    assert hop.values.tolist() == [value for _, value, _ in entries]
    if isinstance(hop, HistoryHop):
        assert hop.noise.values.tolist() == [value for _, _, value in entries]
    pattern, order = hop.pattern.transposed
    by_column = sorted(range(len(entries)), key=lambda at: entries[at][0])
    assert order.tolist() == by_column
    assert pattern.columns.tolist() == hop.pattern.row_of[order].tolist()
    assert (
        pattern.rows.diff().tolist()
        == np.bincount(hop.pattern.columns.numpy(), minlength=hop.shape[1]).tolist()
    )
    assert torch.equal(hop.transposed, hop.values[order])
    types = {pattern.rows.dtype, pattern.columns.dtype, hop.pattern.rows.dtype}
    assert types | {hop.pattern.columns.dtype} == {torch.int32}


def digest(batches, seed, epoch):
    """Of the nodes and places alone: they hold on every machine, whatever its rounding."""
    total = hashlib.sha256()
    for batch in batches.epoch(seed, epoch):
        arrays = [batch.nodes, batch.X[:, 0].long()]
        for layer in range(3):
            pattern = batch.P.at(layer).pattern
            arrays += [pattern.rows.long(), pattern.columns.long()]
        for array in arrays:
            total.update(array.numpy().astype("<i8").tobytes())
    return total.hexdigest()[:16]


@pytest.mark.parametrize(
    ("norm", "fanout", "seed", "epoch", "expected"),
    [
        ("mean", (3, 5), 0, 0, "8a10d87fe155b176"),
        ("mean", (10, 25), 3, 2, "e5930a4d9d846867"),
        ("symmetric", (1, 0), 0, 7, "b0c2aa6559e40f78"),
        ("symmetric", (2,), 2**40, 1, "8196bd4426c320d3"),
    ],
)
def test_a_seed_draws_what_it_drew_in_earlier_releases(norm, fanout, seed, epoch, expected):
    assert digest(neighbours(skewed(), norm, fanout), seed, epoch) == expected


def test_numbers_that_differ_in_their_last_bit_alone_are_told_apart():
    random = np.random.default_rng(1)
    count = random.integers(0, 9, 5000)
    numbers = (1 << 52) + random.integers(0, 8, count.sum(), dtype=np.uint64)
    own = np.split(numbers, np.cumsum(count)[:-1])
    expected = np.concatenate([np.argsort(each, kind="stable") for each in own])
    assert shuffled(count, numbers).tolist() == expected.tolist()


@pytest.mark.parametrize("fanout", [1, 3])
def test_every_set_of_neighbours_is_drawn_equally_often(fanout):
    A = sp.csr_array((np.ones(5), ([0] * 5, [1, 2, 3, 4, 5])), (6, 6))
    urn, random = NeighbourSampler(Adjacency.of(A, "mean").whole), np.random.default_rng(0)
    nodes = np.zeros(20_000, np.int64)  # the same node again and again, each time on its own
    drawn, link = urn.draw(nodes, fanout, random)
    assert (drawn == fanout).all()
    sets = np.sort(link.reshape(-1, fanout), axis=1)
    kinds, times = np.unique(sets, axis=0, return_counts=True)
    assert len(kinds) == comb(5, fanout)  # and so none with a neighbour twice
    assert chisquare(times).pvalue > 1e-3
