"""Batches of nodes with a sample of their neighbours, drawn in each step (GraphSAGE, VR-GCN)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii import kernels
from gcnii.propagation import Adjacency, Sparse
from gcnii.train.batches.ahead import ahead
from gcnii.train.batches.batch import Batch, History
from gcnii.train.batches.history import ActivationHistory
from gcnii.train.batches.sampler import NeighbourSampler

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Hops:
    """P for sampled neighbours: one matrix per layer, from the first to the last.

    The rows of a hop are the nodes whose state the layer gives, its columns those whose state it
    reads; the rows' nodes are the first columns, in the same order.
    """

    hops: tuple[Sparse, ...]

    def at(self, layer: int) -> Sparse:
        """What layer 0, 1, … gathers over."""
        return self.hops[layer]


class Sampler(Protocol):
    """Draws neighbours; the same ones, wherever it draws them."""

    @property
    def device(self) -> torch.device:
        """Where nodes are taken and given."""

    def sample(
        self, nodes: Tensor, fanout: int, random: np.random.Generator,
        history: ActivationHistory | None, layer: int,
    ) -> tuple[Sparse, Tensor]:  # fmt: skip
        """The matrix of up to `fanout` links of these nodes (0: all), and its columns' nodes."""


class Neighbours:
    """A step sees `size` of the training nodes, and a sample of neighbours, hop by hop.

    nodes    (m,) the training nodes; each epoch takes them in another order
    fanout   the number of neighbours sampled per node, without replacement, for the last layer, the
             one before it, …; 0 takes all.  Further layers take the last number
    layers   how often the model gathers
    history  "cv": where not all neighbours are sampled, old activations make up for the others
    """

    static = False

    def __init__(
        self,
        adjacency: Adjacency,
        X: Tensor | Sparse,
        nodes: Tensor,
        *,
        size: int,
        fanout: Sequence[int],
        layers: int,
        history: History = "none",
    ):
        self.X, self.nodes, self.size = X, nodes.cpu().numpy(), size
        last = [*fanout, *[fanout[-1]] * layers][:layers]
        self.fanout = last[::-1]
        self.sampler = _sampler(adjacency.whole, max(fanout))
        self.history = ActivationHistory(adjacency.pattern.shape[0]) if history == "cv" else None

    def epoch(self, seed: int, epoch: int) -> Iterator[Batch]:
        """Every node once, in an order drawn from seed and epoch; neighbours from the step too."""
        order = np.random.default_rng((seed, epoch)).permutation(self.nodes)
        starts = range(0, len(order), self.size)
        makers = (
            partial(self._batch, order[start : start + self.size], (seed, epoch, step))
            for step, start in enumerate(starts, 1)
        )
        with closing(ahead(makers)) as batches:
            for batch in batches:
                yield batch
                if self.history:
                    self.history.settle()

    def _batch(self, targets: Numbers, at: tuple[int, int, int]) -> Batch:
        """It reads no history, which belongs to the step that runs meanwhile."""
        random = np.random.default_rng(at)
        hops: list[Sparse] = []
        chosen = torch.from_numpy(targets)
        nodes = chosen.to(self.sampler.device)
        for layer in reversed(range(len(self.fanout))):
            fanout = self.fanout[layer]
            # A hop that takes all neighbours is exact and needs no history.
            history = self.history if fanout else None
            hop, nodes = self.sampler.sample(nodes, fanout, random, history, layer)
            if layer:  # its gradient is certain; the first hop may read nothing but X
                _ = hop.pattern.transposed
            hops.insert(0, hop)
        nodes, chosen = (each.to(self.X.device) for each in (nodes, chosen))
        if isinstance(self.X, Tensor):
            return Batch(Hops(tuple(hops)), self.X.index_select(0, nodes), chosen)
        X = Sparse.on(*self.X.rows(nodes, transient=True))
        return Batch(Hops(tuple(hops)), X, chosen)

    def state(self) -> dict[str, Tensor]:
        """h̄ of each layer, by its number."""
        tables = self.history.tables if self.history else {}
        return {str(layer): table for layer, table in tables.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on with this h̄."""
        if self.history:
            self.history.tables = {int(layer): table for layer, table in state.items()}


def _sampler(P: Sparse, fanout: int) -> Sampler:
    """On a GPU the kernels draw; else, and where a node has too many links for them, numpy does."""
    if kernels.usable(P.values[:, None]):
        from gcnii.train.batches.device_sampler import DeviceSampler

        found = DeviceSampler.of(P)
        if found.can_draw(fanout):
            return found
    return NeighbourSampler(P)
