"""A task: a plan on a graph, made ready on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcnii.batches import Batch, Batches, Full, Subgraphs
from gcnii.graph import Graph, GraphError
from gcnii.propagation import Links, Sparse, adjacency, diffuse, feature_matrix
from gcnii.train.plan import Plan
from gcnii.train.recipe import Recipe


@dataclass(frozen=True, eq=False)
class Task:
    """What all groups of a fit share: the plan, and the graph's links and X on the device."""

    graph: Graph
    plan: Plan
    device: torch.device
    links: Any  # Links, or what the plan's geometry makes of them
    X: Tensor | Sparse

    @classmethod
    def of(cls, graph: Graph, plan: Plan, device: torch.device) -> Task:
        """Make the links as the recipe says and move them and X to the device."""
        links = make_links(graph, plan.recipe).to(device, plan.recipe.dtype)
        return cls(graph, plan, device, links, feature_matrix(graph).to(device, plan.recipe.dtype))

    def batches(self, split: int) -> Batches:
        """What the steps of a run on this split see."""
        recipe = self.plan.recipe
        match recipe.batches:
            case "full":
                return Full(Batch(self.links, self.X))
            case "parts":
                if self.graph.part is None:
                    raise GraphError(
                        f"batches of parts need several graphs, but {self.graph.name} is one; use clusters"
                    )
                return Subgraphs(self.links, self.X, self._tensor(self.graph.part), recipe.batch_size)
            case "clusters" | "neighbours":
                raise NotImplementedError

    def _tensor(self, array: Any) -> Tensor:
        return torch.tensor(np.asarray(array), device=self.device)


def make_links(graph: Graph, recipe: Recipe) -> Any:
    """Who gathers from whom, as the recipe says, in float64."""
    A = adjacency(graph, recipe.direction, recipe.loops)
    if recipe.diffusion != "none":
        names = ("teleport", "heat_time", "top_k", "threshold")
        A = diffuse(A, recipe.diffusion, **{name: getattr(recipe, name) for name in names})
    return Links.of(A, recipe.norm)
