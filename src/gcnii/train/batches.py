"""Batches: what a step of training sees, the whole graph, subgraphs, or sampled neighbours.

Neighbours are drawn a batch ahead, with or without history.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii import kernels
from gcnii.graph.arrays import runs_of
from gcnii.propagation import Adjacency, Propagation, Sparse
from gcnii.propagation.sparse import Pattern

if TYPE_CHECKING:
    from gcnii.train.device_sampler import DeviceSampler

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


class ActivationHistory:
    """h̄: for each layer, what was last gathered of every node (n, width); zero at first.

    What a step brings is noted, and stored when the step is over, so that h̄ does not change within
    a step.
    """

    def __init__(self, n: int):
        self.n = n
        self.tables: dict[int, Tensor] = {}
        self._noted: dict[int, tuple[Tensor, Tensor]] = {}

    def recall(self, layer: int, like: Tensor) -> Tensor:
        """h̄ of this layer, as wide as what is gathered."""
        if layer not in self.tables:
            self.tables[layer] = like.new_zeros(self.n, like.shape[1])
        return self.tables[layer]

    def note(self, layer: int, nodes: Tensor, H: Tensor) -> None:
        """Note H, what the layer gathers of these nodes in this step."""
        self._noted[layer] = (nodes, H.detach())

    def settle(self) -> None:
        """Store what was noted."""
        for layer, (nodes, H) in self._noted.items():
            self.tables[layer][nodes] = H
        self._noted.clear()


@dataclass(frozen=True, eq=False, repr=False)
class HistoryHop(Sparse):
    """P̂: sampled links of some rows of P, scaled up by R = neighbours / sampled, to estimate P H.

    noise   the same links, scaled up by √R
    exact   the rows of P, over all nodes of the graph
    nodes   (columns,) which nodes the columns are
    """

    noise: Sparse
    exact: Sparse
    nodes: Tensor
    history: ActivationHistory
    layer: int

    def gather(self, H: Tensor, mean: Tensor | None = None) -> Tensor:
        """P̂ (μ - h̄) + P h̄ + P̂_√ (H - μ), whose mean over all samples is P H for any h̄.

        mean  μ, what H is without dropout; by default H itself, and the last term is zero

        The noise of dropout is independent between nodes, so √R gives a sum over few of them the
        variance of the sum over all.
        """
        M = H if mean is None else mean
        past = self.history.recall(self.layer, M)
        self.history.note(self.layer, self.nodes, M)
        smooth = self @ (M - past[self.nodes]) + self.exact @ past
        return smooth if mean is None else smooth + self.noise @ (H - mean)


Numbers = NDArray[np.int64]
LONG = 1 << 10  # links of a node, beyond which their random numbers have fewer bits


class NeighbourSampler:
    """Samples the links of P between different nodes; the diagonal is always there.

    P        (n, n)
    start    (n,) where a node's links begin
    count    (n,) the number of its links
    links    (links,) the column and the value of each, side by side: they are read together, in
             places all over the memory
    loops    (n,) P's diagonal
    """

    def __init__(self, P: Sparse):
        self.P = P
        row, column, value = (
            array.cpu().numpy() for array in (P.pattern.row_of, P.pattern.columns, P.values)
        )
        n = P.shape[0]
        link = (row != column) & (value != 0)
        self.links = np.empty(int(link.sum()), [("column", column.dtype), ("value", value.dtype)])
        self.links["column"], self.links["value"] = column[link], value[link]
        self.count = np.bincount(row[link], minlength=n)
        self.start = _before(self.count)
        self.loops = np.zeros(n, value.dtype)
        self.loops[row[row == column]] = value[row == column]

    @property
    def device(self) -> torch.device:
        """The device of the nodes that it takes and returns."""
        return torch.device("cpu")

    def sample(
        self, nodes: Tensor, fanout: int, random: np.random.Generator,
        history: ActivationHistory | None, layer: int,
    ) -> tuple[Sparse, Tensor]:  # fmt: skip
        """The matrix of up to `fanout` links of these nodes (0: all), and its columns' nodes."""
        targets = nodes.numpy()
        hop, reached = self.hop(targets, *self.draw(targets, fanout, random), history, layer)
        return hop, torch.from_numpy(reached)

    def draw(
        self, nodes: Numbers, fanout: int, random: np.random.Generator
    ) -> tuple[Numbers, Numbers]:
        """Up to `fanout` links per node (0: all): how many of each node, and the links.

        A link has a uniform number, one after the other in the order of `nodes`; the smallest of
        each node are drawn, in their order.
        """
        count, start = self.count[nodes], self.start[nodes]
        if fanout == 0:
            return count, runs_of(start, count)
        # What `random.random` would divide by 2⁵³.
        numbers = random.bit_generator.random_raw(int(count.sum())) >> np.uint64(11)
        drawn = np.minimum(count, fanout)
        links = shuffled(count, numbers).take(runs_of(_before(count), drawn))
        links += np.repeat(start, drawn)
        return drawn, links

    def hop(
        self,
        nodes: Numbers,
        drawn: Numbers,
        link: Numbers,
        history: ActivationHistory | None = None,
        layer: int = 0,
    ) -> tuple[Sparse, Numbers]:
        """The rectangular matrix of these links of these nodes, and the nodes of its columns."""
        links = self.links.take(link)
        reached, place = self._reached(nodes, links["column"].astype(np.int64))
        loops = self.loops[nodes]
        looped = np.flatnonzero(loops)
        # A row's loop comes after its links.
        at = np.cumsum(drawn)[looped]
        rows = np.zeros(len(nodes) + 1, np.int32)
        np.cumsum(drawn + (loops != 0), out=rows[1:])
        columns = np.insert(place, at, looped) if len(looped) else place
        shape = len(nodes), len(reached)
        pattern = Pattern(self._tensor(rows), self._tensor(columns), shape, transient=True)
        # So that the mean over all samples is P.
        scale = self.count[nodes] / np.maximum(drawn, 1)

        def matrix(scale: NDArray[np.float64]) -> Sparse:
            values = (links["value"] * np.repeat(scale, drawn)).astype(loops.dtype)
            values = np.insert(values, at, loops[looped]) if len(looped) else values
            return Sparse(pattern, self._tensor(values))

        hop = matrix(scale)
        if history is None:
            return hop, reached
        whole = self.P.rows(self._tensor(nodes), transient=True)
        noise, exact = matrix(np.sqrt(scale)), Sparse(*whole)
        parts = hop.pattern, hop.values, noise, exact
        return HistoryHop(*parts, self._tensor(reached), history, layer), reached

    def _reached(self, nodes: Numbers, sources: Numbers) -> tuple[Numbers, NDArray[np.int32]]:
        """The nodes, followed by those sources that are not among them; and each source's place."""
        strange = np.zeros(len(self.count), bool)
        strange[sources] = True
        strange[nodes] = False
        reached = np.concatenate([nodes, np.flatnonzero(strange)])
        place = np.cumsum(strange, dtype=np.int32)
        place += len(nodes) - 1
        place[nodes] = np.arange(len(nodes))
        return reached, place.take(sources)

    def _tensor(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self.P.device)


