"""Batches of nodes with a sample of their neighbours, drawn in each step (GraphSAGE, VR-GCN)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.propagation import Adjacency, Pattern, Sparse
from gcnii.train.batches.ahead import ahead
from gcnii.train.batches.batch import Batch, History
from gcnii.train.batches.history import ActivationHistory, HistoryHop

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Hops:
    """P for sampled neighbours: one matrix per layer, from the first to the last.

    The rows of a hop are the nodes whose state the layer gives, its columns those whose state it
    reads; the rows' nodes are the first columns, in the same order.
    """

    hops: tuple[Sparse, ...]

    def at(self, layer: int) -> Sparse:
        """What layer 0, 1, … gathers over."""
        return self.hops[layer]


class Neighbours:
    """A step sees `size` of the training nodes, and a sample of neighbours, hop by hop.

    nodes    (m,) the training nodes; each epoch takes them in another order
    fanout   the number of neighbours sampled per node, without replacement, for the last layer, the
             one before it, …; 0 takes all.  Further layers take the last number
    layers   how often the model gathers
    history  "cv": where not all neighbours are sampled, old activations make up for the others
    """

    static = False

    def __init__(
        self,
        adjacency: Adjacency,
        X: Tensor | Sparse,
        nodes: Tensor,
        *,
        size: int,
        fanout: Sequence[int],
        layers: int,
        history: History = "none",
    ):
        self.X, self.nodes, self.size = X, nodes.cpu().numpy(), size
        last = [*fanout, *[fanout[-1]] * layers][:layers]
        self.fanout = last[::-1]
        self.sampler = NeighbourSampler(adjacency.whole)
        self.history = ActivationHistory(adjacency.pattern.shape[0]) if history == "cv" else None

    def epoch(self, seed: int, epoch: int) -> Iterator[Batch]:
        """Every node once, in an order drawn from seed and epoch; neighbours from the step too."""
        order = np.random.default_rng((seed, epoch)).permutation(self.nodes)
        starts = range(0, len(order), self.size)
        makers = (
            partial(self._batch, order[start : start + self.size], (seed, epoch, step))
            for step, start in enumerate(starts, 1)
        )
        with closing(ahead(makers)) as batches:
            for batch in batches:
                yield batch
                if self.history:
                    self.history.settle()

    def _batch(self, targets: Numbers, at: tuple[int, int, int]) -> Batch:
        """It reads no history, which belongs to the step that runs meanwhile."""
        random = np.random.default_rng(at)
        hops: list[Sparse] = []
        nodes = targets
        for layer in reversed(range(len(self.fanout))):
            drawn, links = self.sampler.draw(nodes, self.fanout[layer], random)
            # A hop that takes all neighbours is exact and needs no history.
            history = self.history if self.fanout[layer] else None
            hop, nodes = self.sampler.hop(nodes, drawn, links, history, layer)
            hops.insert(0, hop)
        device = self.sampler.P.device
        there, chosen = (torch.from_numpy(array).to(device) for array in (nodes, targets))
        X = self.X.index_select(0, there) if isinstance(self.X, Tensor) else self.X[there]
        return Batch(Hops(tuple(hops)), X, chosen)

    def state(self) -> dict[str, Tensor]:
        """h̄ of each layer, by its number."""
        tables = self.history.tables if self.history else {}
        return {str(layer): table for layer, table in tables.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on with this h̄."""
        if self.history:
            self.history.tables = {int(layer): table for layer, table in state.items()}


