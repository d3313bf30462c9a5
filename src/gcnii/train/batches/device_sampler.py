"""The same draws as `sampler`'s, by torch, where P is: so that a GPU does not wait for a CPU."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gcnii.kernels import offsets
from gcnii.propagation import Pattern, Sparse
from gcnii.train.batches.history import ActivationHistory, HistoryHop
from gcnii.train.batches.sampler import Hop, uniform


class DeviceSampler:
    """Samples the links of P between different nodes; the diagonal is always there.

    P        (n, n)
    start    (n,) where a node's links begin
    count    (n,) the number of its links
    columns, values   (links,)
    loops    (n,) P's diagonal; None if it is zero
    """

    def __init__(self, P: Sparse):
        row, columns = P.pattern.row_of, P.pattern.columns.long()
        loop, there = row == columns, P.values != 0
        link = there & ~loop
        self.P, self.columns, self.values = P, columns[link], P.values[link]
        self.count = torch.bincount(row[link], minlength=P.shape[0])
        self.start = _before(self.count)
        loops = P.values.new_zeros(P.shape[0]).index_put((row[loop],), P.values[loop])
        self.loops = loops if bool((loop & there).any()) else None

    def draw(
        self, nodes: Tensor, fanout: int, random: np.random.Generator
    ) -> tuple[Tensor, Tensor]:
        """Up to `fanout` links per node (0: all): how many of each node, and the links."""
        count, start = (each.index_select(0, nodes) for each in (self.count, self.start))
        drawn = count.clamp(max=fanout) if fanout else count
        total, links = torch.stack([count.sum(), drawn.sum()]).tolist()  # waits for the device
        if fanout == 0:
            return count, _runs(start, count, links)
        numbers = torch.from_numpy(uniform(random, total).view(np.int64)).to(nodes.device)
        turns = shuffled(count, numbers).index_select(0, _runs(_before(count), drawn, links))
        return drawn, turns + _repeat(start, drawn, links)

    def hop(
        self,
        nodes: Tensor,
        drawn: Tensor,
        link: Tensor,
        history: ActivationHistory | None = None,
        layer: int = 0,
    ) -> tuple[Sparse, Tensor]:
        """The rectangular matrix of these links of these nodes, and the nodes of its columns."""
        reached, places = self._reached(nodes, self.columns.index_select(0, link))
        loops = None if self.loops is None else self.loops.index_select(0, nodes)
        entries = Entries(drawn, len(link), loops)
        columns = entries.joined(places, entries.looped.int())
        pattern = Pattern(entries.rows.int(), columns, (len(nodes), len(reached)))
        values = self.values.index_select(0, link)
        # So that the mean over all samples is P.
        scale = self.count.index_select(0, nodes).double() / drawn.clamp(min=1)

        def matrix(scale: Tensor) -> Hop:
            scaled = (values * _repeat(scale, drawn, len(link))).to(values.dtype)
            return Hop(pattern, entries.joined(scaled, entries.loops))

        hop = matrix(scale)
        if history is None:
            return hop, reached
        noise, exact = matrix(scale.sqrt()), Hop(*self.P.rows(nodes))
        parts = hop.pattern, hop.values, hop.transposed, noise, exact
        return HistoryHop(*parts, reached, history, layer), reached

    def _reached(self, nodes: Tensor, sources: Tensor) -> tuple[Tensor, Tensor]:
        """The nodes, followed by those sources that are not among them; and each source's place."""
        strange = torch.zeros(len(self.count), dtype=torch.bool, device=nodes.device)
        strange.index_fill_(0, sources, True).index_fill_(0, nodes, False)
        reached = torch.cat([nodes, strange.nonzero()[:, 0]])
        place = torch.empty(len(self.count), dtype=torch.int32, device=nodes.device)
        place[reached] = torch.arange(len(reached), dtype=torch.int32, device=nodes.device)
        return reached, place.index_select(0, sources)


class Entries:
    """Where the entries of a hop stand: after the links of a row, its loop.

    drawn   (m,) the number of links of each row, `links` in all
    rows    (m + 1,) where each row begins
    looped  the rows with a loop
    loops   their loops
    """

    def __init__(self, drawn: Tensor, links: int, loops: Tensor | None):
        self.drawn, self.links = drawn, links
        self.looped = drawn[:0] if loops is None else loops.nonzero()[:, 0]
        self.loops = drawn[:0] if loops is None else loops.index_select(0, self.looped)
        self.rows = offsets(drawn if loops is None else drawn + (loops != 0))

    def joined(self, links: Tensor, loops: Tensor) -> Tensor:
        """What links and loops have, entry by entry."""
        if not len(self.looped):
            return links
        return torch.cat([links, loops]).index_select(0, self._order)

    @cached_property
    def _order(self) -> Tensor:
        """Where each entry is among the links, followed by the loops."""
        first = self.rows[:-1]
        after = (first + self.drawn).index_select(0, self.looped)
        place = torch.cat([_runs(first, self.drawn, self.links), after])
        order = torch.empty_like(place)
        order[place] = torch.arange(len(place), device=place.device)
        return order


def shuffled(count: Tensor, numbers: Tensor) -> Tensor:
    """0 … count - 1 for each of these counts, in the order of the numbers, one for each."""
    row = _repeat(torch.arange(len(count), device=count.device), count, len(numbers))
    order = torch.argsort(numbers, stable=True)
    order = order[torch.argsort(row[order].int(), stable=True)]
    return order - _before(count)[row]


def _before(count: Tensor) -> Tensor:
    """(n,) the sum of the counts before each."""
    return count.cumsum(0) - count


def _runs(start: Tensor, count: Tensor, total: int) -> Tensor:
    """start, start + 1, … (`count` of them), for each start and count, one after the other."""
    each = _repeat(start - _before(count), count, total)
    return each + torch.arange(total, device=each.device)


def _repeat(values: Tensor, count: Tensor, total: int) -> Tensor:
    """Each value `count` times, `total` in all: told, it need not be waited for."""
    return torch.repeat_interleave(values, count, output_size=total)
