"""The draws of `sampler` on a GPU: the same links, and nothing waits for the host's arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcnii.kernels.draw import CSRLinks, can_draw, draw, ends, fill, reach
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
        upto = ends(self.links, self.loops, nodes, fanout)
        total, entries = upto[-1].tolist()  # waits for the device
        met = torch.zeros(self.P.shape[0], dtype=torch.uint8, device=self.device)
        how = {"fanout": fanout, "longest": self.longest, "entries": entries, "met": met}
        generator = random.bit_generator
        assert isinstance(generator, np.random.PCG64)
        link = draw(self.links, nodes, upto, generator, **how)
        if fanout:
            generator.advance(total)
        reached, place = reach(nodes, met)
        columns, row_of = place.new_empty(entries), nodes.new_empty(entries)
        rows = place.new_empty(len(nodes) + 1)
        pattern = Pattern(rows, columns, (len(nodes), len(reached)), transient=True)
        pattern.__dict__["row_of"] = row_of  # to find it from the rows would be five launches

        def matrix(*, root: bool = False) -> Sparse:
            """Scaled so that the mean over all samples is P; or by the root of that."""
            values = self.loops.new_empty(entries)
            own = self.loops, place, rows, row_of, columns, values
            fill(self.links, nodes, upto, link, *own, fanout=fanout, root=root)
            return Sparse(pattern, values)

        hop = matrix()
        if history is None:
            return hop, reached
        noise, exact = matrix(root=True), Sparse(*self.P.rows(nodes, transient=True))
        parts = hop.pattern, hop.values, noise, exact
        return HistoryHop(*parts, reached, history, layer), reached
