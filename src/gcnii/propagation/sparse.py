"""Sparse: a matrix that multiplies, on any device, with gradients and under vmap.

A Pattern says where it has its entries.  Where processes share its rows it is a CutPattern: each
process has `near`, on the columns of its own nodes, and `far`, on those of its halo, the nodes of
other processes that it gathers from.

    M H = M_near H + M_far halo(H)        Mᵀ G = M_nearᵀ G + back(M_farᵀ G)

Values are those of near's entries, followed by far's.  The one sparse product is last, with its
gradients and its vmap rule.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Literal, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import linear

from gcnii import kernels
from gcnii.errors import InputError
from gcnii.graph import Features, Graph
from gcnii.kernels import offsets


@dataclass(frozen=True, eq=False)
class RowNumbers:
    """The numbers of a process's rows, and of the stored values of its X, in the whole graph.

    Dropout needs them: an element's mask is a hash of its number in the whole matrix, so that many
    processes draw the masks of one.

    nodes    (rows,) int64
    entries  (entries,) int64, where X is sparse
    """

    nodes: Tensor
    entries: Tensor | None = None

    def starts(self, shape: tuple[int, ...]) -> tuple[Tensor, int]:
        """The first element of each row in the whole, and the number of elements a row.

        A vector holds the stored values of X.
        """
        if len(shape) == 2:
            return self.nodes * shape[1], shape[1]
        assert self.entries is not None
        return self.entries, 1


MOST = 2**31 - 1  # that int32 counts; kernels and torch's bags of rows take no larger numbers


@dataclass(frozen=True, eq=False)
class Pattern:
    """CSR's two index arrays, and those of the transpose.

    rows       (n + 1,) int32: row i's entries are rows[i] … rows[i + 1]
    columns    (entries,) int32
    transient  whether it is for one step alone, so that a layout for the kernels would not pay
    row_numbers  of its rows in the whole matrix, where several processes share that; None: it is
                 the whole
    """

    rows: Tensor
    columns: Tensor
    shape: tuple[int, int]
    transient: bool = False
    row_numbers: RowNumbers | None = None

    @classmethod
    def of(cls, matrix: sp.csr_array) -> Pattern:
        """Where a scipy matrix has its entries."""
        refuse_large(len(matrix.indices), matrix.shape)
        rows, columns = torch.tensor(matrix.indptr).int(), torch.tensor(matrix.indices).int()
        return cls(rows, columns, (int(matrix.shape[0]), int(matrix.shape[1])))

    @classmethod
    def from_sorted(cls, row: Tensor, columns: Tensor, shape: tuple[int, int]) -> Pattern:
        """From entries (row, column) that are sorted by row."""
        refuse_large(len(row), shape)
        return cls(row_pointers(row, shape[0]), columns.int(), shape)

    @cached_property
    def row_of(self) -> Tensor:
        """(entries,) the row of each entry."""
        numbers = torch.arange(self.shape[0], device=self.rows.device)
        counts = self.rows.diff().long()
        return torch.repeat_interleave(numbers, counts, output_size=len(self.columns))

    @cached_property
    def transposed(self) -> tuple[Pattern, Tensor]:
        """The transpose's pattern, and the order that brings this pattern's values into it."""
        if self.columns.is_cpu:
            return self._counted
        columns, order = torch.sort(self.columns, stable=True)
        # Searched, not counted: a count of a GPU's numbers waits for the largest of them.
        starts = torch.arange(self.shape[1] + 1, dtype=torch.int32, device=columns.device)
        rows = torch.searchsorted(columns, starts, out_int32=True)
        others, shape = self.row_of.index_select(0, order).int(), (self.shape[1], self.shape[0])
        return Pattern(rows, others, shape, self.transient), order

    @property
    def _counted(self) -> tuple[Pattern, Tensor]:
        """The same by scipy, which counts instead of sorting: half the time on a CPU."""
        numbers = np.arange(len(self.columns))
        arrays = (numbers, self.columns.numpy(), self.rows.numpy())
        other = sp.csr_array(arrays, self.shape).tocsc()
        rows, columns, order = map(torch.from_numpy, (other.indptr, other.indices, other.data))
        return Pattern(rows, columns, (self.shape[1], self.shape[0])), order

    @cached_property
    def at_rows(self) -> Pattern:
        """(entries, n): one entry per row, at the row in which this pattern's entry stands."""
        entries, n = len(self.columns), self.shape[0]
        found = Pattern(self._steps, self.row_of.int(), (entries, n), self.transient)
        # Entries are sorted by row, so that the transpose needs no sorting.
        order = torch.arange(entries, device=self.rows.device)
        other = Pattern(self.rows, self._steps[:-1], (n, entries), self.transient)
        found.__dict__["transposed"] = other, order
        return found

    @cached_property
    def at_columns(self) -> Pattern:
        """(entries, d): one entry per row, at the column in which this pattern's entry stands."""
        shape = len(self.columns), self.shape[1]
        return Pattern(self._steps, self.columns, shape, self.transient)

    @property
    def _steps(self) -> Tensor:
        return torch.arange(len(self.columns) + 1, dtype=torch.int32, device=self.rows.device)

    @cached_property
    def _copies(self) -> dict[int, Pattern]:
        return {}

    def repeat(self, times: int) -> Pattern:
        """The block-diagonal pattern of `times` copies.

        It is kept, because a captured epoch reads it for as long as it is replayed; and its
        transpose is made from this pattern's, which needs no sorting.
        """
        if times not in self._copies:
            copies = self._copies[times] = self._repeated(times)
            small, order = self.transposed
            offsets = torch.arange(times, device=order.device)[:, None] * len(order)
            copies.__dict__["transposed"] = small._repeated(times), (order + offsets).flatten()
        return self._copies[times]

    def _repeated(self, times: int) -> Pattern:
        (n, d), entries = self.shape, len(self.columns)
        refuse_large(times * entries, (times * n, times * d))
        block = torch.arange(times, device=self.rows.device, dtype=torch.int32)[:, None]
        rows = (self.rows[1:] + block * entries).flatten()
        columns = (self.columns + block * d).flatten()
        return Pattern(torch.cat([self.rows[:1], rows]), columns, (times * n, times * d))

    def to(self, device: torch.device | str) -> Pattern:
        """The same pattern on another device."""
        if torch.device(device) == self.rows.device:
            return self
        return Pattern(self.rows.to(device), self.columns.to(device), self.shape)


