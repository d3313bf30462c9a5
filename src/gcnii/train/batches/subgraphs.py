"""Batches that are subgraphs: whole graphs of several (PPI), or clusters of one (Cluster-GCN)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from gcnii.propagation import Adjacency, Sparse
from gcnii.train.batches.batch import Batch, Stateless


class Subgraphs(Stateless):
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
