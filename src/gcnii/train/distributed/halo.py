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
from gcnii.propagation import Adjacency, Pattern, Sparse, VmapInfo, replicas_first
from gcnii.propagation.product import multiply_each
from gcnii.train.distributed.world import World


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
        owner   (n,) the process of each node
        own     (rows,) the nodes here, sorted
        """
        nodes = wanted[torch.argsort(owner[wanted], stable=True)]
        received = torch.bincount(owner[nodes], minlength=world.size).tolist()
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

    @cached_property
    def collect(self) -> Pattern:
        """(rows, sent): which of the rows sent are one of the rows here."""
        order = torch.argsort(self.sent, stable=True)
        shape = self.rows, len(self.sent)
        return Pattern.from_sorted(self.sent[order], order, shape)


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


@dataclass(frozen=True, eq=False)
class CutAdjacency:
    """The rows of an adjacency that this process has.

    links  of the whole graph: DropEdge draws and normalises all of them in every process
    near   where the entries on this process's columns are stored, and `near_entries` which of the
           whole they are
    far    the same of the other processes' columns
    """

    links: Adjacency
    near: Pattern
    near_entries: Tensor
    far: Pattern
    far_entries: Tensor
    halo: Halo

    @classmethod
    def of(cls, links: Adjacency, world: World, owner: Tensor, own: Tensor) -> CutAdjacency:
        """The rows `own`, where `owner` (n,) is the process of each node."""
        pattern = links.pattern
        entries = torch.nonzero(owner[pattern.row_of] == world.rank)[:, 0]
        row = torch.searchsorted(own, pattern.row_of[entries])
        column = pattern.columns[entries].long()
        here = owner[column] == world.rank
        halo = Halo.of(world, torch.unique(column[~here]), owner, own)
        place = torch.zeros(len(owner), dtype=torch.int64, device=owner.device)
        for nodes in (own, halo.nodes):
            place[nodes] = torch.arange(len(nodes), device=owner.device)
        near = Pattern.from_sorted(row[here], place[column[here]], (len(own), len(own)))
        far = Pattern.from_sorted(row[~here], place[column[~here]], (len(own), len(halo.nodes)))
        return cls(links, near, entries[here], far, entries[~here], halo)

    @property
    def pattern(self) -> Pattern:
        """The entries of the whole graph."""
        return self.links.pattern

    @property
    def weights(self) -> Tensor:
        """(entries,) of the whole graph."""
        return self.links.weights

    @property
    def pairs(self) -> Tensor:
        """(entries,) of the whole graph."""
        return self.links.pairs

    @cached_property
    def whole(self) -> CutMatrix:
        """The rows of the propagation matrix of all links."""
        return self.matrix()

    def matrix(self, kept: Tensor | None = None) -> CutMatrix:
        """The rows of the propagation matrix of the links that `kept` (entries,) marks."""
        values = self.links.matrix(kept).values
        near = Sparse.on(self.near, values[self.near_entries])
        far = Sparse.on(self.far, values[self.far_entries])
        return CutMatrix(near.pattern, near.values, near.transposed, far, self.halo)

    def induced(self, nodes: Tensor) -> Adjacency:
        """Refuse: a subgraph has nodes of several processes."""
        raise UsageError("a graph that is cut over processes is trained as a whole")
