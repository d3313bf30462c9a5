"""Pattern: where the entries of a sparse matrix are stored, in CSR form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcnii.errors import InputError
from gcnii.kernels import offsets

MOST = 2**31 - 1  # that int32 counts; kernels and torch's bags of rows take no larger numbers


@dataclass(frozen=True, eq=False)
class Pattern:
    """CSR's two index arrays, and those of the transpose.

    rows       (n + 1,) int32: row i's entries are rows[i] … rows[i + 1]
    columns    (entries,) int32
    transient  whether it is for one step alone, so that a layout for the kernels would not pay
    """

    rows: Tensor
    columns: Tensor
    shape: tuple[int, int]
    transient: bool = False

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
