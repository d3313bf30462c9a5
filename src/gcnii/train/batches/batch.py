"""A batch: what one step of training sees of a graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from torch import Tensor

from gcnii.propagation import Sparse

Batching = Literal["full", "parts", "clusters", "neighbours"]
History = Literal["none", "cv"]


@dataclass(frozen=True, eq=False)
class Batch:
    """GraphAdjacency and features of a part of the graph.

    nodes  the nodes of the graph whose scores the model gives, in the order of the scores' rows;
           None: all
    """

    # GraphAdjacency, RelationalAdjacency or Hops: their `whole` is what a model gathers over
    links: Any
    X: Tensor | Sparse
    nodes: Tensor | None = None


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
        """Take up what `state` gave."""


@dataclass(frozen=True, eq=False)
class Full:
    """The full graph is one batch."""

    batch: Batch
    static = True

    def epoch(self, seed: int, epoch: int) -> Iterator[Batch]:
        """The one batch."""
        yield self.batch

    def state(self) -> dict[str, Tensor]:
        """Nothing."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Nothing."""