def refuse_large(entries: int, shape: tuple[int, int]) -> None:
    """Raise InputError for a matrix whose entries, rows or columns int32 cannot count."""
    largest = max(entries, *shape)
    if largest > MOST:
        raise InputError(
            f"one process can hold a sparse matrix of {MOST:,} entries, rows or columns, got "
            f"{largest:,}; train fewer runs at once, or cut the graph (gcnii data pack --parts) "
            "and start more processes"
        )


def row_pointers(row: Tensor, n: int) -> Tensor:
    """(n + 1,) int32: CSR's first array, from the row of each entry."""
    return offsets(torch.bincount(row, minlength=n)).int()


Wait = Callable[[], Tensor]  # waits for rows (r, …, h) that are on their way
Send = Callable[[Tensor], Wait]  # sends rows of its argument (r, …, h)


class RowExchange(Protocol):
    """What a process exchanges with the others."""

    @property
    def collect(self) -> Pattern:
        """(rows, returned): which rows here the rows are of that others return."""

    def fetch(self, H: Tensor) -> Wait:
        """H (r, rows, h): send what others gather from; wait for the halo's rows (r, halo, h)."""

    def back(self, G: Tensor) -> Wait:
        """G (r, halo, h): return it to its nodes; wait for what others return (r, returned, h)."""


@dataclass(frozen=True, eq=False)
class CutPattern:
    """The entries of M's rows: near (rows, rows) and far (rows, halo)."""

    near: Pattern
    far: Pattern
    halo: RowExchange

    @cached_property
    def transposed(self) -> tuple[CutTranspose, Tensor]:
        """The transpose's pattern, and the order that brings this pattern's values into it."""
        (near, first), (far, second) = self.near.transposed, self.far.transposed
        return CutTranspose(near, far, self.halo), torch.cat([first, len(first) + second])

    @property
    def arriving(self) -> Pattern:
        """(rows, halo): which of the rows that arrive are added to which sums."""
        return self.far

    def exchange(self, far: Tensor, multiply: Multiply) -> tuple[Tensor, Send]:
        """The values of `arriving`, and what sends rows."""
        return far, self.halo.fetch


