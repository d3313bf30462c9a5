"""Halo: the rows that a process fetches from others, and what it returns to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gcnii.errors import UsageError
from gcnii.propagation import CutPattern, Pattern, Sparse, VmapInfo, Wait, replicas_first
from gcnii.propagation.product import multiply_each
from gcnii.train.distributed.world import World

Exchange = Callable[[Tensor], Wait]  # sends rows; what it returns waits for others'


@dataclass(frozen=True, eq=False)
class Halo:
    """Which rows go where.

    nodes     (halo,) the nodes of other processes that this one gathers from, by process
    received  how many of them are of each process
    sent      (sent,) the rows here that others gather from, by process
    counts    how many of them go to each process
    rows      the number of rows here
    """

    world: World
    nodes: Tensor
    received: list[int]
    sent: Tensor
    counts: list[int]
    rows: int

    @classmethod
    def of(cls, world: World, wanted: Tensor, owner: Tensor, own: Tensor) -> Halo:
        """Ask each process for what is wanted of it.

        wanted  nodes of other processes, sorted
        owner   the process of each of them
        own     (rows,) the nodes here, sorted
        """
        nodes = wanted[torch.argsort(owner, stable=True)]
        received = torch.bincount(owner, minlength=world.size).tolist()
        ones = [1] * world.size
        counts = world.exchange(torch.tensor(received), ones, ones)().tolist()
        asked = world.exchange(nodes.cpu(), received, counts)()
        sent = torch.searchsorted(own.cpu(), asked).to(own.device)
        return cls(world, nodes, received, sent, counts, len(own))

    def fetch(self, H: Tensor) -> Wait:
        """H (r, rows, h): send what others want; wait for their rows (r, halo, h)."""
        rows = H.index_select(1, self.sent).transpose(0, 1)
        wait = self.world.exchange(rows, self.counts, self.received)
        return lambda: wait().transpose(0, 1).contiguous()

    def back(self, G: Tensor) -> Wait:
        """G (r, halo, h): return gradients; wait for those of the rows sent (r, sent, h)."""
        wait = self.world.exchange(G.transpose(0, 1), self.received, self.counts)
        return lambda: wait().transpose(0, 1).contiguous()

    def fetched(self, each: Tensor) -> Tensor:
        """(rows,) numbers of the nodes here → (halo,) those of the halo; vmap takes it."""
        return Exchanged.apply(each, self.fetch)  # type: ignore[no-any-return, no-untyped-call]

    def returned(self, each: Tensor) -> Tensor:
        """(halo,) numbers → (rows,) the sums of what others have for the nodes here; with vmap."""
        sums = Exchanged.apply(each, self._summed)  # type: ignore[no-untyped-call]
        return sums  # type: ignore[no-any-return]

    def _summed(self, each: Tensor) -> Wait:
        wait, ones = self.back(each), each.new_ones(1, len(self.sent))
        return lambda: multiply_each(self.collect, ones, wait())

    @cached_property
    def collect(self) -> Pattern:
        """(rows, sent): which of the rows sent are one of the rows here.

        Sums over it have a fixed order, so that a training is the same again on a GPU, too.
        """
        order = torch.argsort(self.sent, stable=True)
        shape = self.rows, len(self.sent)
        return Pattern.from_sorted(self.sent[order], order, shape)


class Exchanged(torch.autograd.Function):
    """A number of each node by `Halo.fetch` or `Halo.back`; it has no gradient."""

    @staticmethod
    def forward(each: Tensor, exchange: Exchange) -> Tensor:
        """(nodes here or of the halo,) → (those of the other,)."""
        return exchange(each[None, :, None])()[0, :, 0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Save nothing."""
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...], each: Tensor, exchange: Exchange
    ) -> tuple[Tensor, int]:
        """One exchange for all replicas."""
        return exchange(replicas_first(each, in_dims[0], info.batch_size)[..., None])()[..., 0], 0


@dataclass(frozen=True, eq=False, repr=False)
class CutMatrix(Sparse):
    """This process's rows of P.  Its `pattern` is that of the near columns alone.

    cut  where all values are: near's entries, followed by far's
    """

    cut: CutPattern

    @classmethod
    def of(cls, cut: CutPattern, values: Tensor) -> CutMatrix:
        """The matrix with these values, near's first; no gradient reaches them."""
        return cls(cut.near, values, values.index_select(0, cut.transposed[1]), cut)

    @property
    def places(self) -> CutPattern:
        """Where the values are, for products."""
        return self.cut

    def holding(self, tensors: Sequence[Tensor]) -> CutMatrix:
        """The matrix with these in the place of `tensors`."""
        values, transposed = tensors
        return CutMatrix(self.pattern, values, transposed, self.cut)

    def with_values(self, values: Tensor) -> Sparse:
        """Refuse: the values are made by the adjacency alone."""
        raise UsageError("the values of a matrix that is cut over processes are made by its links")
