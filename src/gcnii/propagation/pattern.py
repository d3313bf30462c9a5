"""Where a sparse matrix has its entries: Pattern, or CutPattern where processes share its rows.

    M H = M_near H + M_far halo(H)        Mᵀ G = M_nearᵀ G + back(M_farᵀ G)

Each process then has some rows of a square M: `near`, on the columns of its own nodes, and `far`,
on those of its halo, the nodes of other processes that it gathers from.  Values are those of near's
entries, followed by far's.  Either product sends rows, and is the sum of a product by what is near
and of one by what arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcnii.errors import InputError
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
        order = torch.argsort(self.columns, stable=True)
        rows, shape = row_pointers(self.columns, self.shape[1]), (self.shape[1], self.shape[0])
        return Pattern(rows, self.row_of[order].int(), shape, self.transient), order

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
