"""A task: a plan on a graph, made ready on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import linear

from gcnii import data
from gcnii.errors import GraphError, InputError, UsageError
from gcnii.graph import Features, Graph, Piece
from gcnii.graph.arrays import hand_back
from gcnii.graph.past import features_there, past, present
from gcnii.nn import MODELS
from gcnii.nn.engine.skeleton import GCNIISkeleton
from gcnii.propagation import (
    Adjacency,
    RelationalAdjacency,
    Sparse,
    TypedAdjacency,
    adjacency,
    adjacency_of_types,
    diffuse,
)
from gcnii.propagation.by_rows import block_height, can_be_fixed, fixed_matrix
from gcnii.propagation.sparse import TakenByLinear
from gcnii.targets.objective import Share
from gcnii.train.batches import Batch, Batches, Full, NeighbourBatches, Subgraphs
from gcnii.train.clusters import cluster
from gcnii.train.features import Floats, Scaling, scaled_matrix, structure_columns
from gcnii.train.plan import Plan, refuse_edges
from gcnii.train.recipe import Recipe

if TYPE_CHECKING:
    from gcnii.train.distributed.shard import Shard

NODES = 512  # per step, where neighbours are sampled and no number is given


@dataclass(frozen=True, eq=False)
class Task:
    """What all groups of a fit share: the plan, and the graph's adjacency and X on the device.

    plan     the first of the plans, which stands for all where they do not differ
    scaling  by which X was scaled, if it was
    others   the further plans of a fit that tries several; all have the same `batch_key`
    earlier  of a graph with times, the same for its past: what training sees, and what validation
             does; P, X and the graph of this task are what tests see
    shard    where several processes share the nodes: those of this one; P, X and the graph, which
             is a Piece, have their rows
    """

    graph: Graph
    plan: Plan
    device: torch.device
    adjacency: Adjacency
    X: Tensor | Sparse
    scaling: Scaling | None = None
    others: tuple[Plan, ...] = ()
    shard: Shard | None = None
    earlier: Earlier | None = None

    @classmethod
    def of(
        cls,
        graph: Graph,
        plan: Plan,
        device: torch.device,
        scaling: Scaling | None = None,
        *,
        offline: bool = False,
    ) -> Task:
        """Make the adjacency and X, scaled and with what is added, and move both to the device.

        scaling  what was learnt on another graph; by default it is learnt on this one
        offline  whether the neighbours of a geometry may not be fetched
        """
        added = structure_columns(graph, plan.structure)
        scaling = learnt(graph, plan, scaling, added)
        dtype = plan.recipe.dtype
        links = make_adjacency(graph, plan, offline=offline).to(device, dtype)
        X = scaled_matrix(graph.X, scaling, dtype, added).to(device)
        return cls(graph, plan, device, links, X, scaling)

    @classmethod
    def in_time(cls, graph: Graph, plan: Plan, device: torch.device, *, offline: bool) -> Task:
        """The same for a training on a graph with times, which sees its past."""
        refuse_untimely(graph, plan.recipe)
        train = cls.of(past(graph, "train"), plan, device, offline=offline)
        scaling = train.scaling
        val, whole = (
            cls.of(one, plan, device, scaling, offline=offline)
            for one in (past(graph, "val"), graph)
        )
        return replace(whole, earlier=Earlier(train, val))

    @property
    def plans(self) -> tuple[Plan, ...]:
        """All plans; run r is of plans[r.setting]."""
        return (self.plan, *self.others)

    @property
    def P(self) -> Sparse:
        """The propagation matrix of the full graph."""
        return self.adjacency.whole

    def batches(self, split: int) -> Batches:
        """What the steps of a run on this split see."""
        if self.earlier:
            return self.earlier.train.batches(split)
        recipe = self.plan.recipe
        size = recipe.batch_size or (NODES if recipe.batches == "neighbours" else 1)
        match recipe.batches:
            case "full":
                return Full(self._all())
            case "parts":
                return Subgraphs(self.adjacency, self.X, self._tensor(self._parts(split)), size)
            case "clusters":
                return Subgraphs(self.adjacency, self.X, self._tensor(self._clusters(split)), size)
            case "neighbours":
                return self._neighbours(split, size)

    def _neighbours(self, split: int, size: int) -> NeighbourBatches:
        recipe = self.plan.recipe
        return NeighbourBatches(
            self.adjacency,
            self.X,
            self._tensor(np.flatnonzero(self.graph.splits[split].train)),
            size=size,
            fanout=recipe.fanout,
            layers=self.plan.model_settings["layers"],
            history=recipe.history,
        )

    def evaluation(self, splits: Sequence[int]) -> Batch:
        """What these splits are judged on: all nodes, or the graphs with val or test nodes."""
        part, masks = self.graph.part, [self.graph.splits[split] for split in splits]
        if part is None or self.plan.recipe.batches == "full":
            return self._all()
        asked = np.any([mask.val | mask.test for mask in masks], axis=0)
        asked, there = np.isin(part, part[asked]), present(self.graph)
        return self._induced(asked if there is None else asked & there)

    def validation(self, splits: Sequence[int]) -> Batch | None:
        """What validation nodes are judged on, where it is not what test nodes are."""
        return self.earlier.val.evaluation(splits) if self.earlier else None

    def _all(self) -> Batch:
        """All nodes that are there, or all that this process has."""
        there = present(self.graph)
        if there is None:
            return Batch.of(self.adjacency, self.X)
        return self._induced(there)

    def _induced(self, there: NDArray[np.bool_]) -> Batch:
        nodes = self._tensor(np.flatnonzero(there))
        return Batch.of(self.adjacency.induced(nodes), self.X[nodes], nodes)

    @property
    def share(self) -> Share | None:
        """What losses and scores of all nodes need, where several processes share them."""
        return self.shard.share if self.shard else None

    def _parts(self, split: int) -> NDArray[np.int64]:
        """(n,) the graph of each node, -1 in graphs without training nodes."""
        part = self.graph.part
        if part is None:
            raise GraphError(
                f"batches of parts need several graphs, but {self.graph.name} is one; use clusters"
            )
        own, there = np.isin(part, part[self.graph.splits[split].train]), present(self.graph)
        return np.where(own if there is None else own & there, part, -1)

    def _clusters(self, split: int) -> NDArray[np.int64]:
        """(n,) the cluster of each node, -1 in graphs (of several) without training nodes."""
        pattern, weights = self.adjacency.pattern, self.adjacency.weights
        arrays = (array.cpu().numpy() for array in (weights, pattern.columns, pattern.rows))
        A = sp.csr_array(tuple(arrays), pattern.shape)
        there = present(self.graph) if self.graph.part is None else self._parts(split) >= 0
        seen = np.arange(self.graph.n) if there is None else np.flatnonzero(there)
        labels = np.full(self.graph.n, -1)
        labels[seen] = cluster(sp.csr_array(A[seen][:, seen]), self.plan.recipe.clusters)
        return labels

    def _tensor(self, array: NDArray[np.int64]) -> Tensor:
        return torch.tensor(array, device=self.device)


class Earlier(NamedTuple):
    """A graph with times up to its last training node, and up to its last validation node."""

    train: Task
    val: Task


def refuse_untimely(graph: Graph, recipe: Recipe) -> None:
    """Raise InputError for what would see the future of a graph with times."""
    if recipe.geometry != "none":
        raise InputError(
            f"a geometry places all nodes of {graph.name} in a plane, those of its future among "
            "them; leave the times out, or take another model"
        )
    if recipe.rule.noisy:
        raise InputError(
            f"monitor {recipe.monitor} validates by the training pass, which does not see the "
            f"validation nodes of {graph.name}, because they come later; choose another monitor"
        )


def learnt(
    graph: Graph, plan: Plan, scaling: Scaling | None, structure: Floats | None = None
) -> Scaling | None:
    """The scaling of X: the given one, else learnt on this graph, if the recipe asks for one.

    structure  the columns that are added to X, which are always standardised

    An error if the graph is a piece of one, or the plan's model would not use all that its edges
    have.
    """
    if isinstance(graph, Piece):
        raise UsageError(
            f"this process has a piece of {graph.name}, and the others the rest; start them "
            "together, with torchrun"
        )
    refuse_edges(graph, plan.model, plan.recipe)
    if scaling is None and (plan.recipe.scale != "none" or structure is not None):
        X, there = features_there(graph), present(graph)
        scaling = Scaling.learn(X, plan.recipe.scale, columns=graph.columns)
        if structure is not None:
            own = structure if there is None else structure[there]
            scaling = replace(scaling, structure=Scaling.learn(own, "standard"))
    return scaling


def make_adjacency(graph: Graph, plan: Plan, *, offline: bool = False) -> Adjacency:
    """Who gathers from whom, as the recipe says, in float64; `offline` as for `neighbourhood`."""
    recipe = plan.recipe
    if recipe.loops == "none" and (recipe.geometry, recipe.diffusion) != ("none", "none"):
        raise InputError(
            "a geometry or a diffusion lets nodes gather from themselves; with either of them, "
            "loops must be keep or remove, got none"
        )
    if recipe.geometry != "none":
        if recipe.diffusion != "none":
            raise InputError(
                "a geometry has neighbours of its own, which a diffusion cannot replace; choose one"
            )
        neighbourhood = data.neighbourhood(graph, recipe.geometry, offline=offline)
        return RelationalAdjacency.of_neighbours(neighbourhood, graph.n, recipe.norm)
    how = (recipe.direction, recipe.loops, recipe.edge_weights)
    if plan.types > 1:
        each = adjacency_of_types(graph, *how)
        return TypedAdjacency.of_types(each, recipe.norm, recipe.loops)
    A = adjacency(graph, *how)
    if recipe.diffusion != "none":
        names = ("teleport", "heat_time", "top_k", "threshold")
        A = diffuse(A, recipe.diffusion, **{name: getattr(recipe, name) for name in names})
    return Adjacency.of(A, recipe.norm, recipe.loops)


@dataclass(frozen=True, eq=False)
class LightTask:
    """What a Task is for a prediction of a large graph, on a CPU, in little memory.

    P̃ is without its transpose, X stays where it is and is scaled a block of rows at a time, and the
    model computes a block of rows at a time.
    """

    P: Sparse
    X: ScaledRows

    @classmethod
    def of(cls, graph: Graph, plan: Plan, scaling: Scaling | None) -> LightTask:
        """The graph as the plan's models take it."""
        recipe = plan.recipe
        how = (recipe.direction, recipe.loops, recipe.norm, recipe.dtype, recipe.edge_weights)
        P = fixed_matrix(graph, *how)
        hand_back(graph.edges)
        added = structure_columns(graph, plan.structure)
        return cls(P, ScaledRows(graph.X, scaling, recipe.dtype, added))

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @staticmethod
    def suits(plan: Plan) -> bool:
        """Whether the plan's models and its P̃ can be computed in this way."""
        recipe = plan.recipe
        plain = recipe.geometry == recipe.diffusion == "none" and plan.types == 1
        skeleton = issubclass(MODELS[plan.model], GCNIISkeleton)
        return skeleton and plain and can_be_fixed(recipe.loops, recipe.norm)


@dataclass(frozen=True, eq=False)
class ScaledRows(TakenByLinear):
    """X (n, d), of which a linear map reads and scales a block of rows at a time.

    added  the columns of the graph's structure, if there are any
    """

    X: Features
    scaling: Scaling | None
    dtype: torch.dtype
    added: Floats | None = None

    def mapped(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """What `linear` gives of it."""
        X = self.X
        out = torch.empty(X.shape[0], len(weight), dtype=self.dtype)
        height = block_height(*X.shape)
        for start in range(0, X.shape[0], height):
            rows = slice(start, start + height)
            added = None if self.added is None else self.added[rows]
            part = scaled_matrix(X[rows], self.scaling, self.dtype, added)
            out[rows] = linear(part, weight, bias)  # type: ignore[arg-type]
        hand_back(X)
        return out
