"""How a graph is cut over processes: which one has which nodes, and its part of a task.

A process has its nodes' rows of Ã and P̃, and a halo: rows that it fetches from other processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.data.formats.parts import Numbering, refuse_folder, write
from gcnii.errors import InputError, notice
from gcnii.files import Document
from gcnii.graph import GlobalIndices, Graph, Piece
from gcnii.graph.piece import Numbers
from gcnii.graph.weights import EdgeWeights, weighed
from gcnii.nn import MODELS
from gcnii.propagation import Adjacency, Direction, Loops, Norm, Sparse, adjacency
from gcnii.propagation.adjacency import of_edges, oriented, refuse_loops, with_diagonal
from gcnii.propagation.sparse import (
    CutPattern,
    Pattern,
    RowNumbers,
    VmapInfo,
    Wait,
    multiply_each,
    replicas_first,
    row_sums,
)
from gcnii.targets.objective import Share
from gcnii.train.clusters import metis
from gcnii.train.distributed.world import World
from gcnii.train.features import Across, Scaling, choose, scaled_matrix
from gcnii.train.plan import Plan
from gcnii.train.recipe import Recipe
from gcnii.train.task import Task, make_adjacency

Labels = NDArray[np.int64]


def partition(A: sp.csr_array, parts: int) -> Labels:
    """(n,) the part of each node: few links between parts of about equal size, by METIS.

    Without METIS, or where it leaves a part empty: blocks of nodes in the order given.
    """
    labels = metis(A, parts)
    if labels is None:
        labels = blocks(A.shape[0], parts)
        share = f"{100 * crossing(A, labels):.0f}%"
        notice(
            f"pymetis is not installed, so the graph is cut into {parts} blocks of nodes in the "
            f"order given, and {share} of its edges join two of them: every layer "
            "sends the rows at their ends. Install it with: pip install 'gcnii[metis]'"
        )
    if len(np.unique(labels)) < parts:
        return blocks(A.shape[0], parts)
    return labels


def blocks(n: int, parts: int) -> Labels:
    """Nodes in the order given, in parts of equal size."""
    return np.arange(n) * parts // n


def crossing(A: sp.csr_array, labels: Labels) -> float:
    """The share of links that join two parts."""
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    links = row != A.indices
    return float((labels[row] != labels[A.indices])[links].mean()) if links.any() else 0.0


ONE_WAY: tuple[Direction, ...] = ("out", "in")  # in which a training may gather over such links


def pack(graph: Graph, folder: Path, parts: int) -> Document:
    """Write a graph in this number of parts, cut as `torchrun` would cut it; return its list.

    Beside the graph, memory holds its links twice and one part at a time.
    """
    refuse_folder(folder, graph.source)
    refuse_times(graph)
    if not 1 <= parts <= graph.n:
        raise InputError(f"{graph.name} has {graph.n} nodes and cannot be cut into {parts} parts")
    both, _ = with_diagonal(adjacency(graph, "both"))
    owner = partition(both, parts) if parts > 1 else np.zeros(graph.n, np.int64)
    numbering = Numbering(_first(graph, both), pair_numbers(both), both.indptr.astype(np.int64))
    known: Document = {"scale": choose(graph.X, graph.columns)}
    if graph.weighted:
        known["weights"] = graph.typical_weights.tolist()
    return write(graph, folder, owner, numbering, known)


def refuse_times(graph: Graph) -> None:
    """Raise InputError for a graph with times: its parts are of one graph, not of three."""
    if graph.times is not None:
        raise InputError(
            f"{graph.name} has times, and a graph with times is trained in one process; leave the "
            "times out (--time) to share its nodes"
        )


def _first(graph: Graph, both: sp.csr_array) -> dict[str, Numbers]:
    """Where the rows of Ã begin, for each direction that a training may choose."""
    first: dict[str, Numbers] = {"both": both.indptr[:-1].astype(np.int64)}
    for direction in ONE_WAY if graph.directed else ():
        one, _ = with_diagonal(adjacency(graph, direction))
        first[direction] = one.indptr[:-1].astype(np.int64)
    return first


def pair_numbers(both: sp.csr_array) -> Numbers:
    """(entries,) of a symmetric pattern, sorted: a number that (u, v) and (v, u) share.

    Pairs u ≤ v are numbered in the order of their codes u n + v, which is that of the entries.
    """
    row = np.repeat(np.arange(both.shape[0]), np.diff(both.indptr))
    upper = both.indices >= row
    numbers = np.cumsum(upper, dtype=np.int64)  # from 1, because a sparse sum keeps no zeros
    U = sp.csr_array((numbers[upper], (row[upper], both.indices[upper])), both.shape)
    whole = sp.csr_array(U + sp.triu(U, 1).T)
    whole.sort_indices()
    return np.asarray(whole.data - 1, np.int64)


@dataclass(frozen=True, eq=False)
class AdjacencyRows:
    """The entries of some rows of Ã = A + I, row by row.

    own       (rows,) the numbers of these rows, sorted
    row       (entries,) of each entry, counted from the first of these rows
    column    (entries,) by its number in the whole graph
    weights   (entries,) A's values, in float64
    diagonal  (entries,) whether an entry is on the diagonal
    numbers   (entries,) among all entries of the whole graph
    pairs     (entries,) a number that (u, v) and (v, u) share, where DropEdge draws pairs
    halo      (halo,) nodes that are not among the rows, sorted; all other columns are among them
    owner     (halo,) the process of each
    """

    own: Tensor
    row: Tensor
    column: Tensor
    weights: Tensor
    diagonal: Tensor
    numbers: Tensor
    pairs: Tensor | None
    halo: Tensor
    owner: Tensor

    @classmethod
    def of_whole(cls, links: Adjacency, owner: Tensor, rank: int, recipe: Recipe) -> AdjacencyRows:
        """Those of process `rank`, of a graph that is here as a whole."""
        pattern = links.pattern
        own = torch.nonzero(owner == rank)[:, 0]
        entries = torch.nonzero(owner[pattern.row_of] == rank)[:, 0]
        column = pattern.columns[entries].long()
        halo = torch.unique(column[owner[column] != rank])
        return cls(
            own,
            torch.searchsorted(own, pattern.row_of[entries]),
            column,
            links.weights[entries],
            links.diagonal[entries],
            entries,
            links.pairs[entries] if _draws_pairs(recipe) else None,
            halo,
            owner[halo],
        )

    @classmethod
    def of_piece(cls, piece: Piece, recipe: Recipe) -> AdjacencyRows:
        """Those of a piece, which has all edges that touch its nodes."""
        refuse_loops(recipe.norm, recipe.loops)
        if recipe.diffusion != "none":
            raise InputError(
                f"a diffusion needs all edges of {piece.name}, and its parts hold some each; train "
                "on the graph in one file, or without a diffusion"
            )
        assert piece.places is not None
        return _Neighbourhood(piece, piece.places, recipe.edge_weights).links(recipe)


class _Neighbourhood:
    """A piece with its halo: small numbers for nodes that may have large ones.

    nodes  their numbers in the whole graph, sorted, so that links keep their order
    at     (rows,) which of them are the piece's own
    """

    def __init__(self, piece: Piece, places: GlobalIndices, edge_weights: EdgeWeights = "raw"):
        self.piece, self.places = piece, places
        self.nodes = np.sort(np.concatenate([piece.rows, places.halo]))
        self.at = np.searchsorted(self.nodes, piece.rows)
        edges = np.searchsorted(self.nodes, piece.edges)
        self.A = of_edges(edges, piece.weights, len(self.nodes))
        if piece.weights is not None and edge_weights != "raw":
            self.A.data = weighed(self.A.data, edge_weights, piece.typical_weights)

    def rows(self, direction: Direction, loops: Loops) -> tuple[sp.csr_array, NDArray[np.bool_]]:
        """The piece's rows of A on the entries of Ã, and which of these are on the diagonal."""
        A = oriented(self.A, direction, loops)
        return with_diagonal(sp.csr_array(A[self.at]), self.at)

    def links(self, recipe: Recipe) -> AdjacencyRows:
        """As the recipe wants them."""
        places, direction = self.places, recipe.direction if self.piece.directed else "both"
        whole, diagonal = self.rows(direction, recipe.loops)
        row = _row_of(whole)
        first = places.first[direction] - whole.indptr[:-1]
        return AdjacencyRows(
            torch.tensor(self.piece.rows),
            torch.from_numpy(row),
            torch.from_numpy(self.nodes[whole.indices]),
            torch.from_numpy(whole.data),
            torch.from_numpy(diagonal).double(),
            torch.from_numpy(first[row] + np.arange(len(row))),
            self._pairs(whole) if _draws_pairs(recipe) else None,
            torch.tensor(places.halo),
            torch.tensor(places.owner),
        )

    def _pairs(self, own: sp.csr_array) -> Tensor:
        """Those of both directions are in the file; one-way links have some of them."""
        both, _ = self.rows("both", "keep")
        codes = [_row_of(one) * len(self.nodes) + one.indices for one in (both, own)]
        return torch.from_numpy(self.places.pairs[np.searchsorted(*codes)])


