"""The kernels' layouts of a sparse matrix, made once per pattern and kept as long as it lives.

A captured CUDA graph reads a layout whenever it is replayed, and making one waits for the GPU.
"""

from __future__ import annotations

from typing import Protocol
from weakref import WeakKeyDictionary

from torch import Tensor

from gcnii.kernels.schedule import Schedule
from gcnii.kernels.slots import Slots


class CSR(Protocol):
    """The index arrays of a sparse matrix: row i's entries are rows[i] … rows[i + 1]."""

    @property
    def rows(self) -> Tensor:
        """(n + 1,) int32."""

    @property
    def columns(self) -> Tensor:
        """(entries,) int32."""


_SCHEDULES: WeakKeyDictionary[CSR, dict[tuple[int, int], Schedule]] = WeakKeyDictionary()
_SLOTS: WeakKeyDictionary[CSR, dict[tuple[int, int], Slots | None]] = WeakKeyDictionary()


def schedule_of(pattern: CSR, block: int, longest: int) -> Schedule:
    """The layout for a sparse product."""
    known = _SCHEDULES.setdefault(pattern, {})
    if (block, longest) not in known:
        known[block, longest] = Schedule.of(pattern.rows, pattern.columns, block, longest)
    return known[block, longest]


def slots_of(pattern: CSR, block: int, longest: int) -> Slots | None:
    """The layout for the fused layers; None where a row is too long for them."""
    known = _SLOTS.setdefault(pattern, {})
    if (block, longest) not in known:
        known[block, longest] = Slots.of(pattern.rows, pattern.columns, block, longest)
    return known[block, longest]