def shuffled(count: Numbers, numbers: NDArray[np.uint64]) -> Numbers:
    """0 … count - 1 for each of these counts, in the order of the numbers, < 2⁵³, one for each.

    Row, number and turn are packed in a word of 64 bits, because to sort words takes half the time
    that it takes to find their order.  Rows of more than LONG have numbers of 39 bits, as in the
    words of the GPU's kernel.
    """
    if (count > LONG).any():
        numbers = np.where(np.repeat(count > LONG, count), numbers >> 14 << 14, numbers)
    row_bits, turn_bits = (int(most).bit_length() for most in (len(count), count.max(initial=0)))
    bits = min(53, 64 - row_bits - turn_bits)
    words = numbers >> np.uint64(53 - bits)
    words <<= np.uint64(turn_bits)
    row = np.arange(len(count)) << (bits + turn_bits)
    words += runs_of(row, count).view(np.uint64)
    words.sort()
    turns: Numbers = (words & np.uint64((1 << turn_bits) - 1)).view(np.int64)
    words >>= np.uint64(turn_bits)
    if (words[1:] == words[:-1]).any():  # alike in their leading bits: compare all of them
        order = np.lexsort((numbers, np.repeat(np.arange(len(count)), count)))
        return np.asarray(order - np.repeat(_before(count), count))
    return turns


def _before(count: Numbers) -> Numbers:
    """(n,) the sum of the counts before each."""
    return np.cumsum(count) - count


def ahead(makers: Iterable[Callable[[], Batch]]) -> Generator[Batch, None, None]:
    """What the makers return, in their order; each is called while the batch before is in use.

    What a maker raises is raised here, when its batch is due.  The thread lives from the first
    batch until the iterator is exhausted or closed, and is waited for: after an epoch nothing is
    left of it, so that it neither meets the capture of a CUDA graph nor outlives a training.
    """
    with ThreadPoolExecutor(1, "gcnii-batches") as thread:
        due: Future[Batch] | None = None
        for make in makers:
            made, due = due, thread.submit(make)
            if made is not None:
                yield made.result()
        if due is not None:
            yield due.result()


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


class NeighbourBatches:
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
        # All at once, because each copy to a GPU would wait for it.
        targets = torch.from_numpy(order).to(self.sampler.device).split(self.size)
        makers = (
            partial(self._batch, nodes, (seed, epoch, step))
            for step, nodes in enumerate(targets, 1)
        )
        with closing(ahead(makers)) as batches:
            for batch in batches:
                yield batch
                if self.history:
                    self.history.settle()

    def _batch(self, targets: Tensor, at: tuple[int, int, int]) -> Batch:
        """Does not read the history, which belongs to the step that runs meanwhile."""
        random = np.random.default_rng(at)
        hops: list[Sparse] = []
        nodes = targets
        for layer in reversed(range(len(self.fanout))):
            fanout = self.fanout[layer]
            # A hop that takes all neighbours is exact and needs no history.
            history = self.history if fanout else None
            hop, nodes = self.sampler.sample(nodes, fanout, random, history, layer)
            if layer:  # its gradient is certain; the first hop may read nothing but X
                _ = hop.pattern.transposed
            hops.insert(0, hop)
        nodes, chosen = (each.to(self.X.device) for each in (nodes, targets))
        if isinstance(self.X, Tensor):
            return Batch(Hops(tuple(hops)), self.X.index_select(0, nodes), chosen)
        X = Sparse(*self.X.rows(nodes, transient=True))
        return Batch(Hops(tuple(hops)), X, chosen)

    def state(self) -> dict[str, Tensor]:
        """h̄ of each layer, by its number."""
        tables = self.history.tables if self.history else {}
        return {str(layer): table for layer, table in tables.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue with this h̄."""
        if self.history:
            self.history.tables = {int(layer): table for layer, table in state.items()}


def _sampler(P: Sparse, fanout: int) -> DeviceSampler | NeighbourSampler:
    """On a GPU the kernels draw; else, and where a node has too many links for them, numpy does."""
    if kernels.usable(P.values[:, None]):
        from gcnii.train.device_sampler import DeviceSampler

        found = DeviceSampler.of(P)
        if found.can_draw(fanout):
            return found
    return NeighbourSampler(P)
