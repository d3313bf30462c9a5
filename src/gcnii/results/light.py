"""A large graph made ready for prediction alone, on a CPU, in little memory.

P̃ is without its transpose, X stays where it is and is scaled a block of rows at a time, and the
model computes a block of rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear

from gcnii.graph import Features, Graph
from gcnii.graph.arrays import hand_back
from gcnii.nn import MODELS
from gcnii.nn.engine.skeleton import GCNIISkeleton
from gcnii.propagation import Sparse
from gcnii.propagation.by_rows import block_height, can_be_fixed, fixed_matrix
from gcnii.propagation.sparse import TakenByLinear
from gcnii.train.features import Floats, Scaling, scaled_matrix, structure_columns
from gcnii.train.plan import Plan


@dataclass(frozen=True, eq=False)
class LightTask:
    """What a Task is for a prediction: P and X on the device."""

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


def suits(plan: Plan) -> bool:
    """Whether the plan's models and its P̃ can be computed in this way."""
    recipe = plan.recipe
    plain = recipe.geometry == recipe.diffusion == "none"
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
