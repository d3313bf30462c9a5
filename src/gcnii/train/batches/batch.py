"""A batch: what one step of training sees of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

from gcnii.propagation import Adjacency, Propagation, Rows, Sparse

Batching = Literal["full", "parts", "clusters", "neighbours"]
History = Literal["none", "cv"]


@dataclass(frozen=True, eq=False)
class Batch:
    """P and features of a part of the graph.

    nodes      the nodes whose scores the model gives, in the order of the scores' rows; None: all
    adjacency  of which P was made, so that DropEdge can leave out links; None for sampled
               neighbours, which are not thinned out further
    rows       where several processes share the nodes: which ones are here
    """

    P: Propagation
    X: Tensor | Sparse
    nodes: Tensor | None = None
    adjacency: Adjacency | None = None
    rows: Rows | None = None

    @classmethod
    def of(cls, adjacency: Adjacency, X: Tensor | Sparse, nodes: Tensor | None = None) -> Batch:
        """All links of an adjacency."""
        return cls(adjacency.whole, X, nodes, adjacency)


class Batches(Protocol):
    """The batches of one run, epoch by epoch.

    static  whether every epoch has the same ones, in whatever order
    """

    static: bool

    def epoch(self, seed: int, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch: the same again for the same seed and epoch."""

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must keep beside the weights, if anything."""

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state` gave."""


class Stateless:
    """Batches that depend on seed and epoch alone: a checkpoint keeps nothing of them."""

    def state(self) -> dict[str, Tensor]:
        """An empty dictionary."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Do nothing."""


@dataclass(frozen=True, eq=False)
class Full(Stateless):
    """The full graph is one batch."""

    batch: Batch
    static = True

    def epoch(self, seed: int, epoch: int) -> Iterator[Batch]:
        """Yield the one batch."""
        yield self.batch
