"""How a graph is cut over processes: which one has which nodes, and its part of a task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.data.formats.parts import Numbering, refuse_folder, write
from gcnii.errors import InputError, notice
from gcnii.files import Document
from gcnii.graph import Graph, Piece
from gcnii.graph.piece import Numbers
from gcnii.nn import MODELS
from gcnii.propagation import Adjacency, Direction, adjacency
from gcnii.propagation.adjacency import with_diagonal
from gcnii.targets.objective import Share
from gcnii.train.clusters import metis
from gcnii.train.distributed.adjacency import AdjacencyRows, CutAdjacency
from gcnii.train.distributed.world import World
from gcnii.train.features import Across, Scaling, choose, scaled_matrix
from gcnii.train.plan import Plan, refuse_weights
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
            f"order given, and {share} of its links join two of them: every layer "
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
    if not 1 <= parts <= graph.n:
        raise InputError(f"{graph.name} has {graph.n} nodes and cannot be cut into {parts} parts")
    both, _ = with_diagonal(adjacency(graph, "both"))
    owner = partition(both, parts) if parts > 1 else np.zeros(graph.n, np.int64)
    numbering = Numbering(_first(graph, both), pair_numbers(both), both.indptr.astype(np.int64))
    known: Document = {"scale": choose(graph.X, graph.columns)}
    if graph.weighted:
        known["weights"] = graph.typical_weights.tolist()
    return write(graph, folder, owner, numbering, known)


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
    if graph.weighted:
        refuse_weights(plan.model, plan.recipe)
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
    if recipe.batches != "full" or recipe.geometry != "none":
        which = f"batches {recipe.batches}" if recipe.batches != "full" else "a geometry"
        raise InputError(
            f"several processes train the full graph on its own links, got {which}; start it "
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
    whole, owner = make_adjacency(graph, plan.recipe), torch.empty(graph.n, dtype=torch.int64)
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