class NeighbourSampler:
    """Samples the links of P between different nodes; the diagonal is always there.

    P        (n, n)
    start    (n,) where a node's links begin
    count    (n,) the number of its links
    columns, values   (links,)
    loops    (n,) P's diagonal
    """

    def __init__(self, P: Sparse):
        self.P = P
        row, column, value = (
            array.cpu().numpy() for array in (P.pattern.row_of, P.pattern.columns, P.values)
        )
        n = P.shape[0]
        links = (row != column) & (value != 0)
        self.columns, self.values = column[links].astype(np.int64), value[links]
        self.count = np.bincount(row[links], minlength=n)
        self.start = np.cumsum(self.count) - self.count
        self.loops = np.zeros(n, value.dtype)
        self.loops[row[row == column]] = value[row == column]

    def draw(
        self, nodes: Numbers, fanout: int, random: np.random.Generator
    ) -> tuple[Numbers, Numbers]:
        """Up to `fanout` links per node (0: all): how many of each node, and the links.

        A link has a uniform number, one after the other in the order of `nodes`; the smallest of
        each node are drawn, in their order.
        """
        count, start = self.count[nodes], self.start[nodes]
        if fanout == 0:
            return count, np.repeat(start - _before(count), count) + np.arange(count.sum())
        turns = _shuffled(count, random)
        drawn = np.minimum(count, fanout)
        first = np.repeat(_before(count) - _before(drawn), drawn) + np.arange(drawn.sum())
        return drawn, np.repeat(start, drawn) + turns[first]

    def hop(
        self,
        nodes: Numbers,
        drawn: Numbers,
        link: Numbers,
        history: ActivationHistory | None = None,
        layer: int = 0,
    ) -> tuple[Sparse, Numbers]:
        """The rectangular matrix of these links of these nodes, and the nodes of its columns."""
        reached, place = self._reached(nodes, self.columns[link])
        # So that the mean over all samples is P.
        scale = self.count[nodes] / np.maximum(drawn, 1)
        loops = self.loops[nodes]
        looped = np.flatnonzero(loops)
        # A row's loop comes after its links.
        at = np.cumsum(drawn)[looped]
        rows = np.append(0, np.cumsum(drawn + (loops != 0)))
        columns = np.insert(place, at, looped) if len(looped) else place
        shape = len(nodes), len(reached)
        pattern = Pattern(self._tensor(rows).int(), self._tensor(columns).int(), shape)

        def matrix(scale: NDArray[np.float64]) -> Sparse:
            values = self.values[link] * np.repeat(scale, drawn)
            values = np.insert(values, at, loops[looped]) if len(looped) else values
            return Sparse.on(pattern, self._tensor(values).to(self.P.dtype))

        hop = matrix(scale)
        if history is None:
            return hop, reached
        parts = hop.pattern, hop.values, hop.transposed, matrix(np.sqrt(scale))
        exact = self.P[self._tensor(nodes)]
        return HistoryHop(*parts, exact, self._tensor(reached), history, layer), reached

    def _reached(self, nodes: Numbers, sources: Numbers) -> tuple[Numbers, Numbers]:
        """The nodes, followed by those sources that are not among them; and each source's place."""
        strange = np.zeros(len(self.count), bool)
        strange[sources] = True
        strange[nodes] = False
        reached = np.concatenate([nodes, np.flatnonzero(strange)])
        place = np.empty(len(self.count), np.int64)
        place[reached] = np.arange(len(reached))
        return reached, place[sources]

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self.P.device)


def _before(count: Numbers) -> Numbers:
    """(n,) the sum of the counts before each."""
    return np.cumsum(count) - count


def _shuffled(count: Numbers, random: np.random.Generator) -> Numbers:
    """0 … count - 1 for each of these counts, in the order of a uniform number for each.

    Row, number and turn are packed in a word of 64 bits, because to sort words takes half the time
    that it takes to find their order.
    """
    row_bits, turn_bits = (int(most).bit_length() for most in (len(count), count.max(initial=0)))
    bits = min(53, 64 - row_bits - turn_bits)
    uniform = random.random(count.sum())
    words = (uniform * 2.0**bits).astype(np.uint64) << np.uint64(turn_bits)
    row = np.arange(len(count)) << (bits + turn_bits)
    words += (np.repeat(row - _before(count), count) + np.arange(len(words))).view(np.uint64)
    words.sort()
    turns: Numbers = (words & np.uint64((1 << turn_bits) - 1)).view(np.int64)
    words >>= np.uint64(turn_bits)
    if (words[1:] == words[:-1]).any():  # alike in their leading bits: compare all of them
        order = np.lexsort((uniform, np.repeat(np.arange(len(count)), count)))
        return np.asarray(order - np.repeat(_before(count), count))
    return turns