def _draws_pairs(recipe: Recipe) -> bool:
    return recipe.drop_edge > 0 and recipe.drop_form == "pairs"


def _row_of(matrix: sp.csr_array) -> Numbers:
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return np.asarray(rows, np.int64)


Exchange = Callable[[Tensor], Wait]  # sends rows; what it returns waits for others'


@dataclass(frozen=True, eq=False)
class Halo:
    """Which rows go where.

    nodes     (halo,) the nodes of other processes that this one gathers from, by process
    received  how many of them are of each process
    sent      (sent,) the rows here that others gather from, by process
    counts    how many of them go to each process
    rows      the number of rows here
    """

    world: World
    nodes: Tensor
    received: list[int]
    sent: Tensor
    counts: list[int]
    rows: int

    @classmethod
    def of(cls, world: World, wanted: Tensor, owner: Tensor, own: Tensor) -> Halo:
        """Ask each process for what is wanted of it.

        wanted  nodes of other processes, sorted
        owner   the process of each of them
        own     (rows,) the nodes here, sorted
        """
        nodes = wanted[torch.argsort(owner, stable=True)]
        received = torch.bincount(owner, minlength=world.size).tolist()
        ones = [1] * world.size
        counts = world.exchange(torch.tensor(received), ones, ones)().tolist()
        asked = world.exchange(nodes.cpu(), received, counts)()
        sent = torch.searchsorted(own.cpu(), asked).to(own.device)
        return cls(world, nodes, received, sent, counts, len(own))

    def fetch(self, H: Tensor) -> Wait:
        """H (r, rows, h): send what others want; wait for their rows (r, halo, h)."""
        rows = H.index_select(1, self.sent).transpose(0, 1)
        wait = self.world.exchange(rows, self.counts, self.received)
        return lambda: wait().transpose(0, 1).contiguous()

    def back(self, G: Tensor) -> Wait:
        """G (r, halo, h): return gradients; wait for those of the rows sent (r, sent, h)."""
        wait = self.world.exchange(G.transpose(0, 1), self.received, self.counts)
        return lambda: wait().transpose(0, 1).contiguous()

    def fetched(self, each: Tensor) -> Tensor:
        """(rows,) numbers of the nodes here → (halo,) those of the halo; vmap takes it."""
        return Exchanged.apply(each, self.fetch)  # type: ignore[no-any-return, no-untyped-call]

    def returned(self, each: Tensor) -> Tensor:
        """(halo,) numbers → (rows,) the sums of what others have for the nodes here; with vmap."""
        sums = Exchanged.apply(each, self._summed)  # type: ignore[no-untyped-call]
        return sums  # type: ignore[no-any-return]

    def _summed(self, each: Tensor) -> Wait:
        wait, ones = self.back(each), each.new_ones(1, len(self.sent))
        return lambda: multiply_each(self.collect, ones, wait())

    @cached_property
    def collect(self) -> Pattern:
        """(rows, sent): which of the rows sent are one of the rows here.

        Sums over it have a fixed order, so that training is reproducible on a GPU, too.
        """
        order = torch.argsort(self.sent, stable=True)
        shape = self.rows, len(self.sent)
        return Pattern.from_sorted(self.sent[order], order, shape)


