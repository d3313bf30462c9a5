"""Batches: what a step of training sees, the whole graph or subgraphs of clusters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from gcnii.propagation import Adjacency, Propagation, Sparse

Batching = Literal["full", "parts", "clusters", "neighbours"]
History = Literal["none", "cv"]


@dataclass(frozen=True, eq=False)
class Batch:
    """P and features of a part of the graph.

    nodes      the nodes whose scores the model gives, in the order of the scores' rows; None: all
    adjacency  of which P was made, so that DropEdge can leave out links; None for sampled
               neighbours, which are not thinned out further
    """

    P: Propagation
    X: Tensor | Sparse
    nodes: Tensor | None = None
    adjacency: Adjacency | None = None

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
        """The batches of an epoch, the same for the same seed and epoch."""

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must keep besides the weights; empty for most batches."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` returned."""
        return


@dataclass(frozen=True, eq=False)
class Full(Batches):
    """The full graph is one batch."""

    batch: Batch
    static = True

    def epoch(self, seed: int, epoch: int) -> Iterator[Batch]:
        yield self.batch


class Subgraphs(Batches):
    """A step sees `size` groups of nodes and the links within them, in another order each epoch.

    group  (n,) the number of each node's group; nodes below zero are in none
    """

    def __init__(self, adjacency: Adjacency, X: Tensor | Sparse, group: Tensor, size: int):
        self.adjacency, self.X, self.size = adjacency, X, size
        self.static = size == 1
        self.members = [torch.nonzero(group == one)[:, 0] for one in group.unique() if one >= 0]
        # Groups that come one by one are the same batches in every epoch.
        self._alone = lru_cache(maxsize=None)(self._batch)

    def epoch(self, seed: int, epoch: int) -> Iterator[Batch]:
        """Every group once, in an order drawn from seed and epoch."""
        order = np.random.default_rng((seed, epoch)).permutation(len(self.members)).tolist()
        if self.size == 1:
            yield from (self._alone(one) for one in order)
            return
        for start in range(0, len(order), self.size):
            yield self._batch(*order[start : start + self.size])

    def _batch(self, *groups: int) -> Batch:
        nodes = torch.cat([self.members[one] for one in groups])
        return Batch.of(self.adjacency.induced(nodes), self.X[nodes], nodes)
