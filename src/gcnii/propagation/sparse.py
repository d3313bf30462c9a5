"""The one sparse product, with its gradients and its vmap rule."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import linear

from gcnii import kernels
from gcnii.graph import Graph


def feature_matrix(graph: Graph) -> Tensor | Sparse:
    """X as a model takes it: a dense tensor, or a Sparse where the graph holds it as CSR."""
    return (
        Sparse.from_scipy(graph.X) if isinstance(graph.X, sp.csr_array) else torch.tensor(graph.X)
    )


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where the entries of a sparse matrix stand: CSR's two index arrays, and how to reach the
    transpose's.
    """

    rows: Tensor  # (n + 1,) int32: row i's entries are rows[i] … rows[i + 1]
    columns: Tensor  # (entries,) int32
    shape: tuple[int, int]

    @classmethod
    def of(cls, matrix: sp.csr_array) -> Pattern:
        """Where a scipy matrix has its entries."""
        rows, columns = torch.tensor(matrix.indptr).int(), torch.tensor(matrix.indices).int()
        return cls(rows, columns, (int(matrix.shape[0]), int(matrix.shape[1])))

    @cached_property
    def row_of(self) -> Tensor:
        """(entries,) the row in which each entry stands."""
        numbers = torch.arange(self.shape[0], device=self.rows.device)
        return torch.repeat_interleave(
            numbers, self.rows.diff().long(), output_size=len(self.columns)
        )

    @cached_property
    def transposed(self) -> tuple[Pattern, Tensor]:
        """The transpose's pattern, and the order that brings this one's values into it."""
        order = torch.argsort(self.columns, stable=True)
        ends = torch.bincount(self.columns, minlength=self.shape[1]).cumsum(0)
        rows = torch.cat([ends.new_zeros(1), ends]).int()
        return Pattern(rows, self.row_of[order].int(), (self.shape[1], self.shape[0])), order

    @cached_property
    def at_rows(self) -> Pattern:
        """(entries, n): an entry's row of this matrix has its one at the row where the entry
        stands.
        """
        return Pattern(self._steps, self.row_of.int(), (len(self.columns), self.shape[0]))

    @cached_property
    def at_columns(self) -> Pattern:
        """(entries, d): the same for the column."""
        return Pattern(self._steps, self.columns, (len(self.columns), self.shape[1]))

    @cached_property
    def blocks(self) -> dict[int, Pattern]:
        """Patterns of so many copies, once made: a captured epoch reads them for as long as it is
        replayed.
        """
        return {}

    @cached_property
    def orders(self) -> dict[tuple[type, int, int], Any]:
        """How a GPU goes through it, once made."""
        return {}

    def schedule(self, block: int, longest: int) -> Any:
        """How a GPU goes through it for a product: a kernels.schedule.Schedule."""
        from gcnii.kernels.schedule import Schedule

        return self._order(Schedule, block, longest)

    def slots(self, block: int, longest: int) -> Any:
        """How a GPU goes through it for the fused layers: a kernels.slots.Slots, or None where it
        has none.
        """
        from gcnii.kernels.slots import Slots

        return self._order(Slots, block, longest)

    def _order(self, kind: Any, block: int, longest: int) -> Any:
        if (kind, block, longest) not in self.orders:
            self.orders[kind, block, longest] = kind.of(self.rows, self.columns, block, longest)
        return self.orders[kind, block, longest]

    @property
    def _steps(self) -> Tensor:
        return torch.arange(len(self.columns) + 1, dtype=torch.int32, device=self.rows.device)

    def row_sums(self, E: Tensor) -> Tensor:
        """E (entries,) or (entries, h) → (n,) or (n, h): the sum of each row's entries."""
        collect, _ = self.at_rows.transposed
        sums = Sparse.on(collect, E.new_ones(len(self.columns))) @ (
            E if E.ndim == 2 else E[:, None]
        )
        return sums if E.ndim == 2 else sums[:, 0]

    def to_entries(self, H: Tensor, *, end: Literal["row", "column"]) -> Tensor:
        """H (n, h) → (entries, h): of each entry, the row of H that belongs to its row or to its
        column.

        The same as H[row_of] or H[columns], whose gradient would be a sum in no fixed order on a
        GPU.
        """
        pattern = self.at_rows if end == "row" else self.at_columns
        return Sparse.on(pattern, H.new_ones(len(self.columns))) @ H

    def dots(self, G: Tensor, H: Tensor) -> Tensor:
        """G (n, h), H (d, h) → (entries,): of each entry, the dot product of its row of G and its
        column's row of H.
        """
        return _dots(G, H, self)

    def repeat(self, times: int) -> Pattern:
        """The block-diagonal pattern of `times` copies."""
        (n, d), entries = self.shape, len(self.columns)
        block = torch.arange(times, device=self.rows.device, dtype=torch.int32)[:, None]
        rows = (self.rows[1:] + block * entries).flatten()
        columns = (self.columns + block * d).flatten()
        return Pattern(torch.cat([self.rows[:1], rows]), columns, (times * n, times * d))

    def to(self, device: torch.device | str) -> Pattern:
        """The same pattern on another device."""
        return Pattern(self.rows.to(device), self.columns.to(device), self.shape)