class Exchanged(torch.autograd.Function):
    """A number of each node by `Halo.fetch` or `Halo.back`; it has no gradient."""

    @staticmethod
    def forward(each: Tensor, exchange: Exchange) -> Tensor:
        """(nodes here or of the halo,) → (those of the other,)."""
        return exchange(each[None, :, None])()[0, :, 0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...], each: Tensor, exchange: Exchange
    ) -> tuple[Tensor, int]:
        """One exchange for all replicas."""
        return exchange(replicas_first(each, in_dims[0], info.batch_size)[..., None])()[..., 0], 0


@dataclass(frozen=True, eq=False, repr=False)
class CutMatrix(Sparse):
    """This process's rows of P.  Its `pattern` is that of the near columns alone.

    cut  where all values are: near's entries, followed by far's
    """

    cut: CutPattern

    @classmethod
    def of(cls, cut: CutPattern, values: Tensor) -> CutMatrix:
        """The matrix with these values, near's first; no gradient reaches them."""
        return cls(cut.near, values, cut)

    @property
    def places(self) -> CutPattern:
        """Where the values are, for products."""
        return self.cut


@dataclass(frozen=True, eq=False)
class CutAdjacency(Adjacency):
    """This process's rows of Ã; columns are its own nodes, and after them those of its halo.

    A row has its entries in the order of the whole graph, so that its sum rounds as there.  Degrees
    of the halo are asked of the processes that have its nodes, whenever links are dropped.

    numbers     (entries,) of its links among those of the whole graph, on the CPU
    pair_numbers  (entries,) those that (u, v) and (v, u) share, where DropEdge draws pairs
    places  where P's values are stored: those on its own columns, and then those on the halo's
    order   (entries,) brings values into the order of `places`
    """

    numbers: Tensor = field(kw_only=True)
    pair_numbers: Tensor | None = field(kw_only=True)
    halo: Halo = field(kw_only=True)
    places: CutPattern = field(kw_only=True)
    order: Tensor = field(kw_only=True)

    @classmethod
    def cut(
        cls, links: AdjacencyRows, world: World, norm: Norm, looped: bool,
        device: torch.device, dtype: torch.dtype, values: Tensor | None = None,
    ) -> CutAdjacency:  # fmt: skip
        """Ask the other processes for what these links lead to; all call this.

        values  the numbers of the stored values of X in the whole graph, if X is sparse
        """
        own, row, column = (one.to(device) for one in (links.own, links.row, links.column))
        place = torch.searchsorted(own, column)
        here = own[place.clamp(max=len(own) - 1)] == column
        wanted = torch.unique(column[~here])
        owner = links.owner.to(device)[torch.searchsorted(links.halo.to(device), wanted)]
        halo = Halo.of(world, wanted, owner, own)
        place[~here] = len(own) + _places(halo.nodes, column[~here])
        rows, columns = len(own), len(own) + len(halo.nodes)
        near, far = torch.nonzero(here)[:, 0], torch.nonzero(~here)[:, 0]
        places = CutPattern(
            replace(
                Pattern.from_sorted(row[near], place[near], (rows, rows)),
                row_numbers=RowNumbers(own, values),
            ),
            Pattern.from_sorted(row[far], place[far] - rows, (rows, columns - rows)),
            halo,
        )
        return cls(
            Pattern.from_sorted(row, place, (rows, columns)),
            links.weights.to(device, dtype),
            links.diagonal.to(device, dtype),
            norm,
            looped,
            numbers=links.numbers,
            pair_numbers=links.pairs,
            halo=halo,
            places=places,
            order=torch.cat([near, far]),
        )

    @cached_property
    def whole(self) -> CutMatrix:
        """The rows of the propagation matrix of all links."""
        return self.matrix()

    def matrix(self, kept: Tensor | None = None) -> CutMatrix:
        """The rows of the propagation matrix of the links that `kept` (entries,) marks."""
        values = self._normalised(self.weights if kept is None else self.weights * kept)
        return CutMatrix.of(self.places, values[self.order])

    @cached_property
    def entries(self) -> RowNumbers:
        """The numbers of its links, by which DropEdge draws them."""
        numbers = self.numbers.to(self.weights.device)
        return RowNumbers(numbers, numbers)

    @cached_property
    def paired(self) -> RowNumbers:
        """Numbers that (u, v) and (v, u) share, by which DropEdge draws pairs."""
        return RowNumbers(self.pairs, self.pairs)

    @cached_property
    def pairs(self) -> Tensor:
        """(entries,) a number that (u, v) and (v, u) share, in the whole graph."""
        assert self.pair_numbers is not None
        return self.pair_numbers.to(self.weights.device)

    def _of_columns(self, each: Tensor) -> Tensor:
        return torch.cat([each, self.halo.fetched(each)])

    def _column_sums(self, A: Tensor) -> Tensor:
        transposed, order = self.pattern.transposed
        sums = row_sums(transposed, A.index_select(0, order))
        return sums[: self.halo.rows] + self.halo.returned(sums[self.halo.rows :])


