"""The draws of `sampler` on a GPU: the same links, and nothing waits for the host's arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcnii.kernels import offsets
from gcnii.kernels.draw import CSRLinks, can_draw, draw, fill, jumps
from gcnii.propagation import Sparse
from gcnii.propagation.sparse import Pattern
from gcnii.train.batches import ActivationHistory, HistoryHop


@dataclass(frozen=True, eq=False)
class DeviceSampler:
    """Samples the links of P between different nodes; the diagonal is always there.

    loops    (n,) P's diagonal
    longest  the most links that a node has
    """

    P: Sparse
    links: CSRLinks
    loops: Tensor
    longest: int

    @classmethod
    def of(cls, P: Sparse) -> DeviceSampler:
        row, column = P.pattern.row_of, P.pattern.columns
        link = (row != column) & (P.values != 0)
        count = torch.bincount(row[link], minlength=P.shape[0])
        loops, diagonal = P.values.new_zeros(P.shape[0]), row == column
        loops[row[diagonal]] = P.values[diagonal]
        links = CSRLinks(count.cumsum(0) - count, count, column[link], P.values[link])
        return cls(P, links, loops, int(count.max()) if len(count) else 0)

    @property
    def device(self) -> torch.device:
        """The device of the nodes that it takes and returns."""
        return self.P.device

    def can_draw(self, fanout: int) -> bool:
        """Whether the kernels draw this many links of each node."""
        return can_draw(self.longest, fanout)

    def sample(
        self, nodes: Tensor, fanout: int, random: np.random.Generator,
        history: ActivationHistory | None, layer: int,
    ) -> tuple[Sparse, Tensor]:  # fmt: skip
        """The matrix of up to `fanout` links of these nodes (0: all), and its columns' nodes."""
        count = self.links.count.index_select(0, nodes)
        drawn = count.clamp(max=fanout) if fanout else count
        rows = offsets(drawn + (self.loops.index_select(0, nodes) != 0))
        ends = count.cumsum(0)
        total, entries = torch.stack([ends[-1], rows[-1]]).tolist()  # waits for the device
        met = torch.zeros(self.P.shape[0], dtype=torch.uint8, device=self.device)
        how = {"fanout": fanout, "longest": self.longest, "entries": entries, "met": met}
        generator = random.bit_generator
        assert isinstance(generator, np.random.PCG64)
        stream = jumps(generator).to(self.device) if fanout else None
        link = draw(self.links, nodes, rows, ends - count, stream, **how)
        if fanout:
            generator.advance(total)
        reached, place = self._reached(nodes, met)
        columns = place.new_empty(entries)
        pattern = Pattern(rows.int(), columns, (len(nodes), len(reached)), transient=True)
        # So that the mean over all samples is P.
        scale = count.double() / drawn.clamp(min=1)

        def matrix(scale: Tensor) -> Sparse:
            values = self.loops.new_empty(entries)
            own = self.loops, place, scale, columns, values
            fill(self.links, nodes, rows, link, *own)
            return Sparse(pattern, values)

        hop = matrix(scale)
        if history is None:
            return hop, reached
        noise, exact = matrix(scale.sqrt()), Sparse(*self.P.rows(nodes, transient=True))
        parts = hop.pattern, hop.values, noise, exact
        return HistoryHop(*parts, reached, history, layer), reached

    def _reached(self, nodes: Tensor, met: Tensor) -> tuple[Tensor, Tensor]:
        """The nodes, followed by the others that were reached; and the position of each of them."""
        met.index_fill_(0, nodes, 0)
        reached = torch.cat([nodes, met.nonzero()[:, 0]])  # waits for the device
        place = torch.empty(len(met), dtype=torch.int32, device=self.device)
        place[reached] = torch.arange(len(reached), dtype=torch.int32, device=self.device)
        return reached, place