@dataclass(frozen=True, eq=False)
class Sparse:
    """A sparse matrix M; `M @ H` and `linear(M, W, b)` are products that pass gradients to H, W and
    M's values.

    It holds the values of its transpose too, because backward multiplies by Mᵀ: P̃ of a directed
    graph is not symmetric.
    """

    pattern: Pattern
    values: Tensor  # (entries,)
    transposed: Tensor  # the same values, in the order of the transpose's pattern

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array) -> Sparse:
        """The same matrix, in the same precision."""
        return cls.on(Pattern.of(matrix), torch.tensor(matrix.data))

    @classmethod
    def on(cls, pattern: Pattern, values: Tensor) -> Sparse:
        """The matrix with these values at the places of the pattern; gradients reach them through
        `values` alone.
        """
        return cls(pattern, values, values.detach().index_select(0, pattern.transposed[1]))

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.pattern.shape

    def with_values(self, values: Tensor) -> Sparse:
        """A matrix with other values at the same places."""
        return Sparse.on(self.pattern, values)

    def at(self, layer: int) -> Sparse:
        """What this layer gathers over: where the whole graph is at hand, the same for all."""
        return self

    def gather(self, H: Tensor, mean: Tensor | None = None) -> Tensor:
        """The product by H; where neighbours are drawn, an estimate that may use what H is without
        dropout.
        """
        return self @ H

    def __getitem__(self, nodes: Tensor | slice) -> Sparse:
        """These rows."""
        if isinstance(nodes, slice):
            if nodes.indices(self.shape[0]) == (0, self.shape[0], 1):
                return self
            nodes = torch.arange(self.shape[0], device=self.values.device)[nodes]
        start, count = self.pattern.rows[nodes].long(), self.pattern.rows.diff()[nodes].long()
        rows = torch.cat([count.new_zeros(1), count.cumsum(0)])
        inside = torch.arange(int(rows[-1]), device=nodes.device) + torch.repeat_interleave(
            start - rows[:-1], count
        )
        pattern = Pattern(rows.int(), self.pattern.columns[inside], (len(nodes), self.shape[1]))
        return Sparse.on(pattern, self.values[inside])

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Sparse:
        """The same matrix on another device, in another precision."""
        return Sparse(
            self.pattern.to(device),
            self.values.to(device, dtype),
            self.transposed.to(device, dtype),
        )

    def to_dense(self) -> Tensor:
        """The matrix with its zeros written out, for tests and small graphs."""
        return self @ torch.eye(self.shape[1], dtype=self.values.dtype, device=self.values.device)

    def __matmul__(self, H: Tensor) -> Tensor:
        return _product(self.values, self.transposed, H, self.pattern)

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Let `nn.Linear` take sparse features, so that a model's code need not know of them."""
        if function is linear:
            return _linear(*args, **(kwargs or {}))
        return NotImplemented


