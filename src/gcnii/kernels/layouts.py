"""The kernels' layouts of a sparse matrix, made once per pattern and kept as long as it lives.

A captured CUDA graph reads a layout whenever it is replayed, and making one waits for the GPU.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

import torch
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


class CutCSR(Protocol):
    """The index arrays of a sparse matrix whose rows several processes share."""

    @property
    def near(self) -> CSR:
        """(n, n): the columns of this process."""

    @property
    def arriving(self) -> CSR:
        """(n, arriving): the rows that come from others."""


_SCHEDULES: WeakKeyDictionary[CSR, dict[tuple[int, int], Schedule]] = WeakKeyDictionary()
_SLOTS: WeakKeyDictionary[CSR, dict[tuple[int, int], Slots | None]] = WeakKeyDictionary()
_CUTS: WeakKeyDictionary[CutCSR, dict[tuple[int, ...], CutSlots | None]] = WeakKeyDictionary()


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


class CutSlots(NamedTuple):
    """Three layouts for the fused layers of a matrix whose rows several processes share.

    inner     rows to which nothing arrives, on near columns
    border    the others, on near columns
    arriving  the others, on what arrives
    """

    inner: Slots
    border: Schedule
    arriving: Slots

    @classmethod
    def of(
        cls, pattern: CutCSR, slots: tuple[int, int], product: tuple[int, int]
    ) -> CutSlots | None:
        """None where a row is too long for the fused layers.

        slots, product  block and longest row of the fused layers, and of products
        """
        near, arriving = pattern.near, pattern.arriving
        waits = arriving.rows.diff() > 0
        rows, border = (torch.nonzero(side)[:, 0] for side in (~waits, waits))
        inner = Slots.of(near.rows, near.columns, *slots, rows)
        outer = Slots.of(arriving.rows, arriving.columns, *slots, border)
        if inner is None or outer is None:
            return None
        return cls(inner, Schedule.of(near.rows, near.columns, *product, border), outer)


def cut_slots_of(
    pattern: CutCSR, slots: tuple[int, int], product: tuple[int, int]
) -> CutSlots | None:
    """The layouts for the fused layers; None where a row is too long for them."""
    known = _CUTS.setdefault(pattern, {})
    if (*slots, *product) not in known:
        known[*slots, *product] = CutSlots.of(pattern, slots, product)
    return known[*slots, *product]
