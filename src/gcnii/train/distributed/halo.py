"""P cut over processes: a layer fetches its neighbours' rows while it multiplies by its own.

    S = P_near H + P_far halo(H)         backward: dH = P_nearᵀ G + back(P_farᵀ G)

`halo` fetches the rows of other processes' nodes that this one gathers from; `back` returns their
gradients, and adds up those that others return.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcnii.errors import UsageError
from gcnii.propagation import Pattern, Sparse, VmapInfo, replicas_first
from gcnii.propagation.product import multiply_each
from gcnii.train.distributed.world import World

Exchange = Callable[[Tensor], Callable[[], Tensor]]  # sends rows; what it returns waits for others'


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

    def fetch(self, H: Tensor) -> Callable[[], Tensor]:
        """H (rows, h): send what others want; wait for their rows (halo, h)."""
        return self.world.exchange(H.index_select(0, self.sent), self.counts, self.received)

    def back(self, G: Tensor) -> Callable[[], Tensor]:
        """G (halo, h): return gradients; wait for those of the rows here (rows, h), added up."""
        wait = self.world.exchange(G, self.received, self.counts)

        def added() -> Tensor:
            # In a fixed order, so that a training is the same again on a GPU, too.
            ones = G.new_ones(len(self.sent))
            return _multiply(self.collect, ones, wait())

        return added

    def fetched(self, each: Tensor) -> Tensor:
        """(rows,) numbers of the nodes here → (halo,) those of the halo; vmap takes it."""
        return Exchanged.apply(each, self.fetch)  # type: ignore[no-any-return, no-untyped-call]

    def returned(self, each: Tensor) -> Tensor:
        """(halo,) numbers → (rows,) the sums of what others have for the nodes here; with vmap."""
        return Exchanged.apply(each, self.back)  # type: ignore[no-any-return, no-untyped-call]

    @cached_property
    def collect(self) -> Pattern:
        """(rows, sent): which of the rows sent are one of the rows here."""
        order = torch.argsort(self.sent, stable=True)
        shape = self.rows, len(self.sent)
        return Pattern.from_sorted(self.sent[order], order, shape)


class Exchanged(torch.autograd.Function):
    """A number of each node by `Halo.fetch` or `Halo.back`; it has no gradient."""

    @staticmethod
    def forward(each: Tensor, exchange: Exchange) -> Tensor:
        """(nodes here or of the halo,) → (those of the other,)."""
        return exchange(each[:, None].contiguous())()[:, 0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Save nothing."""
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...], each: Tensor, exchange: Exchange
    ) -> tuple[Tensor, int]:
        """One exchange for all replicas."""
        return exchange(replicas_first(each, in_dims[0], info.batch_size).T.contiguous())(), 1


@dataclass(frozen=True, eq=False, repr=False)
class CutMatrix(Sparse):
    """This process's rows of P: (rows, rows) on its own columns, and `far` on those of others."""

    far: Sparse
    halo: Halo
    fusible = False

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The numbers of both parts."""
        return self.values, self.transposed, *self.far.tensors

    def holding(self, tensors: Sequence[Tensor]) -> CutMatrix:
        """The matrix with these in the place of `tensors`."""
        values, transposed, *far = tensors
        return CutMatrix(self.pattern, values, transposed, self.far.holding(far), self.halo)

    def with_values(self, values: Tensor) -> Sparse:
        """Refuse: the values are in two parts."""
        raise UsageError("the values of a matrix that is cut over processes are in two parts")

    def __matmul__(self, H: Tensor) -> Tensor:
        places = Places(self.pattern, self.far.pattern, self.halo)
        return cut_product(self.tensors, H, places)


@dataclass(frozen=True, eq=False)
class Places:
    """Where the values of a CutMatrix stand: on its own columns, on those of others, and whose."""

    near: Pattern
    far: Pattern
    halo: Halo


def cut_product(values: Sequence[Tensor], H: Tensor, places: Places) -> Tensor:
    """P H (rows, h) for a P with these `tensors`."""
    return CutProduct.apply(*values, H, places)  # type: ignore[no-any-return, no-untyped-call]


class CutProduct(torch.autograd.Function):
    """P H (rows, h) for H (rows, h), of which other processes have the rest; P has no gradient."""

    @staticmethod
    def forward(
        near: Tensor, near_t: Tensor, far: Tensor, far_t: Tensor, H: Tensor, places: Places
    ) -> Tensor:
        """Multiply by the columns here while the others are on their way."""
        halo = places.halo.fetch(H)
        S = _multiply(places.near, near, H)
        return S.add_(_multiply(places.far, far, halo()))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Save the values of the transposes."""
        _, near_t, _, far_t, _, ctx.places = inputs
        ctx.save_for_backward(near_t, far_t)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the halo while multiplying by the columns here."""
        (near_t, far_t), places = ctx.saved_tensors, ctx.places
        added = places.halo.back(_multiply(places.far.transposed[0], far_t, G))
        dH = _multiply(places.near.transposed[0], near_t, G)
        return None, None, None, None, dH.add_(added()), None

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...],
        near: Tensor, near_t: Tensor, far: Tensor, far_t: Tensor, H: Tensor, places: Places,
    ) -> tuple[Tensor, int]:  # fmt: skip
        """One exchange for all replicas that share P; else one after the other."""
        H, values = replicas_first(H, in_dims[4], info.batch_size), (near, near_t, far, far_t)
        if all(dim is None for dim in in_dims[:4]):
            columns = H.transpose(0, 1).reshape(H.shape[1], -1)
            wide: Tensor = cut_product(values, columns, places).unflatten(1, (len(H), -1))
            return wide, 1
        pairs = zip(values, in_dims, strict=False)
        every = zip(*(replicas_first(one, dim, len(H)) for one, dim in pairs), strict=True)
        each = (cut_product(own, one, places) for own, one in zip(every, H, strict=True))
        return torch.stack([*each]), 0


def _multiply(pattern: Pattern, values: Tensor, H: Tensor) -> Tensor:
    if len(values) == 0:
        return H.new_zeros(pattern.shape[0], H.shape[1])
    return multiply_each(pattern, values[None], H[None])[0]
