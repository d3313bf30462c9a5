"""Many runs at once: the weights of r seeds, stacked, and one model that vmap runs over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.optim import Adam

from gcnii.batches import Batch
from gcnii.dropedge import drop_edges
from gcnii.dropout import epoch_key, keyed
from gcnii.train.objective import Objective
from gcnii.train.plan import Plan
from gcnii.train.recipe import Recipe

Stack = dict[str, Tensor]  # a parameter's name → its r copies (r, …)


class Replicas:
    """r models of one plan, each with the weights and the dropout masks of its own seed; none knows of the others."""

    def __init__(self, plan: Plan, d: int, k: int, seeds: Sequence[int], device: torch.device):
        models = [plan.build(d, k, seed) for seed in seeds]
        self.model, self.recipe = models[0], plan.recipe
        self.seeds = torch.tensor(list(seeds), dtype=torch.int64, device=device)
        each = [dict(model.named_parameters()) for model in models]
        self.load({name: torch.stack([own[name].detach() for own in each]).to(device) for name in each[0]})

    def load(self, weights: Stack, moments: tuple[Stack, Stack] | None = None, steps: int = 0) -> None:
        """Take these weights and, to go on with a training, Adam's two moments after so many steps."""
        self.weights = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
        self.adam = _adam(self.weights, self.recipe, self.model.about.step_sizes)
        self.steps = steps
        for name, weight in self.weights.items() if moments else ():
            first, second = (moment[name] for moment in moments or ())
            step = torch.tensor(float(steps), device=weight.device)
            self.adam.state[weight] = {"step": step, "exp_avg": first, "exp_avg_sq": second}

    @property
    def moments(self) -> tuple[Stack, Stack]:
        """Adam's running means of the gradient and of its square."""
        states = {name: self.adam.state[weight] for name, weight in self.weights.items()}
        first = {name: state["exp_avg"] for name, state in states.items()}
        return first, {name: state["exp_avg_sq"] for name, state in states.items()}

    def scores(self, batch: Batch, epoch: int | None = None, step: int = 0) -> Tensor:
        """(r, n, k); with an epoch, in training mode with the masks of that epoch and of that step in it."""
        training = epoch is not None
        self.model.train(training)
        rate, form = self.recipe.drop_edge, self.recipe.drop_form

        def one(weights: Stack, key: Tensor) -> Tensor:
            with keyed(key):
                P = drop_edges(batch.links, rate, form) if training else batch.links.whole
                return functional_call(self.model, weights, (P, batch.X))  # type: ignore[no-any-return]

        keys = epoch_key(self.seeds, epoch or 0, step)
        if len(keys) == 1:  # vmap over one replica costs half as much again as the model itself on a CPU
            return one({name: weight.squeeze(0) for name, weight in self.weights.items()}, keys[0])[None]
        return vmap(one)(self.weights, keys)

    def step(
        self, batch: Batch, objective: Objective, epoch: int, step: int = 0, scales: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """One step of Adam for every replica; the scores (r, n, k) before it, and the training loss (r,).

        scales  (r,) by which each replica's step size is multiplied
        """
        scores = self.scores(batch, epoch, step)
        loss = objective.loss(scores, "train")
        loss.sum().backward()
        self._descend(scales)
        return scores.detach(), loss.detach()

    def _descend(self, scales: Tensor | None) -> None:
        weights = list(self.weights.values())
        if self.recipe.clip:
            torch.nn.utils.clip_grad_value_(weights, self.recipe.clip)
        before = [weight.detach().clone() for weight in weights] if scales is not None else []
        self.adam.step()
        self.adam.zero_grad()
        self.steps += 1
        for weight, old in zip(weights, before, strict=False):
            # A step of Adam is proportional to its step size, so a shorter one is a part of the way.
            weight.data = torch.lerp(old, weight.detach(), scales.view(-1, *[1] * (old.ndim - 1)))  # type: ignore[union-attr]

    def narrow(self, rows: Tensor) -> None:
        """Go on with some of the replicas."""
        first, second = ({name: moment[rows] for name, moment in stack.items()} for stack in self.moments)
        self.seeds = self.seeds[rows]
        self.load({name: weight[rows] for name, weight in self.weights.items()}, (first, second), self.steps)


def _adam(weights: Stack, recipe: Recipe, step_sizes: Mapping[str, float]) -> Adam:
    """Adam with L2 added to the gradient (not AdamW), in the paper's two groups; some weights may step shorter."""
    groups: dict[tuple[float, float], list[Tensor]] = {}
    for name, weight in weights.items():
        decay = recipe.decay_conv if name.startswith("convs.") else recipe.decay_dense
        factor = next((factor for part, factor in step_sizes.items() if part in name.split(".")), 1.0)
        groups.setdefault((decay, recipe.lr * factor), []).append(weight)
    named = [{"params": group, "weight_decay": decay, "lr": lr} for (decay, lr), group in groups.items()]
    return Adam(named, lr=recipe.lr, fused=True)
