"""Sampling the links of a few nodes, in numpy: a hop's matrix, and the nodes of its columns."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.propagation import Pattern, Sparse
from gcnii.propagation.product import product
from gcnii.train.batches.history import ActivationHistory, HistoryHop

Numbers = NDArray[np.int64]
LONG = 1 << 10  # links of a node, beyond which their random numbers have fewer bits


class Hop(Sparse):
    """A matrix whose transpose is made when a gradient needs it.

    The first hop of many models reads nothing but X, which has no gradient.
    """

    def __init__(self, pattern: Pattern, values: Tensor):
        object.__setattr__(self, "pattern", pattern)
        object.__setattr__(self, "values", values)

    @cached_property
    def transposed(self) -> Tensor:
        """The values, in the order of the transpose's pattern."""
        return self.values.index_select(0, self.pattern.transposed[1])

    def __matmul__(self, H: Tensor) -> Tensor:
        return product(self.values, None, H, self.pattern)


class NeighbourSampler:
    """Samples the links of P between different nodes; the diagonal is always there.

    P        (n, n)
    start    (n,) where a node's links begin
    count    (n,) the number of its links
    links    (links,) the column and the value of each, side by side: they are read together, in
             places all over the memory
    loops    (n,) P's diagonal
    """

    def __init__(self, P: Sparse):
        self.P = P
        row, column, value = (
            array.cpu().numpy() for array in (P.pattern.row_of, P.pattern.columns, P.values)
        )
        n = P.shape[0]
        link = (row != column) & (value != 0)
        self.links = np.empty(int(link.sum()), [("column", column.dtype), ("value", value.dtype)])
        self.links["column"], self.links["value"] = column[link], value[link]
        self.count = np.bincount(row[link], minlength=n)
        self.start = _before(self.count)
        self.loops = np.zeros(n, value.dtype)
        self.loops[row[row == column]] = value[row == column]

    @property
    def device(self) -> torch.device:
        """Where nodes are taken and given."""
        return torch.device("cpu")

    def sample(
        self, nodes: Tensor, fanout: int, random: np.random.Generator,
        history: ActivationHistory | None, layer: int,
    ) -> tuple[Sparse, Tensor]:  # fmt: skip
        """The matrix of up to `fanout` links of these nodes (0: all), and its columns' nodes."""
        targets = nodes.numpy()
        hop, reached = self.hop(targets, *self.draw(targets, fanout, random), history, layer)
        return hop, torch.from_numpy(reached)

    def draw(
        self, nodes: Numbers, fanout: int, random: np.random.Generator
    ) -> tuple[Numbers, Numbers]:
        """Up to `fanout` links per node (0: all): how many of each node, and the links.

        A link has a uniform number, one after the other in the order of `nodes`; the smallest of
        each node are drawn, in their order.
        """
        count, start = self.count[nodes], self.start[nodes]
        if fanout == 0:
            return count, _runs(start, count)
        # What `random.random` would divide by 2⁵³.
        numbers = random.bit_generator.random_raw(int(count.sum())) >> np.uint64(11)
        drawn = np.minimum(count, fanout)
        links = shuffled(count, numbers).take(_runs(_before(count), drawn))
        links += np.repeat(start, drawn)
        return drawn, links

    def hop(
        self,
        nodes: Numbers,
        drawn: Numbers,
        link: Numbers,
        history: ActivationHistory | None = None,
        layer: int = 0,
    ) -> tuple[Sparse, Numbers]:
        """The rectangular matrix of these links of these nodes, and the nodes of its columns."""
        links = self.links.take(link)
        reached, place = self._reached(nodes, links["column"].astype(np.int64))
        loops = self.loops[nodes]
        looped = np.flatnonzero(loops)
        # A row's loop comes after its links.
        at = np.cumsum(drawn)[looped]
        rows = np.zeros(len(nodes) + 1, np.int32)
        np.cumsum(drawn + (loops != 0), out=rows[1:])
        columns = np.insert(place, at, looped) if len(looped) else place
        shape = len(nodes), len(reached)
        pattern = Pattern(self._tensor(rows), self._tensor(columns), shape, transient=True)
        # So that the mean over all samples is P.
        scale = self.count[nodes] / np.maximum(drawn, 1)

        def matrix(scale: NDArray[np.float64]) -> Hop:
            values = (links["value"] * np.repeat(scale, drawn)).astype(loops.dtype)
            values = np.insert(values, at, loops[looped]) if len(looped) else values
            return Hop(pattern, self._tensor(values))

        hop = matrix(scale)
        if history is None:
            return hop, reached
        whole = self.P.rows(self._tensor(nodes), transient=True)
        noise, exact = matrix(np.sqrt(scale)), Hop(*whole)
        parts = hop.pattern, hop.values, hop.transposed, noise, exact
        return HistoryHop(*parts, self._tensor(reached), history, layer), reached

    def _reached(self, nodes: Numbers, sources: Numbers) -> tuple[Numbers, NDArray[np.int32]]:
        """The nodes, followed by those sources that are not among them; and each source's place."""
        strange = np.zeros(len(self.count), bool)
        strange[sources] = True
        strange[nodes] = False
        reached = np.concatenate([nodes, np.flatnonzero(strange)])
        place = np.cumsum(strange, dtype=np.int32)
        place += len(nodes) - 1
        place[nodes] = np.arange(len(nodes))
        return reached, place.take(sources)

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self.P.device)


def shuffled(count: Numbers, numbers: NDArray[np.uint64]) -> Numbers:
    """0 … count - 1 for each of these counts, in the order of the numbers, < 2⁵³, one for each.

    Row, number and turn are packed in a word of 64 bits, because to sort words takes half the time
    that it takes to find their order.  Rows of more than LONG have numbers of 39 bits, as in the
    words of the GPU's kernel.
    """
    if (count > LONG).any():
        numbers = np.where(np.repeat(count > LONG, count), numbers >> 14 << 14, numbers)
    row_bits, turn_bits = (int(most).bit_length() for most in (len(count), count.max(initial=0)))
    bits = min(53, 64 - row_bits - turn_bits)
    words = numbers >> np.uint64(53 - bits)
    words <<= np.uint64(turn_bits)
    row = np.arange(len(count)) << (bits + turn_bits)
    words += _runs(row, count).view(np.uint64)
    words.sort()
    turns: Numbers = (words & np.uint64((1 << turn_bits) - 1)).view(np.int64)
    words >>= np.uint64(turn_bits)
    if (words[1:] == words[:-1]).any():  # alike in their leading bits: compare all of them
        order = np.lexsort((numbers, np.repeat(np.arange(len(count)), count)))
        return np.asarray(order - np.repeat(_before(count), count))
    return turns


def _before(count: Numbers) -> Numbers:
    """(n,) the sum of the counts before each."""
    return np.cumsum(count) - count


def _runs(start: Numbers, count: Numbers) -> Numbers:
    """start, start + 1, … (`count` of them), for each start and count, one after the other."""
    runs = np.repeat(start - _before(count), count)
    runs += np.arange(len(runs))
    return runs
