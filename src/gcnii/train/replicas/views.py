"""Random views: each step may see a graph several times, and pull what it predicts together.

GRAND's training (Feng et al. 2020), for any model.  A view has dropout masks of its own, and leaves
out links and nodes of its own; while a step is computed, it is one more replica.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

import torch
from torch import Tensor

from gcnii.dropout import LEVELS, kept_of
from gcnii.nn.settings import Bounds, Choice, Range, Setting
from gcnii.targets.objective import Objective

if TYPE_CHECKING:
    from gcnii.train.recipe import Recipe

Kept = int | Tensor  # of LEVELS; (r,) where the replicas differ
Held = TypeVar("Held", Tensor, Kept)

NO_CONSISTENCY = ("consistency", (0.0,))
SHARPEST = 1e-6  # at which all but the most probable class are 0 in any precision


@dataclass(frozen=True, kw_only=True)
class ConsistencySettings:
    """How many views a step has, and how strongly they are pulled together (GRAND)."""

    views: Annotated[
        int,
        Setting(
            "random views of the graph in each step; the loss is their mean",
            Bounds(least=1),
            1,
            search=Choice((1, 2, 4)),
        ),
    ] = 1
    drop_node: Annotated[
        float,
        Setting(
            "share of nodes whose features are set to zero in each view (DropNode)",
            Bounds(least=0, below=1),
            0.0,
            search=Range(0.0, 0.6, 0.1),
        ),
    ] = 0.0
    consistency: Annotated[
        float,
        Setting(
            "weight of the distance of each view's probabilities, on all nodes, to the sharpened "
            "mean of the views (λ_c of GRAND)",
            Bounds(least=0),
            0.0,
            search=Range(0.0, 1.6, 0.1),
        ),
    ] = 0.0
    sharpen: Annotated[
        float,
        Setting(
            "temperature by which that mean is sharpened; 1: not at all",
            Bounds(above=0, most=1),
            unused_when=NO_CONSISTENCY,
            search=Range(0.1, 0.6, 0.1),
        ),
    ] = 0.5
    warm_up: Annotated[
        int,
        Setting(
            "epochs over which the weight of consistency grows from 0",
            Bounds(least=0),
            unused_when=NO_CONSISTENCY,
            search=Range(0, 300, 50),
        ),
    ] = 0


class Views:
    """The views of r replicas.

    count  S, of each replica
    links  how many DropEdge keeps
    nodes  how many DropNode keeps
    """

    def __init__(self, recipes: Sequence[Recipe], device: torch.device):
        self.count = recipes[0].views
        self.links = _share([kept_of(recipe.drop_edge) for recipe in recipes], device)
        self.nodes = _share([_nodes_kept(recipe.drop_node) for recipe in recipes], device)
        self.pulls = any(recipe.consistency for recipe in recipes)

        def each(numbers: list[float]) -> Tensor:
            return torch.tensor(numbers, dtype=torch.float64, device=device)

        self.weight = each([recipe.consistency for recipe in recipes])
        self.warm_up = each([recipe.warm_up for recipe in recipes])
        sharpen = each([max(recipe.sharpen, SHARPEST) for recipe in recipes])
        self.sharpen = sharpen.to(recipes[0].dtype)

    def split(self, scores: Tensor) -> tuple[Tensor, ...]:
        """(r · S, n, k) → S times (r, n, k)."""
        return (scores,) if self.count == 1 else scores.unflatten(0, (-1, self.count)).unbind(1)

    def loss(self, objective: Objective, scores: Sequence[Tensor]) -> Tensor:
        """The training loss (r,): the mean over the views."""
        losses = [objective.loss(view, "train") for view in scores]
        return losses[0] if len(losses) == 1 else torch.stack(losses).mean(0)

    def pull(
        self, objective: Objective, scores: Sequence[Tensor], epoch: Tensor | int
    ) -> Tensor | None:
        """λ_c, as far as it has grown, times the disagreement of the views: (r,); None without."""
        if not self.pulls:
            return None
        from gcnii.targets.objective import disagreement  # few trainings need it

        each = disagreement(
            torch.stack(list(scores), 1), self.sharpen, multilabel=objective.y.ndim == 2
        )
        return self._weight(epoch).to(each.dtype) * objective.overall(each)

    def _weight(self, epoch: Tensor | int) -> Tensor:
        """λ_c · min(1, epoch / warm_up), (r,); λ_c where there is no warm-up."""
        begun = epoch.flatten() if isinstance(epoch, Tensor) else epoch
        left = (self.warm_up - begun).clamp(min=0) / self.warm_up.clamp(min=1)
        return self.weight * (1 - left)


def repeated(each: Sequence[Held], views: int) -> list[Held]:
    """For each view what its replica has: (r, …) → (r · views, …); what all share, as it is."""

    def every(one: Tensor) -> Tensor:
        return one[:, None].expand(-1, views, *one.shape[1:]).flatten(0, 1)

    return [one if views == 1 or isinstance(one, int) else every(one) for one in each]


def _nodes_kept(rate: float) -> int:
    """Of LEVELS: all if nothing is dropped, and else neither all nor none."""
    return min(max(kept_of(rate), 1), LEVELS - 1) if rate else LEVELS


def _share(kept: Sequence[int], device: torch.device) -> Kept:
    """One number where the replicas agree, else (r,)."""
    return kept[0] if len(set(kept)) == 1 else torch.tensor(kept, dtype=torch.int32, device=device)
