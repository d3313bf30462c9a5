"""Batches of nodes and some of their neighbours, drawn anew in each step (GraphSAGE, VR-GCN)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.errors import InputError
from gcnii.propagation import GraphAdjacency, Pattern, Sparse
from gcnii.train.batches.batch import Batch, History
from gcnii.train.batches.history import ActivationHistory, HistoryHop

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Hops:
    """What each layer gathers over, from the first to the last.

    The rows of a hop are the nodes whose state the layer gives, its columns those whose state it
    reads; the rows' nodes are the first columns, in the same order.
    """

    hops: tuple[Sparse, ...]

    def at(self, layer: int) -> Sparse:
        """What layer 0, 1, … gathers over."""
        return self.hops[layer]

    @property
    def whole(self) -> Hops:
        """The hops as they were drawn."""
        return self

    def matrix(self, kept: Tensor | None = None) -> Hops:
        """The same: there are no further links to be left out."""
        if kept is not None:
            raise InputError("drawn neighbours cannot be thinned out by DropEdge")
        return self


class Neighbours:
    """A step sees `size` of the nodes to learn from, and of each node some neighbours, layer by
    layer from the last.

    nodes    (m,) whom to learn from; each epoch takes them in another order
    fanout   how many neighbours of a node are drawn, without repetition, for the last layer, the
             one before it, …; 0 draws all.  Further layers take the last number
    layers   how often the model gathers
    history  "cv": where not all neighbours are drawn, old activations make up for the others
    """

    def __init__(
        self,
        links: GraphAdjacency,
        X: Tensor | Sparse,
        nodes: Tensor,
        *,
        size: int,
        fanout: Sequence[int],
        layers: int,
        history: History = "none",
    ):
        self.X, self.nodes, self.size = X, nodes.cpu().numpy(), size
        self.static = False
        last = [*fanout, *[fanout[-1]] * layers][:layers]
        self.fanout = last[::-1]
        self.urn = NeighbourSampler(links.whole)
        self.memory = ActivationHistory(links.pattern.shape[0]) if history == "cv" else None

    def epoch(self, seed: int, epoch: int) -> Iterator[Batch]:
        """Every node once, in an order drawn from seed and epoch; neighbours from seed, epoch and
        step.
        """
        order = np.random.default_rng((seed, epoch)).permutation(self.nodes)
        for step, start in enumerate(range(0, len(order), self.size), 1):
            yield self._batch(
                order[start : start + self.size], np.random.default_rng((seed, epoch, step))
            )
            if self.memory:
                self.memory.settle()

    def _batch(self, targets: Numbers, random: np.random.Generator) -> Batch:
        hops: list[Sparse] = []
        nodes = targets
        for layer in reversed(range(len(self.fanout))):
            links = self.urn.draw(nodes, self.fanout[layer], random)
            # A hop that draws all is exact and has nothing to recall.
            memory = self.memory if self.fanout[layer] else None
            hop, nodes = self.urn.hop(nodes, *links, memory, layer)
            hops.insert(0, hop)
        device = self.urn.P.values.device
        return Batch(
            Hops(tuple(hops)),
            self.X[torch.tensor(nodes, device=device)],
            torch.tensor(targets).to(device),
        )

    def state(self) -> dict[str, Tensor]:
        """h̄ of each layer."""
        return (
            {str(layer): table for layer, table in self.memory.tables.items()}
            if self.memory
            else {}
        )

    def restore(self, state: dict[str, Tensor]) -> None:
        """Recall h̄."""
        if self.memory:
            self.memory.tables = {int(layer): table for layer, table in state.items()}


class NeighbourSampler:
    """The links of P between different nodes, row by row, to draw from; the diagonal is never drawn
    but always there.

    P        (n, n)
    start    (n,) where a node's links begin
    count    (n,) how many they are
    columns, values   (links,)
    loops    (n,) P's diagonal
    """

    def __init__(self, P: Sparse):
        self.P = P
        row, column, value = (
            array.cpu().numpy() for array in (P.pattern.row_of, P.pattern.columns, P.values)
        )
        n = P.shape[0]
        links = (row != column) & (value != 0)
        self.columns, self.values = column[links].astype(np.int64), value[links]
        self.count = np.bincount(row[links], minlength=n)
        self.start = np.cumsum(self.count) - self.count
        self.loops = np.zeros(n, value.dtype)
        self.loops[row[row == column]] = value[row == column]

    def draw(
        self, nodes: Numbers, fanout: int, random: np.random.Generator
    ) -> tuple[Numbers, Numbers]:
        """Of each node's links up to `fanout` (0: all): the node's place in `nodes`, and the link's
        number.
        """
        count = self.count[nodes]
        before = np.cumsum(count) - count
        row = np.repeat(np.arange(len(nodes)), count)
        turn = np.arange(len(row)) - before[row]
        link = self.start[nodes][row] + turn
        if fanout == 0:
            return row, link
        # Sorted by row and within a row at random, the first ones of each row are a draw without
        # repetition.
        shuffled = np.argsort(row + random.random(len(row)))
        drawn = turn < fanout
        return row[drawn], link[shuffled[drawn]]

    def hop(
        self,
        nodes: Numbers,
        row: Numbers,
        link: Numbers,
        memory: ActivationHistory | None = None,
        layer: int = 0,
    ) -> tuple[Sparse, Numbers]:
        """The rectangular matrix of these links of these nodes, and the nodes that its columns are."""
        sources = self.columns[link]
        place = np.full(len(self.count), -1)
        place[nodes] = np.arange(len(nodes))
        strangers = np.unique(sources[place[sources] < 0])
        place[strangers] = len(nodes) + np.arange(len(strangers))
        reached = np.concatenate([nodes, strangers])

        drawn = np.bincount(row, minlength=len(nodes))
        # so that the mean over all draws is P
        scale = (self.count[nodes] / np.maximum(drawn, 1))[row]
        loops = np.flatnonzero(self.loops[nodes])
        order = np.argsort(np.concatenate([row, loops]), kind="stable")
        ends = np.cumsum(drawn + (self.loops[nodes] != 0))
        device = self.P.values.device
        pattern = Pattern(
            torch.tensor(np.concatenate([[0], ends]), dtype=torch.int32, device=device),
            torch.tensor(
                np.concatenate([place[sources], loops])[order], dtype=torch.int32, device=device
            ),
            (len(nodes), len(reached)),
        )

        def matrix(scale: NDArray[Any]) -> Sparse:
            values = np.concatenate([self.values[link] * scale, self.loops[nodes][loops]])[order]
            return Sparse.on(
                pattern, torch.tensor(values, dtype=self.P.values.dtype, device=device)
            )

        hop = matrix(scale)
        if memory is None:
            return hop, reached
        rows, columns = torch.tensor(nodes, device=device), torch.tensor(reached, device=device)
        parts = (hop.pattern, hop.values, hop.transposed)
        return HistoryHop(
            *parts, matrix(np.sqrt(scale)), self.P[rows], columns, memory, layer
        ), reached
