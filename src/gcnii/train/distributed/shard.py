"""Shard: a process's part of a task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.errors import InputError
from gcnii.graph import Graph, Piece
from gcnii.nn import MODELS
from gcnii.propagation import GraphAdjacency, Rows, to_matrix
from gcnii.targets.objective import Share
from gcnii.train.distributed.adjacency import CutAdjacency
from gcnii.train.distributed.cut import cut
from gcnii.train.distributed.links import Links
from gcnii.train.distributed.world import World
from gcnii.train.plan import Plan, refuse_weights
from gcnii.train.scaling import Scaling
from gcnii.train.task import Task, make_adjacency


@dataclass(frozen=True, eq=False)
class Shard:
    """The nodes of one process, among all n."""

    world: World
    rows: Rows
    n: int

    @property
    def share(self) -> Share:
        """What losses and scores of all nodes need."""
        return Share(self.world.total, self.world.gathered, self.n)

    def gathered(self, rows: Tensor, nodes: Tensor) -> Tensor:
        """What each process has for some nodes, sorted by the numbers of the nodes."""
        order = torch.argsort(self.world.gathered(nodes))
        return self.world.gathered(rows)[order]


@dataclass(frozen=True)
class Across:
    """Sums and maxima over the rows of all processes, for scaling."""

    world: World

    def added(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of what each process has."""
        return self.world.added(torch.tensor(sums)).numpy()

    def most(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The largest that a process has."""
        return self.world.most(torch.tensor(numbers)).numpy()


def spread(graph: Graph, plan: Plan, device: torch.device, world: World) -> Task:
    """The task with this process's rows of P and X.

    graph  the whole, or the piece of this process
    """
    refuse(plan, graph.n, world.size)
    if graph.weighted:
        refuse_weights(plan.model, plan.recipe)
    recipe = plan.recipe
    if isinstance(graph, Piece):
        piece, links = graph, Links.of_piece(graph, recipe)
    else:
        piece, links = _cut(graph, plan, world)
    about = (recipe.norm, recipe.loops != "none", device, recipe.dtype)
    adjacency = CutAdjacency.cut(links, world, *about)
    scaling = None
    if recipe.scale != "none":
        scaling = Scaling.learn(piece.X, recipe.scale, Across(world), piece.columns)
    X = to_matrix(piece.X if scaling is None else scaling.apply(piece.X), recipe.dtype).to(device)
    rows = Rows(links.own.to(device), _entries(graph, piece, device))
    shard, kept = Shard(world, rows, graph.n), piece.without_features()
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
    if n < size:
        raise InputError(f"a graph of {n} nodes cannot be cut over {size} processes; start fewer")


def _cut(graph: Graph, plan: Plan, world: World) -> tuple[Piece, Links]:
    """This process's nodes of a graph that all have read; rank 0 says which they are."""

    def make() -> GraphAdjacency:
        adjacency = make_adjacency(graph, plan.recipe)
        assert isinstance(adjacency, GraphAdjacency)  # a geometry is refused
        return adjacency

    whole, owner = make(), torch.empty(graph.n, dtype=torch.int64)
    if world.rank == 0:
        owner = torch.from_numpy(_owners(whole, world.size))
    links = Links.of_whole(whole, world.from_first(owner), world.rank, make)
    return Piece.cut(graph, links.own.numpy()), links


def _owners(links: GraphAdjacency, size: int) -> NDArray[np.int64]:
    pattern = links.pattern
    arrays = (one.numpy() for one in (links.weights, pattern.columns, pattern.rows))
    return cut(sp.csr_array(tuple(arrays), pattern.shape), size)


def _entries(graph: Graph, piece: Piece, device: torch.device) -> Tensor | None:
    """The numbers of the stored values of X in the whole graph, if X is sparse."""
    X = piece.X
    if not isinstance(X, sp.csr_array):
        return None
    first = piece.places.values if piece.places else sp.csr_array(graph.X).indptr[piece.rows]
    before = np.repeat(first - X.indptr[:-1], np.diff(X.indptr))
    return torch.from_numpy(before + np.arange(len(before))).to(device)
