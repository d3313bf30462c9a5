"""The two interfaces between rooms: who gathers from whom, and the P made from it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor

from gcnii.propagation.pattern import Pattern
from gcnii.propagation.rows import Rows
from gcnii.propagation.sparse import Sparse


@runtime_checkable
class Propagation(Protocol):
    """What models call P: layer l, counted from 0, gathers over `P.at(l)`.

    A Sparse is the same for all layers; `Hops` has a matrix of sampled neighbours for each.
    """

    def at(self, layer: int) -> Sparse:
        """The matrix of this layer: (nodes that gather, nodes that they gather from)."""


class Adjacency(Protocol):
    """Who gathers from whom, with weights, and how P is made from it."""

    @property
    def pattern(self) -> Pattern:
        """The entries of Ã = A + I."""

    @property
    def weights(self) -> Tensor:
        """(entries,) A's values there."""

    @property
    def pairs(self) -> Tensor:
        """(entries,) a number that (u, v) and (v, u) share."""

    @property
    def entries(self) -> Rows | None:
        """The numbers of the entries, where several processes share them; None: 0, 1, 2, …"""

    @property
    def paired(self) -> Rows | None:
        """The same of `pairs`."""

    @property
    def whole(self) -> Sparse:
        """The propagation matrix of all links."""

    def matrix(self, kept: Tensor | None = None) -> Sparse:
        """The propagation matrix, of the links that `kept` (entries,) marks with a one."""

    def induced(self, nodes: Tensor) -> Adjacency:
        """The links among these nodes, renumbered in the order given."""
