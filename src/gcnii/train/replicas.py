"""Many runs at once: the weights of r seeds, stacked, and one model that vmap runs over them.

Each step may see several random views of the graph, and pull their predictions together: GRAND's
training (Feng et al. 2020), for any model.  A view has dropout masks of its own, and leaves out
links and nodes of its own; while a step is computed, it is one more replica.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from gcnii.dropout import LEVELS, drop_edges, drop_nodes, epoch_key, kept_of, keyed, view_keys
from gcnii.nn import Model
from gcnii.nn.model import numbers_of, set_numbers
from gcnii.targets import as_labels
from gcnii.targets.objective import Objective
from gcnii.train.adam import MOMENTS, Adam, Group, Stack, WeightLayout
from gcnii.train.batches import Batch
from gcnii.train.plan import Plan

if TYPE_CHECKING:
    from gcnii.train.recipe import Recipe


class Replicas:
    """r models of one shape, each with its own seed's weights and dropout masks.

    The replicas' plans may differ in numeric settings only: see `plan.batch_key`.

    Weights, Adam's moments and the best weights only change in place: a captured epoch holds their
    addresses.
    """

    def __init__(
        self, plans: Sequence[Plan], d: int, k: int, seeds: Sequence[int], device: torch.device
    ):
        models = [plan.build(d, k, seed) for plan, seed in zip(plans, seeds, strict=True)]
        self.model, self.recipe, self.sizes = models[0], plans[0].recipe, (d, k)
        self.seeds = torch.tensor(list(seeds), dtype=torch.int64, device=device)
        self.own_numbers = [numbers_of(model) for model in models]
        self.recipes = [plan.recipe for plan in plans]
        each = [dict(model.named_parameters()) for model in models]
        kinds = {name: _kind(name, self.model) for name in each[0]}
        self.layout = WeightLayout({name: weight.shape for name, weight in each[0].items()}, kinds)
        stack = {name: torch.stack([own[name].detach() for own in each]) for name in each[0]}
        flats = [flat.to(device) for flat in self.layout.pack(stack)]
        self._set_weights(flats, [flat.clone() for flat in flats])

    def _set_weights(
        self,
        flats: list[Tensor],
        best: list[Tensor],
        moments: Sequence[list[Tensor]] = (),
        steps: Sequence[int] = (),
    ) -> None:
        """Continue from these weights, and Adam's moments after these numbers of steps."""
        self.flats, self.best_flats = [flat.detach().requires_grad_() for flat in flats], best
        self.idle_keys = epoch_key(self.seeds, 0)  # for passes that drop nothing
        differing = set_numbers(self.model, self.own_numbers, self.recipe.dtype)
        self.numbers = {name: one.to(self.seeds.device) for name, one in differing.items()}
        self.views = Views(self.recipes, self.seeds.device)
        groups = [Group.of(*kind, self.recipes) for kind in self.layout.groups]
        self.adam = Adam(self.flats, groups, moments, list(steps) or [0] * len(self.seeds))

    @property
    def weights(self) -> Stack:
        """Views of the current weights."""
        return self.layout.named([flat.detach() for flat in self.flats])

    @property
    def best(self) -> Stack:
        """Views of the replicas' weights at their best epochs."""
        return self.layout.named(self.best_flats)

    @property
    def moments(self) -> dict[str, Stack]:
        """Views of Adam's moments, by name."""
        named = map(self.layout.named, self.adam.moments)
        return dict(zip(MOMENTS, named, strict=True))

    def load(
        self, weights: Stack, best: Stack, moments: Sequence[Stack], steps: Sequence[int]
    ) -> None:
        """Continue from these weights, and Adam's moments after these numbers of steps."""
        pack = self.layout.pack
        self._set_weights(pack(weights), pack(best), [pack(moment) for moment in moments], steps)

    def narrow(self, rows: Tensor) -> None:
        """Continue with some of the replicas."""
        steps, which = self.adam.steps, rows.tolist()
        self.seeds, self.own_numbers = self.seeds[rows], [self.own_numbers[i] for i in which]
        self.recipes = [self.recipes[i] for i in which]
        flats, best, *moments = (
            [flat[rows] for flat in each]
            for each in (self.flats, self.best_flats, *self.adam.moments)
        )
        self._set_weights(flats, best, moments, [steps[i] for i in which])

    def join(self, plans: Sequence[Plan], seeds: Sequence[int]) -> None:
        """Add replicas that begin now."""
        others = Replicas(plans, *self.sizes, seeds, self.seeds.device)
        fresh = [torch.zeros_like(flat) for flat in others.flats]
        moments = [_joined(moment, fresh) for moment in self.adam.moments]
        steps = self.adam.steps + [0] * len(seeds)
        self.seeds = torch.cat([self.seeds, others.seeds])
        self.own_numbers += others.own_numbers
        self.recipes += others.recipes
        flats = _joined(self.flats, others.flats)
        self._set_weights(flats, _joined(self.best_flats, others.best_flats), moments, steps)

    def scores(
        self, batch: Batch, epoch: Tensor | int | None = None, step: Tensor | int = 0
    ) -> Tensor:
        """(r, n, k); with an epoch, in training mode with the masks of that epoch and step.

        In training mode each replica has S views, one below the other: (r · S, n, k).
        """
        training = epoch is not None
        views = self.views.count if training else 1
        self.model.train(training)
        adjacency = batch.adjacency if training and self.recipe.drop_edge else None

        def one(weights: Stack, key: Tensor, numbers: Stack, links: Kept, nodes: Kept) -> Tensor:
            with keyed(key, rows=batch.P.at(0).row_numbers):
                form = self.recipe.drop_form
                P = batch.P if adjacency is None else drop_edges(adjacency, links, form)
                X = drop_nodes(batch.X, nodes) if training else batch.X
                return functional_call(self.model, weights | numbers, (P, X))  # type: ignore[no-any-return]

        keys = self.idle_keys if epoch is None else epoch_key(self.seeds, epoch, step)
        keys, kept = view_keys(keys, views), (self.views.links, self.views.nodes)
        # vmap over one replica costs half as much again as the model itself on a CPU
        if len(keys) == 1:
            # `flat[0]` would have a gradient of its own: a tensor of zeros, and a copy into it.
            weights = self.layout.named([flat.squeeze(0) for flat in self.flats])
            single = [share if isinstance(share, int) else share[0] for share in kept]
            numbers = {name: each[0] for name, each in self.numbers.items()}
            return one(weights, keys[0], numbers, *single)[None]
        weights = self.layout.named(repeated(self.flats, views))
        differs = [None if isinstance(share, int) else 0 for share in kept]
        every = vmap(one, (0, 0, 0, *differs))
        numbers = dict(zip(self.numbers, repeated(list(self.numbers.values()), views), strict=True))
        return every(weights, keys, numbers, *repeated(kept, views))

    def differentiate(
        self, batch: Batch, objective: Objective, epoch: Tensor | int, step: Tensor | int = 0
    ) -> tuple[Tensor, Tensor]:
        """Find the gradients; the scores (r, n, k), and the training losses (r,).

        The scores are those of the first view, the losses means over the views, without what pulls
        the views together.
        """
        scores = self.views.split(self.scores(batch, epoch, step))
        loss = self.views.loss(objective, scores)
        pull = self.views.pull(objective, scores, epoch)
        total = loss if pull is None else loss + pull
        gradients = torch.autograd.grad(total, self.flats, torch.ones_like(total))
        for flat, gradient in zip(self.flats, gradients, strict=True):
            flat.grad = objective.total(gradient)  # of all processes, if there are several
        return scores[0].detach(), loss.detach()

    @torch.no_grad()
    def descend(self, scales: Tensor | None = None) -> None:
        """A step of Adam along the gradients.

        scales  (r,) by which each replica's learning rate is multiplied
        """
        if self.recipe.clip:
            for flat in self.flats:
                assert flat.grad is not None
                flat.grad.clamp_(-self.recipe.clip, self.recipe.clip)
        self.adam.step(scales)

    @torch.no_grad()
    def keep(self, which: Tensor) -> None:
        """Take the current weights of these replicas (r,) as their best."""
        for best, flat in zip(self.best_flats, self.flats, strict=True):
            torch.where(which[:, None], flat, best, out=best)


def _kind(name: str, model: Model) -> tuple[str, float]:
    """Which decay a weight has, and the factor by which the model's card shortens its steps."""
    decay = "decay_conv" if name.startswith("convs.") else "decay_dense"
    factors = (one for part, one in model.card.step_sizes.items() if part in name.split("."))
    return decay, next(factors, 1.0)


def _joined(some: Sequence[Tensor], more: Sequence[Tensor]) -> list[Tensor]:
    """Replicas and more replicas of each of these."""
    pairs = zip(some, more, strict=True)
    return [torch.cat([one.detach(), other.detach()]) for one, other in pairs]


Kept = int | Tensor  # of LEVELS; (r,) where the replicas differ
Held = TypeVar("Held", Tensor, Kept)

SHARPEST = 1e-6  # at which all but the most probable class are 0 in any precision


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

        target = as_labels(objective.target, "consistency is")
        each = target.disagreement(torch.stack(list(scores), 1), self.sharpen)
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