def _places(nodes: Tensor, asked: Tensor) -> Tensor:
    """Where among some nodes, in any order, those that are asked for stand."""
    order = torch.argsort(nodes)
    return order[torch.searchsorted(nodes[order], asked)]


@dataclass(frozen=True, eq=False)
class Shard:
    """The nodes of one process, among all n."""

    world: World
    n: int

    @property
    def share(self) -> Share:
        """What losses and scores of all nodes need."""
        return Share(self.world.total, self.world.gathered, self.n)

    def gathered(self, rows: Tensor, nodes: Tensor) -> Tensor:
        """What each process has for some nodes, sorted by the numbers of the nodes."""
        order = torch.argsort(self.world.gathered(nodes))
        return self.world.gathered(rows)[order]


def spread(graph: Graph, plan: Plan, device: torch.device, world: World) -> Task:
    """The task with this process's rows of P and X.

    graph  the whole, or the piece of this process
    """
    refuse(plan, graph.n, world.size)
    refuse_times(graph)
    recipe = plan.recipe
    if isinstance(graph, Piece):
        piece, links = graph, AdjacencyRows.of_piece(graph, recipe)
    else:
        piece, links = _cut(graph, plan, world)
    about = (recipe.norm, recipe.loops != "none", device, recipe.dtype)
    adjacency = CutAdjacency.cut(links, world, *about, _entries(graph, piece, device))
    scaling = None
    if recipe.scale != "none":
        across = Across(
            lambda sums: world.added(torch.tensor(sums)).numpy(),
            lambda numbers: world.most(torch.tensor(numbers)).numpy(),
        )
        scaling = Scaling.learn(piece.X, recipe.scale, across, piece.columns)
    X = scaled_matrix(piece.X, scaling, recipe.dtype).to(device)
    shard, kept = Shard(world, graph.n), piece.without_features()
    world.hurry()
    return Task(kept, plan, device, adjacency, X, scaling, (), shard)