@dataclass(frozen=True, eq=False)
class CutTranspose:
    """The entries of Mᵀ's columns: near (rows, rows) and far (halo, rows)."""

    near: Pattern
    far: Pattern
    halo: RowExchange

    @property
    def arriving(self) -> Pattern:
        """(rows, returned): which of the rows that arrive are added to which sums."""
        return self.halo.collect

    def exchange(self, far: Tensor, multiply: Multiply) -> tuple[Tensor, Send]:
        """The values of `arriving`, and what sends the products by far."""
        ones = far.new_ones(1, len(self.arriving.columns))
        return ones, lambda G: self.halo.back(multiply(self.far, far, G))


AnyPattern = Pattern | CutPattern | CutTranspose
Multiply = Callable[[Pattern, Tensor, Tensor], Tensor]  # `product.multiply_each`


def feature_matrix(graph: Graph, *, dtype: torch.dtype | None = None) -> Tensor | Sparse:
    """X as a model takes it: a dense tensor, or a Sparse where the graph holds it as CSR.

    Parameters
    ----------
    graph : Graph
    dtype : torch.dtype, optional
        Default: torch's default dtype, as models have it.

    Returns
    -------
    torch.Tensor or Sparse

    Examples
    --------
    >>> import gcnii
    >>> gcnii.feature_matrix(gcnii.load("csbm", n=60)).shape
    torch.Size([60, 16])
    """
    return to_matrix(graph.X, dtype or torch.get_default_dtype())


def to_matrix(X: Features, dtype: torch.dtype) -> Tensor | Sparse:
    """Features as a model takes them, on the CPU."""
    if isinstance(X, sp.csr_array):
        return Sparse.from_scipy(X).to(dtype)
    # A new array, such as scaled features, is taken as it is; a graph's own is frozen, and copied.
    return (torch.from_numpy(X) if X.flags.writeable else torch.tensor(X)).to(dtype)


def to_dense(X: Tensor | Sparse) -> Tensor:
    """X with its zeros written out; a tensor is taken as it is, because vmap has no rule for it."""
    return X.to_dense() if isinstance(X, Sparse) else X


class TakenByLinear:
    """What `nn.Linear` takes in the place of a tensor, so that models need not care."""

    def mapped(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """What `linear` gives of it."""
        raise NotImplementedError

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., object],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        """Answer `linear`, and nothing else of torch."""
        if function is linear:
            return args[0].mapped(*args[1:], **(kwargs or {}))
        return NotImplemented


