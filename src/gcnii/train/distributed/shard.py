"""Shard: a process's part of a task."""

from __future__ import annotations

from dataclasses import dataclass, replace

import scipy.sparse as sp
import torch
from torch import Tensor

from gcnii.errors import InputError
from gcnii.nn import MODELS
from gcnii.propagation import Rows, Sparse
from gcnii.train.distributed.cut import cut
from gcnii.train.distributed.halo import CutAdjacency
from gcnii.train.distributed.world import World
from gcnii.train.plan import Plan
from gcnii.train.task import Task


@dataclass(frozen=True, eq=False)
class Shard:
    """The nodes of one process, among all n."""

    world: World
    rows: Rows
    n: int

    def gathered(self, output: Tensor) -> Tensor:
        """(n, …) from what each process has of it (rows, …)."""
        whole = output.new_zeros(self.n, *output.shape[1:])
        return self.world.added(whole.index_copy(0, self.rows.nodes, output))


def spread(task: Task, world: World) -> Task:
    """The task with this process's rows of P and X."""
    refuse(task.plan, task.graph.n, world.size)
    owner = _owners(task, world)
    own = torch.nonzero(owner == world.rank)[:, 0]
    links = CutAdjacency.of(task.adjacency, world, owner, own)
    shard = Shard(world, Rows(own, _entries(task.X, own)), task.graph.n)
    world.hurry()
    return replace(task, adjacency=links, X=task.X[own], shard=shard)


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


def _owners(task: Task, world: World) -> Tensor:
    """(n,) the process of each node; rank 0 cuts."""
    owner = torch.empty(task.graph.n, dtype=torch.int64)
    if world.rank == 0:
        pattern = task.adjacency.pattern
        arrays = (
            one.cpu().numpy() for one in (task.adjacency.weights, pattern.columns, pattern.rows)
        )
        owner = torch.from_numpy(cut(sp.csr_array(tuple(arrays), pattern.shape), world.size))
    return world.from_first(owner).to(task.device)


def _entries(X: Tensor | Sparse, own: Tensor) -> Tensor | None:
    """The numbers of the entries of these rows, if X is sparse."""
    if not isinstance(X, Sparse):
        return None
    here = torch.zeros(X.shape[0], dtype=torch.bool, device=own.device)
    here[own] = True
    return torch.nonzero(here[X.pattern.row_of])[:, 0]