def _linear(X: Sparse, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    product = X @ weight.T
    return product if bias is None else product + bias


class Product(torch.autograd.Function):
    """M H for a sparse M (n, d) and H (d, h); H's gradient is Mᵀ G, that of M's value at (i, j) is
    G_i · H_j.

    Under vmap the replicas of H become columns of one wide product; where the values of M differ
    between replicas (dropout on features), M becomes one block-diagonal matrix.  On a GPU a kernel
    takes them as they are: H (r, d, h) and values (1, entries) or (r, entries).
    """

    @staticmethod
    def forward(values: Tensor, transposed: Tensor, H: Tensor, pattern: Pattern) -> Tensor:
        """Multiply."""
        return multiply_each(pattern, values, H) if H.ndim == 3 else _multiply(pattern, values, H)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, Pattern], output: Tensor
    ) -> None:
        """Keep what the gradients need; H only for that of the values, because it is large."""
        values, transposed, H, ctx.pattern = inputs
        ctx.save_for_backward(values, transposed, H if values.requires_grad else None)

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, None, Tensor | None, None]:
        """Multiply by the transpose."""
        values, transposed, H = ctx.saved_tensors
        pattern = ctx.pattern
        dH = (
            _product(transposed, values, G, pattern.transposed[0])
            if ctx.needs_input_grad[2]
            else None
        )
        dV = _dots(G, H, pattern) if ctx.needs_input_grad[0] else None
        if dV is not None and dV.ndim == 2 and len(values) == 1:
            dV = dV.sum(0, keepdim=True)  # all replicas shared them
        return dV, None, dH, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        values: Tensor,
        transposed: Tensor,
        H: Tensor,
        pattern: Pattern,
    ) -> tuple[Tensor, int]:
        """One product for all replicas."""
        replicas = info.batch_size
        H = H.expand(replicas, *H.shape) if in_dims[2] is None else H.movedim(in_dims[2], 0)
        if kernels.usable(H):
            values, transposed = _lead(values, in_dims[0]), _lead(transposed, in_dims[1])
            if H.ndim == 3:
                return _product(values, transposed, H, pattern), 0
            values, transposed = (
                one.expand(*H.shape[:2], -1).flatten(0, 1) for one in (values, transposed)
            )
            return _product(values, transposed, H.flatten(0, 1), pattern).unflatten(
                0, H.shape[:2]
            ), 0
        if in_dims[0] is None:
            columns = H.transpose(0, 1).reshape(H.shape[1], -1)
            return _product(values, transposed, columns, pattern).unflatten(1, (replicas, -1)), 1
        # The two may have their replicas in different dimensions: vmap moves them as it likes.
        assert in_dims[1] is not None
        values, transposed = (
            values.movedim(in_dims[0], 0).flatten(),
            transposed.movedim(in_dims[1], 0).flatten(),
        )
        return _product(values, transposed, H.flatten(0, 1), _blocks(pattern, replicas)).unflatten(
            0, (replicas, -1)
        ), 0


class Dots(torch.autograd.Function):
    """G_i · H_j at each entry (i, j) of a pattern: the product's gradient, and what attention by
    dot products asks for.

    Its own gradients are products again: M H and Mᵀ G, where M has the incoming gradient as its
    values.
    """

    @staticmethod
    def forward(G: Tensor, H: Tensor, pattern: Pattern) -> Tensor:
        """(n, h) and (d, h) → (entries,)."""
        return _dot_each(pattern, G, H)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Pattern], output: Tensor) -> None:
        """Keep both."""
        G, H, ctx.pattern = inputs
        ctx.save_for_backward(G, H)

    @staticmethod
    def backward(ctx: Any, values: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """Two products."""
        G, H = ctx.saved_tensors
        other, order = ctx.pattern.transposed
        transposed = values[..., order]
        dG = _product(values, transposed, H, ctx.pattern) if ctx.needs_input_grad[0] else None
        dH = _product(transposed, values, G, other) if ctx.needs_input_grad[1] else None
        return dG, dH, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], G: Tensor, H: Tensor, pattern: Pattern
    ) -> tuple[Tensor, int]:
        """The replicas stand below each other, and the pattern becomes block-diagonal."""
        replicas = info.batch_size
        G, H = (
            one.expand(replicas, *one.shape) if dim is None else one.movedim(dim, 0)
            for one, dim in zip((G, H), in_dims, strict=False)
        )
        if kernels.usable(H):  # also where heads are within replicas
            return _dots(G.flatten(0, -3), H.flatten(0, -3), pattern).unflatten(0, H.shape[:-2]), 0
        return _dots(G.flatten(0, 1), H.flatten(0, 1), _blocks(pattern, replicas)).unflatten(
            0, (replicas, -1)
        ), 0


