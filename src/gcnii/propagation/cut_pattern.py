"""CutPattern: where a sparse matrix has its entries, if several processes share its rows.

    M H = M_near H + M_far halo(H)        Mᵀ G = M_nearᵀ G + back(M_farᵀ G)

Each process has some rows of a square M: `near`, on the columns of its own nodes, and `far`, on
those of its halo, the nodes of other processes that it gathers from.  Values are those of near's
entries, followed by far's.  Either product sends rows, and is the sum of a product by what is near
and of one by what arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from gcnii.propagation.pattern import Pattern

Wait = Callable[[], Tensor]  # waits for rows (r, …, h) that are on their way
Send = Callable[[Tensor], Wait]  # sends rows of its argument (r, …, h)


class Halo(Protocol):
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
    halo: Halo

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
    halo: Halo

    @property
    def arriving(self) -> Pattern:
        """(rows, returned): which of the rows that arrive are added to which sums."""
        return self.halo.collect

    def exchange(self, far: Tensor, multiply: Multiply) -> tuple[Tensor, Send]:
        """The values of `arriving`, and what sends the products by far."""
        ones = far.new_ones(1, len(self.arriving.columns))
        return ones, lambda G: self.halo.back(multiply(self.far, far, G))


Places = Pattern | CutPattern | CutTranspose  # where a matrix has its entries
Multiply = Callable[[Pattern, Tensor, Tensor], Tensor]  # `product.multiply_each`