@dataclass(frozen=True, eq=False, repr=False)
class Sparse(TakenByLinear):
    """A sparse matrix M; `M @ H` and `linear(M, W, b)` pass gradients to H, W and M's values.

    Gradients reach M's values through `values` (entries,) alone.
    """

    pattern: Pattern
    values: Tensor

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array) -> Sparse:
        """The same matrix, in the same precision."""
        return cls(Pattern.of(matrix), torch.tensor(matrix.data))

    @cached_property
    def transposed(self) -> Tensor:
        """The values in the order of the transpose's pattern: backward multiplies by Mᵀ."""
        return self.values.detach().index_select(0, self.places.transposed[1])

    @property
    def places(self) -> Pattern | CutPattern:
        """Where the values are, for products."""
        return self.pattern

    @property
    def row_numbers(self) -> RowNumbers | None:
        """The numbers of its rows in the whole matrix; None: it is the whole."""
        return self.pattern.row_numbers

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        return self.values.device

    def __repr__(self) -> str:
        """One line: `Sparse(2708 × 2708, 13264 entries, float32, cpu)`."""
        kind = str(self.dtype).removeprefix("torch.")
        rows, columns = self.shape
        entries = len(self.pattern.columns)
        return (
            f"{type(self).__name__}({rows} × {columns}, {entries} entries, {kind}, {self.device})"
        )

    def with_values(self, values: Tensor) -> Sparse:
        """A matrix with other values at the same entries."""
        return Sparse(self.pattern, values)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Its numbers; with others of their shapes, `holding` makes a matrix again."""
        return self.values, self.transposed

    def holding(self, tensors: Sequence[Tensor]) -> Sparse:
        """The matrix with these in the place of `tensors`."""
        held = replace(self, values=tensors[0])
        held.__dict__["transposed"] = tensors[1]
        return held

    def at(self, layer: int) -> Sparse:
        """The matrix that this layer gathers over: itself, as no neighbour is left out."""
        return self

    def gather(self, H: Tensor, mean: Tensor | None = None) -> Tensor:
        """M H; `mean`, H without dropout, is for the classes that only estimate the product."""
        return self @ H

    def __getitem__(self, nodes: Tensor | slice) -> Sparse:
        """Some of the rows."""
        if isinstance(nodes, slice):
            if nodes.indices(self.shape[0]) == (0, self.shape[0], 1):
                return self
            nodes = torch.arange(self.shape[0], device=self.device)[nodes]
        return Sparse(*self.rows(nodes, transient=self.pattern.transient))

    def rows(self, nodes: Tensor, *, transient: bool = False) -> tuple[Pattern, Tensor]:
        """Where the entries of these rows are, and their values; `transient`: for one step."""
        count = self.pattern.rows.diff().index_select(0, nodes).long()
        first, rows = self.pattern.rows.index_select(0, nodes), offsets(count)
        before = torch.repeat_interleave(first - rows[:-1], count)
        inside = before + torch.arange(len(before), device=before.device)
        columns = self.pattern.columns.index_select(0, inside)
        pattern = Pattern(rows.int(), columns, (len(nodes), self.shape[1]), transient)
        return pattern, self.values.index_select(0, inside)

    def to(self, *args: Any, **kwargs: Any) -> Sparse:
        """The same matrix on another device or in another dtype; takes what `Tensor.to` takes."""
        return self.moved(self.values.to(*args, **kwargs))

    def moved(self, values: Tensor) -> Sparse:
        """The same matrix where its values are on another device, or in another dtype."""
        return Sparse(self.pattern.to(values.device), values)

    def to_dense(self) -> Tensor:
        """The matrix with its zeros written out, for tests and small graphs."""
        return self @ torch.eye(self.shape[1], dtype=self.dtype, device=self.device)

    def __matmul__(self, H: Tensor) -> Tensor:
        # A matrix of one step is transposed in backward, if that comes to it: the first hop of many
        # models reads nothing but X.  Others are transposed once, before a CUDA graph is captured.
        early = torch.is_grad_enabled() and not self.pattern.transient
        return product(self.values, self.transposed if early else None, H, self.places)

    def mapped(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """What `linear` gives of it."""
        Z = self @ weight.T
        return Z if bias is None else Z + bias


def product(values: Tensor, transposed: Tensor | None, H: Tensor, pattern: AnyPattern) -> Tensor:
    """M H (n, h) for H (d, h), where M has these values, and Mᵀ those of `transposed`.

    Without `transposed`, they are made of the values if a gradient needs them.
    """
    return Product.apply(values, transposed, H, pattern)  # type: ignore[no-any-return, no-untyped-call]


def dots(pattern: Pattern, G: Tensor, H: Tensor) -> Tensor:
    """G (n, h), H (d, h) → (entries,): G_i · H_j at each entry (i, j)."""
    return Dots.apply(G, H, pattern)  # type: ignore[no-any-return, no-untyped-call]


def row_sums(pattern: Pattern, E: Tensor) -> Tensor:
    """E (entries,) or (entries, h) → (n,) or (n, h): the sum of each row's entries."""
    collect, _ = pattern.at_rows.transposed
    sums = _sum_over(collect, E if E.ndim == 2 else E[:, None])
    return sums if E.ndim == 2 else sums[:, 0]


def to_entries(pattern: Pattern, H: Tensor, *, end: Literal["row", "column"]) -> Tensor:
    """H (n, h) → (entries, h): for each entry, the row of H of its row or of its column.

    The same as H[row_of] or H[columns], whose gradient is a sum in no fixed order on a GPU.
    """
    return _sum_over(pattern.at_rows if end == "row" else pattern.at_columns, H)


def _sum_over(pattern: Pattern, H: Tensor) -> Tensor:
    ones = H.new_ones(len(pattern.columns))
    return product(ones, ones, H, pattern)


