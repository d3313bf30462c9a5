"""CutAdjacency: the rows of P̃ that one process has, with the degrees of other processes' nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from gcnii.errors import UsageError
from gcnii.propagation import CutPattern, GraphAdjacency, Norm, Pattern, Rows, row_sums
from gcnii.train.distributed.halo import CutMatrix, Halo
from gcnii.train.distributed.links import Links
from gcnii.train.distributed.world import World


@dataclass(frozen=True, eq=False)
class CutAdjacency(GraphAdjacency):
    """This process's rows of Ã; columns are its own nodes, and after them those of its halo.

    A row has its entries in the order of the whole graph, so that its sum rounds as there.  Degrees
    of the halo are asked of the processes that have its nodes, whenever links are dropped.

    numbers     (entries,) of its links among those of the whole graph, on the CPU
    pair_numbers   gives those that (u, v) and (v, u) share
    places  where P's values are stored: those on its own columns, and then those on the halo's
    order   (entries,) brings values into the order of `places`
    """

    numbers: Tensor = field(kw_only=True)
    pair_numbers: Callable[[], Tensor] = field(kw_only=True)
    halo: Halo = field(kw_only=True)
    places: CutPattern = field(kw_only=True)
    order: Tensor = field(kw_only=True)

    @classmethod
    def cut(
        cls, links: Links, world: World, norm: Norm, looped: bool,
        device: torch.device, dtype: torch.dtype,
    ) -> CutAdjacency:  # fmt: skip
        """Ask the other processes for what these links lead to; all call this."""
        own, row, column = (one.to(device) for one in (links.own, links.row, links.column))
        place = torch.searchsorted(own, column)
        here = own[place.clamp(max=len(own) - 1)] == column
        wanted = torch.unique(column[~here])
        owner = links.owner.to(device)[torch.searchsorted(links.halo.to(device), wanted)]
        halo = Halo.of(world, wanted, owner, own)
        place[~here] = len(own) + _places(halo.nodes, column[~here])
        rows, columns = len(own), len(own) + len(halo.nodes)
        near, far = torch.nonzero(here)[:, 0], torch.nonzero(~here)[:, 0]
        places = CutPattern(
            Pattern.from_sorted(row[near], place[near], (rows, rows)),
            Pattern.from_sorted(row[far], place[far] - rows, (rows, columns - rows)),
            halo,
        )
        return cls(
            Pattern.from_sorted(row, place, (rows, columns)),
            links.weights.to(device, dtype),
            links.diagonal.to(device, dtype),
            norm,
            looped,
            numbers=links.numbers,
            pair_numbers=links.pairs,
            halo=halo,
            places=places,
            order=torch.cat([near, far]),
        )

    @cached_property
    def whole(self) -> CutMatrix:
        """The rows of the propagation matrix of all links."""
        return self.matrix()

    def matrix(self, kept: Tensor | None = None) -> CutMatrix:
        """The rows of the propagation matrix of the links that `kept` (entries,) marks."""
        values = self._normalised(self.weights if kept is None else self.weights * kept)
        return CutMatrix.of(self.places, values[self.order])

    @cached_property
    def entries(self) -> Rows:
        """The numbers of its links, by which DropEdge draws them."""
        numbers = self.numbers.to(self.weights.device)
        return Rows(numbers, numbers)

    @cached_property
    def paired(self) -> Rows:
        """Numbers that (u, v) and (v, u) share, by which DropEdge draws pairs."""
        return Rows(self.pairs, self.pairs)

    @cached_property
    def pairs(self) -> Tensor:
        """(entries,) a number that (u, v) and (v, u) share, in the whole graph."""
        return self.pair_numbers().to(self.weights.device)

    def induced(self, nodes: Tensor) -> GraphAdjacency:
        """Refuse: a subgraph has nodes of several processes."""
        raise UsageError("a graph that is cut over processes is trained as a whole")

    def _of_columns(self, each: Tensor) -> Tensor:
        return torch.cat([each, self.halo.fetched(each)])

    def _column_sums(self, A: Tensor) -> Tensor:
        transposed, order = self.pattern.transposed
        sums = row_sums(transposed, A.index_select(0, order))
        return sums[: self.halo.rows] + self.halo.returned(sums[self.halo.rows :])


def _places(nodes: Tensor, asked: Tensor) -> Tensor:
    """Where among some nodes, in any order, those that are asked for stand."""
    order = torch.argsort(nodes)
    return order[torch.searchsorted(nodes[order], asked)]
