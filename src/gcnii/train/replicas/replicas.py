"""Many runs at once: the weights of r seeds, stacked, and one model that vmap runs over them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.optim import Adam

from gcnii.dropout import drop_edges, epoch_key, keyed
from gcnii.metrics.objective import Objective
from gcnii.nn import Model
from gcnii.train.batches import Batch
from gcnii.train.plan import Plan
from gcnii.train.recipe import Recipe
from gcnii.train.replicas.packing import Layout, Stack


class Replicas:
    """r models of one plan, each with its own seed's weights and dropout masks.

    Weights, Adam's moments and the best weights only change in place: a captured epoch holds their
    addresses.
    """

    def __init__(self, plan: Plan, d: int, k: int, seeds: Sequence[int], device: torch.device):
        models = [plan.build(d, k, seed) for seed in seeds]
        self.model, self.recipe = models[0], plan.recipe
        self.seeds = torch.tensor(list(seeds), dtype=torch.int64, device=device)
        each = [dict(model.named_parameters()) for model in models]
        groups = {name: _group(name, self.model, self.recipe) for name in each[0]}
        self.layout = Layout({name: weight.shape for name, weight in each[0].items()}, groups)
        stack = {name: torch.stack([own[name].detach() for own in each]) for name in each[0]}
        flats = [flat.to(device) for flat in self.layout.pack(stack)]
        self._hold(flats, [flat.clone() for flat in flats])

    def _hold(
        self,
        flats: list[Tensor],
        best: list[Tensor],
        moments: Sequence[list[Tensor]] = (),
        steps: int = 0,
    ) -> None:
        self.flats, self.best_flats = [flat.detach().requires_grad_() for flat in flats], best
        # L2 is added to the gradient (not AdamW), in the paper's two groups.
        groups = [
            {"params": [flat], "weight_decay": decay, "lr": lr}
            for flat, (decay, lr) in zip(self.flats, self.layout.groups, strict=True)
        ]
        capturable = self.seeds.device.type == "cuda"
        self.adam = Adam(groups, lr=self.recipe.lr, fused=True, capturable=capturable)
        for flat, first, second in zip(self.flats, *moments, strict=True) if moments else ():
            step = torch.tensor(float(steps), device=flat.device)
            self.adam.state[flat] = {"step": step, "exp_avg": first, "exp_avg_sq": second}
        self.idle_keys = epoch_key(self.seeds, 0)  # for passes that drop nothing

    @property
    def weights(self) -> Stack:
        """Views of the current weights."""
        return self.layout.named([flat.detach() for flat in self.flats])

    @property
    def best(self) -> Stack:
        """Views of the replicas' weights at their best epochs."""
        return self.layout.named(self.best_flats)

    @property
    def moments(self) -> tuple[Stack, Stack]:
        """Views of Adam's running means of the gradient and of its square."""
        first, second = self._moments
        return self.layout.named(first), self.layout.named(second)

    @property
    def _moments(self) -> tuple[list[Tensor], list[Tensor]]:
        states = [self.adam.state[flat] for flat in self.flats]
        return [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states]

    @property
    def steps(self) -> int:
        """The number of Adam's steps so far."""
        return int(self.adam.state[self.flats[0]]["step"])

    def load(self, weights: Stack, best: Stack, moments: tuple[Stack, Stack], steps: int) -> None:
        """Go on from these weights, and Adam's two moments after this number of steps."""
        pack = self.layout.pack
        self._hold(pack(weights), pack(best), [pack(moment) for moment in moments], steps)

    def narrow(self, rows: Tensor) -> None:
        """Go on with some of the replicas."""
        self.seeds = self.seeds[rows]
        first, second = ([moment[rows] for moment in flats] for flats in self._moments)
        flats, best = ([flat[rows] for flat in flats] for flats in (self.flats, self.best_flats))
        self._hold(flats, best, (first, second), self.steps)

    def scores(
        self, batch: Batch, epoch: Tensor | int | None = None, step: Tensor | int = 0
    ) -> Tensor:
        """(r, n, k); with an epoch, in training mode with the masks of that epoch and step."""
        training = epoch is not None
        self.model.train(training)
        rate, form = self.recipe.drop_edge, self.recipe.drop_form
        adjacency = batch.adjacency if training and rate else None

        def one(weights: Stack, key: Tensor) -> Tensor:
            with keyed(key):
                P = batch.P if adjacency is None else drop_edges(adjacency, rate, form)
                return functional_call(self.model, weights, (P, batch.X))  # type: ignore[no-any-return]

        keys = self.idle_keys if epoch is None else epoch_key(self.seeds, epoch, step)
        # vmap over one replica costs half as much again as the model itself on a CPU
        if len(keys) == 1:
            return one(self.layout.named([flat[0] for flat in self.flats]), keys[0])[None]
        return vmap(one)(self.layout.named(self.flats), keys)

    def step(
        self,
        batch: Batch,
        objective: Objective,
        epoch: Tensor | int,
        step: Tensor | int = 0,
        scales: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """One step of Adam; the scores (r, n, k) before it, and the training losses (r,).

        scales  (r,) by which each replica's step size is multiplied
        """
        scores = self.scores(batch, epoch, step)
        loss = objective.loss(scores, "train")
        gradients = torch.autograd.grad(loss.sum(), self.flats)
        for flat, gradient in zip(self.flats, gradients, strict=True):
            flat.grad = gradient
        self._descend(scales)
        return scores.detach(), loss.detach()

    @torch.no_grad()
    def _descend(self, scales: Tensor | None) -> None:
        if self.recipe.clip:
            torch.nn.utils.clip_grad_value_(self.flats, self.recipe.clip)
        before = [flat.clone() for flat in self.flats] if scales is not None else []
        self.adam.step()
        self.adam.zero_grad()
        for flat, old in zip(self.flats, before, strict=False):
            # Adam's step is proportional to its step size, so a shorter one goes part of the way.
            flat.copy_(torch.lerp(old, flat, scales.to(flat)[:, None]))  # type: ignore[union-attr]

    @torch.no_grad()
    def keep(self, which: Tensor) -> None:
        """Take the current weights of these replicas (r,) as their best."""
        for best, flat in zip(self.best_flats, self.flats, strict=True):
            torch.where(which[:, None], flat, best, out=best)


def _group(name: str, model: Model, recipe: Recipe) -> tuple[float, float]:
    """Decay and step size of a weight; a model's card may shorten the step."""
    decay = recipe.decay_conv if name.startswith("convs.") else recipe.decay_dense
    factors = (one for part, one in model.card.step_sizes.items() if part in name.split("."))
    return decay, recipe.lr * next(factors, 1.0)
