"""Many runs at once: the weights of r seeds, stacked, and one model that vmap runs over all of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.optim import Adam

from gcnii.dropout import epoch_key, keyed
from gcnii.propagation import Sparse
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
        self.adam = _adam(self.weights, self.recipe)
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

    def scores(self, P: Sparse, X: Tensor | Sparse, epoch: int | None = None) -> Tensor:
        """(r, n, k); with an epoch, in training mode with that epoch's dropout masks."""
        self.model.train(epoch is not None)

        def one(weights: Stack, key: Tensor) -> Tensor:
            with keyed(key):
                return functional_call(self.model, weights, (P, X))  # type: ignore[no-any-return]

        keys = epoch_key(self.seeds, epoch or 0)
        if len(keys) == 1:  # vmap over one replica costs half as much again as the model itself on a CPU
            return one({name: weight.squeeze(0) for name, weight in self.weights.items()}, keys[0])[None]
        return vmap(one)(self.weights, keys)

    def step(self, P: Sparse, X: Tensor | Sparse, objective: Objective, epoch: int) -> Tensor:
        """One step of Adam for every replica; its training loss (r,) before the step."""
        loss = objective.loss(self.scores(P, X, epoch), "train")
        loss.sum().backward()
        self.adam.step()
        self.adam.zero_grad()
        return loss.detach()

    def narrow(self, rows: Tensor, steps: int) -> None:
        """Go on with some of the replicas."""
        first, second = ({name: moment[rows] for name, moment in stack.items()} for stack in self.moments)
        self.seeds = self.seeds[rows]
        self.load({name: weight[rows] for name, weight in self.weights.items()}, (first, second), steps)


def _adam(weights: Stack, recipe: Recipe) -> Adam:
    """Adam with L2 added to the gradient (not AdamW), in the paper's two groups."""
    convs = [weight for name, weight in weights.items() if name.startswith("convs.")]
    dense = [weight for name, weight in weights.items() if not name.startswith("convs.")]
    groups = [
        {"params": convs, "weight_decay": recipe.decay_conv},
        {"params": dense, "weight_decay": recipe.decay_dense},
    ]
    return Adam([group for group in groups if group["params"]], lr=recipe.lr, fused=True)