def replicas_first(tensor: Tensor, dim: int | None, replicas: int) -> Tensor:
    """A tensor under vmap with its replicas as the first axis; expanded where all share it."""
    return tensor.expand(replicas, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


class VmapInfo(Protocol):
    """What torch tells a vmap rule: the number of replicas."""

    @property
    def batch_size(self) -> int: ...


class Product(torch.autograd.Function):
    """M H for a sparse M (n, d) and H (d, h); dH = Mᵀ G, and M's value at (i, j) gets G_i · H_j.

    Under vmap the replicas of H become columns of one wide product; where the values of M differ
    between replicas (dropout on features), M becomes one block-diagonal matrix.  On a GPU a kernel
    takes them as they are: H (r, d, h) and values (1, entries) or (r, entries).
    """

    @staticmethod
    def forward(
        values: Tensor, transposed: Tensor | None, H: Tensor, pattern: AnyPattern
    ) -> Tensor:
        """M H; for H (r, d, h), (r, n, h)."""
        if H.ndim == 3:
            return multiply_each(pattern, values, H)
        return _multiply(pattern, values, H)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor | None, Tensor, AnyPattern], output: Tensor
    ) -> None:
        """Save what the gradients need; H only for that of the values, because it is large."""
        values, transposed, H, ctx.pattern = inputs
        ctx.save_for_backward(values, transposed, H if values.requires_grad else None)

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, None, Tensor | None, None]:
        """dH is a product by the transpose, the values' gradient dot products at the entries."""
        values, transposed, H = ctx.saved_tensors
        dH = None
        if ctx.needs_input_grad[2]:
            other, order = ctx.pattern.transposed
            there = values.detach()[..., order] if transposed is None else transposed
            dH = product(there, values, G, other)
        dV = dots(ctx.pattern, G, H) if ctx.needs_input_grad[0] else None
        if dV is not None and dV.ndim == 2 and len(values) == 1:
            dV = dV.sum(0, keepdim=True)  # all replicas share the values
        return dV, None, dH, None

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...],
        values: Tensor, transposed: Tensor | None, H: Tensor, pattern: AnyPattern,
    ) -> tuple[Tensor, int]:  # fmt: skip
        """One product for all replicas."""
        H = replicas_first(H, in_dims[2], info.batch_size)
        if in_dims[0] is None and not kernels.usable(H):
            return _product_in_columns(values, transposed, H, pattern), 1
        # The two may have their replicas in different dimensions: vmap moves them as it likes.
        values = values[None] if in_dims[0] is None else values.movedim(in_dims[0], 0)
        if transposed is not None:
            dim = in_dims[1]
            transposed = transposed[None] if dim is None else transposed.movedim(dim, 0)
        if kernels.usable(H) or not isinstance(pattern, Pattern):
            return _product_of_each(values, transposed, H, pattern), 0
        blocks = pattern.repeat(info.batch_size)
        flat = None if transposed is None else transposed.flatten()
        below = product(values.flatten(), flat, H.flatten(0, 1), blocks)
        return below.unflatten(0, (info.batch_size, -1)), 0


def _product_in_columns(
    values: Tensor, transposed: Tensor | None, H: Tensor, pattern: AnyPattern
) -> Tensor:
    """H (r, d, h) → (n, r, h), as one product by r · h columns."""
    columns = H.transpose(0, 1).reshape(H.shape[1], -1)
    wide: Tensor = product(values, transposed, columns, pattern).unflatten(1, (len(H), -1))
    return wide


def _product_of_each(
    values: Tensor, transposed: Tensor | None, H: Tensor, pattern: AnyPattern
) -> Tensor:
    """On a GPU: H (r, d, h), or (r, heads, d, h) where heads are within replicas."""
    if H.ndim == 3:
        return product(values, transposed, H, pattern)
    values = values.expand(*H.shape[:2], -1).flatten(0, 1)
    if transposed is not None:
        transposed = transposed.expand(*H.shape[:2], -1).flatten(0, 1)
    below = product(values, transposed, H.flatten(0, 1), pattern)
    return below.reshape(*H.shape[:2], *below.shape[1:])


class Dots(torch.autograd.Function):
    """G_i · H_j at each entry (i, j) of a pattern: the product's gradient, and attention's scores.

    Its own gradients are products again: M H and Mᵀ G, where M has the incoming gradient as values.
    """

    @staticmethod
    def forward(G: Tensor, H: Tensor, pattern: Pattern) -> Tensor:
        """(n, h) and (d, h) → (entries,)."""
        return _dot_each(pattern, G, H)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Pattern], output: Tensor) -> None:
        G, H, ctx.pattern = inputs
        ctx.save_for_backward(G, H)

    @staticmethod
    def backward(ctx: Any, values: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """dG and dH, a product each."""
        G, H = ctx.saved_tensors
        other, order = ctx.pattern.transposed
        transposed = values[..., order]
        dG = product(values, transposed, H, ctx.pattern) if ctx.needs_input_grad[0] else None
        dH = product(transposed, values, G, other) if ctx.needs_input_grad[1] else None
        return dG, dH, None

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...], G: Tensor, H: Tensor, pattern: Pattern
    ) -> tuple[Tensor, int]:
        """Stack the replicas below each other; the pattern becomes block-diagonal."""
        replicas = info.batch_size
        G, H = (
            replicas_first(one, dim, replicas) for one, dim in zip((G, H), in_dims, strict=False)
        )
        if kernels.usable(H):  # also where heads are within replicas
            each = dots(pattern, G.flatten(0, -3), H.flatten(0, -3))
            return each.unflatten(0, H.shape[:-2]), 0
        below = dots(pattern.repeat(replicas), G.flatten(0, 1), H.flatten(0, 1))
        return below.unflatten(0, (replicas, -1)), 0