def refuse(plan: Plan, n: int, size: int) -> None:
    """Raise InputError if several processes cannot train this."""
    recipe = plan.recipe
    if not MODELS[plan.model].can_be_cut:
        able = ", ".join(name for name, model in MODELS.items() if model.can_be_cut)
        raise InputError(
            f"{plan.model} cannot be trained by several processes; start it without torchrun, or "
            f"use one of {able}"
        )
    if plan.types > 1:
        raise InputError(
            "several processes take all edges alike; start it without torchrun, or set edge_types "
            "ignore (--edge-types ignore)"
        )
    if recipe.batches != "full" or recipe.geometry != "none":
        which = f"batches {recipe.batches}" if recipe.batches != "full" else "a geometry"
        raise InputError(
            f"several processes train the full graph on its own edges, got {which}; start it "
            "without torchrun"
        )
    if recipe.scale == "quantile" or plan.structure != "none":
        which = "scale quantile" if recipe.scale == "quantile" else f"structure {plan.structure}"
        raise InputError(
            f"{which} needs all nodes in one process; start it without torchrun, or set it to none"
        )
    if n < size:
        raise InputError(f"a graph of {n} nodes cannot be cut over {size} processes; start fewer")


def _cut(graph: Graph, plan: Plan, world: World) -> tuple[Piece, AdjacencyRows]:
    """This process's nodes of a graph that all have read; rank 0 says which they are."""
    whole, owner = make_adjacency(graph, plan), torch.empty(graph.n, dtype=torch.int64)
    if world.rank == 0:
        owner = torch.from_numpy(_owners(whole, world.size))
    links = AdjacencyRows.of_whole(whole, world.from_first(owner), world.rank, plan.recipe)
    return Piece.cut(graph, links.own.numpy()), links


def _owners(links: Adjacency, size: int) -> NDArray[np.int64]:
    pattern = links.pattern
    arrays = (one.numpy() for one in (links.weights, pattern.columns, pattern.rows))
    return partition(sp.csr_array(tuple(arrays), pattern.shape), size)


def _entries(graph: Graph, piece: Piece, device: torch.device) -> Tensor | None:
    """The numbers of the stored values of X in the whole graph, if X is sparse."""
    X = piece.X
    if not isinstance(X, sp.csr_array):
        return None
    first = piece.places.values if piece.places else sp.csr_array(graph.X).indptr[piece.rows]
    before = np.repeat(first - X.indptr[:-1], np.diff(X.indptr))
    return torch.from_numpy(before + np.arange(len(before))).to(device)