# torch asks for this at every call; made once instead of each time, it saves 15 µs.
Product.forward.__signature__ = inspect.signature(Product.forward)  # type: ignore[attr-defined]
Dots.forward.__signature__ = inspect.signature(Dots.forward)  # type: ignore[attr-defined]


def _lead(values: Tensor, dim: int | None) -> Tensor:
    """With the replicas in front, of which there is one where all share the values."""
    return values[None] if dim is None else values.movedim(dim, 0)


def _product(values: Tensor, transposed: Tensor, H: Tensor, pattern: Pattern) -> Tensor:
    return Product.apply(values, transposed, H, pattern)  # type: ignore[no-any-return, no-untyped-call]


def _dots(G: Tensor, H: Tensor, pattern: Pattern) -> Tensor:
    return Dots.apply(G, H, pattern)  # type: ignore[no-any-return, no-untyped-call]


def _blocks(pattern: Pattern, times: int) -> Pattern:
    """`pattern.repeat(times)`, whose transpose is made from the small pattern's instead of by
    sorting anew.
    """
    known = pattern.blocks
    if times not in known:
        blocks = known[times] = pattern.repeat(times)
        small, order = pattern.transposed
        offsets = torch.arange(times, device=order.device)[:, None] * len(order)
        blocks.__dict__["transposed"] = (small.repeat(times), (order + offsets).flatten())
    return known[times]


def multiply_each(pattern: Pattern, values: Tensor, H: Tensor) -> Tensor:
    """M H for r matrices H (r, d, h) and values (1, entries) or (r, entries) of M; torch records
    nothing.
    """
    if kernels.usable(H):
        from gcnii.kernels.gather import cut, gather

        return gather(pattern.schedule(*cut(H)).with_values(values), H.contiguous())
    replicas = len(H)
    if replicas == 1:
        return _multiply(pattern, values[0], H[0])[None]
    values = values.expand(replicas, -1).flatten()
    return _multiply(_blocks(pattern, replicas), values, H.flatten(0, 1)).view(
        replicas, -1, H.shape[2]
    )


def _multiply(pattern: Pattern, values: Tensor, H: Tensor) -> Tensor:
    if H.device.type == "cpu":
        # A weighted bag of rows is the same sum; on two cores it takes half the time of the CSR
        # product.  torch.nn's function of this name would ask questions for 6 µs whose answers are
        # known.
        return torch.embedding_bag(
            H.contiguous(), pattern.columns, pattern.rows, False, 0, False, values, True
        )[0]
    if kernels.usable(H):
        return multiply_each(pattern, values[None], H[None])[0]
    _hush_beta_warning()
    return (
        torch.sparse_csr_tensor(
            pattern.rows, pattern.columns, values, pattern.shape, check_invariants=False
        )
        @ H
    )


def _dot_each(pattern: Pattern, G: Tensor, H: Tensor) -> Tensor:
    if G.device.type == "cpu":
        # What backward of a weighted bag does for its weights: with 64 columns, 20 times as fast as
        # gathering both.
        ends = (pattern.columns, pattern.rows[:-1], pattern.at_rows.columns)
        each = torch.ops.aten._embedding_bag_per_sample_weights_backward
        return each(G.contiguous(), H.contiguous(), *ends, 0)  # type: ignore[no-any-return]
    if kernels.usable(G):
        from gcnii.kernels.gather import dots

        each_of = dots(
            pattern.row_of, pattern.columns, G.view(-1, *G.shape[-2:]), H.view(-1, *H.shape[-2:])
        )
        return each_of.view(*G.shape[:-2], -1)
    return (G[pattern.row_of] * H[pattern.columns]).sum(-1)


@cache
def _hush_beta_warning() -> None:
    """torch says once a process that its CSR tensors are in beta state; nobody here can act on it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)