# torch asks for this at every call; made once instead of each time, it saves 15 µs.
Product.forward.__signature__ = inspect.signature(Product.forward)  # type: ignore[attr-defined]
Dots.forward.__signature__ = inspect.signature(Dots.forward)  # type: ignore[attr-defined]


def multiply_each(pattern: AnyPattern, values: Tensor, H: Tensor) -> Tensor:
    """M H for H (r, d, h) and M's values (1, entries) or (r, entries); torch records nothing."""
    if not isinstance(pattern, Pattern):
        near, far, send = shared(pattern, values)
        wait = send(H)  # while rows are on their way, the near ones are multiplied
        S = multiply_each(pattern.near, near, H)
        return S.add_(multiply_each(pattern.arriving, far, wait()))
    if not len(pattern.columns):
        return H.new_zeros(len(H), pattern.shape[0], H.shape[2])
    if kernels.usable(H):
        from gcnii.kernels.gather import cut, gather, gather_by_row
        from gcnii.kernels.layouts import schedule_of

        if pattern.transient:
            return gather_by_row(pattern.rows, pattern.columns, values, H.contiguous())
        return gather(schedule_of(pattern, cut(H)).with_values(values), H.contiguous())
    replicas = len(H)
    if replicas == 1:
        return _multiply(pattern, values[0], H[0])[None]
    values = values.expand(replicas, -1).flatten()
    below = _multiply(pattern.repeat(replicas), values, H.flatten(0, 1))
    return below.view(replicas, -1, H.shape[2])


def shared(pattern: CutPattern | CutTranspose, values: Tensor) -> tuple[Tensor, Tensor, Send]:
    """The values of near's entries and of those of what arrives, and what sends rows."""
    near, far = values.split([len(pattern.near.columns), len(pattern.far.columns)], -1)
    return near, *pattern.exchange(far, multiply_each)


def _multiply(pattern: AnyPattern, values: Tensor, H: Tensor) -> Tensor:
    if not isinstance(pattern, Pattern):
        return multiply_each(pattern, values[None], H[None])[0]
    rows, columns = pattern.rows, pattern.columns
    if H.device.type == "cpu":
        # A weighted bag of rows is the same sum; on two cores it takes half the time of the CSR
        # product.  torch.nn's function of this name would spend 6 µs on checks.
        bag = torch.embedding_bag(H.contiguous(), columns, rows, False, 0, False, values, True)
        return bag[0]
    if kernels.usable(H):
        return multiply_each(pattern, values[None], H[None])[0]
    _hush_beta_warning()
    shape = pattern.shape
    return torch.sparse_csr_tensor(rows, columns, values, shape, check_invariants=False) @ H


def _dot_each(pattern: Pattern, G: Tensor, H: Tensor) -> Tensor:
    if G.device.type == "cpu":
        # The gradient of a weighted bag's weights: with 64 columns, 20 times as fast as gathering
        # both.
        ends = (pattern.columns, pattern.rows[:-1], pattern.at_rows.columns)
        each = torch.ops.aten._embedding_bag_per_sample_weights_backward
        return each(G.contiguous(), H.contiguous(), *ends, 0)  # type: ignore[no-any-return]
    if kernels.usable(G):
        from gcnii.kernels import gather

        G3, H3 = (one.view(-1, *one.shape[-2:]) for one in (G, H))
        found = gather.dots(pattern.row_of, pattern.columns, G3, H3)
        return found.view(*G.shape[:-2], -1)
    return (G[pattern.row_of] * H[pattern.columns]).sum(-1)


@cache
def _hush_beta_warning() -> None:
    """Silence torch's notice, once per process, that its CSR tensors are in beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)
