"""Adam for replicas, on weights packed in one tensor: a step is one operation, not sixty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from gcnii import kernels
from gcnii.train.hardware import is_gpu
from gcnii.train.recipe import Recipe

MOMENTS = ("first", "second")  # the names of Adam's moments in a checkpoint
Moments = Sequence[Tensor]  # the two of a group of weights
Stack = dict[str, Tensor]  # a parameter's name → its r copies (r, …)
BETAS, EPS = (0.9, 0.999), 1e-8  # torch's own defaults
ALIGNED = 16  # numbers; products are slower on matrices that start at odd addresses


class WeightLayout:
    """Where each weight is stored in the row (size,) of its group.

    shapes  of the weights, by name
    groups  for each group of Adam, of one decay and factor, the names of its weights, in order
    """

    def __init__(
        self, shapes: Mapping[str, Sequence[int]], groups: Mapping[str, tuple[str, float]]
    ):
        self.shapes = {name: tuple(shape) for name, shape in shapes.items()}
        self.sizes = {name: prod(shape) for name, shape in self.shapes.items()}
        self.groups: dict[tuple[str, float], list[str]] = {}
        # Those of odd sizes (biases of the last layer) come last, where they shift no other weight.
        for name in sorted(self.shapes, key=lambda name: self.sizes[name] % ALIGNED > 0):
            self.groups.setdefault(groups[name], []).append(name)

    def pack(self, stack: Stack) -> list[Tensor]:
        """A new tensor (r, size) for each group; zeros that pad a row stay zeros under Adam."""
        groups = self.groups.values()
        return [self._row([stack[name].flatten(1) for name in names]) for names in groups]

    def _row(self, weights: list[Tensor]) -> Tensor:
        filled = sum(weight.shape[1] for weight in weights)
        return torch.cat([*weights, weights[0].new_zeros(len(weights[0]), -filled % ALIGNED)], 1)

    def named(self, flats: Sequence[Tensor]) -> Stack:
        """The weights (…, *shape) as views of tensors (…, size), one of each group."""
        views = {}
        for flat, names in zip(flats, self.groups.values(), strict=True):
            sizes = [self.sizes[name] for name in names]
            # One split, whose gradient is one concatenation; a slice for each weight would be sixty
            # additions.
            pieces = flat.split([*sizes, flat.shape[-1] - sum(sizes)], -1)
            for name, piece in zip(names, pieces, strict=False):
                views[name] = piece.view(*flat.shape[:-1], *self.shapes[name])
        return {name: views[name] for name in self.shapes}


class Group(NamedTuple):
    """The decay and the learning rate of a group of weights, one number for each replica."""

    decay: tuple[float, ...]
    lr: tuple[float, ...]

    @classmethod
    def of(cls, decay: str, factor: float, recipes: Sequence[Recipe]) -> Group:
        """The decay of this name, and the learning rate times the factor, of replicas' recipes."""
        decays = (getattr(recipe, decay) for recipe in recipes)
        return cls(tuple(decays), tuple(recipe.lr * factor for recipe in recipes))

    @property
    def alike(self) -> bool:
        """Whether all replicas agree in both numbers."""
        return len(set(self.decay)) == len(set(self.lr)) == 1


class FusedAdam:
    """torch's fused Adam on a CPU, for replicas of one learning rate, decay and number of steps.

    moments  the running means of the gradient and of its square, from which to go on; or none
    """

    def __init__(
        self,
        flats: Sequence[Tensor],
        groups: Sequence[Group],
        moments: Sequence[list[Tensor]],
        steps: Sequence[int],
    ):
        # L2 is added to the gradient (not AdamW), in the paper's two groups.
        parameters = [
            {"params": [flat], "weight_decay": group.decay[0], "lr": group.lr[0]}
            for flat, group in zip(flats, groups, strict=True)
        ]
        self.flats, self.replicas = flats, len(steps)
        self.adam = torch.optim.Adam(parameters, fused=True)
        for flat, first, second in zip(flats, *moments, strict=True) if moments else ():
            step = torch.tensor(float(steps[0]), device=flat.device)
            self.adam.state[flat] = {"step": step, "exp_avg": first, "exp_avg_sq": second}

    @property
    def moments(self) -> tuple[list[Tensor], list[Tensor]]:
        """The two moments of each group of weights, in the order of MOMENTS."""
        states = [self.adam.state[flat] for flat in self.flats]
        return [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states]

    @property
    def steps(self) -> list[int]:
        """The number of steps so far, of each replica."""
        return [int(self.adam.state[self.flats[0]]["step"])] * self.replicas

    def step(self, scales: Tensor | None) -> None:
        """Descend along the gradients; the learning rates are multiplied by scales (r,)."""
        before = [flat.clone() for flat in self.flats] if scales is not None else []
        self.adam.step()
        self.adam.zero_grad()
        for flat, old in zip(self.flats, before, strict=False):
            # Adam's step is proportional to the learning rate: a smaller one goes part of the way.
            flat.copy_(torch.lerp(old, flat, scales.to(flat)[:, None]))  # type: ignore[union-attr]


class MixedAdam:
    """Adam as torch computes it, with a learning rate and a decay for each replica (r, size).

    Torch's fused Adam has one learning rate and one decay for a whole tensor, and on a GPU it gives
    four programs to what a hundred could do.

    taken  (r, 1) float64, the number of steps so far
    """

    def __init__(
        self,
        flats: Sequence[Tensor],
        groups: Sequence[Group],
        moments: Sequence[list[Tensor]],
        steps: Sequence[int],
    ):
        def column(numbers: Sequence[float]) -> Tensor:
            return torch.tensor(numbers, dtype=torch.float64, device=flats[0].device)[:, None]

        self.flats, self.taken = list(flats), column(steps)
        self.decays = [column(group.decay).to(flats[0].dtype) for group in groups]
        self.sizes = [column(group.lr) for group in groups]
        self.first, self.second = moments or (
            [torch.zeros_like(flat) for flat in flats],
            [torch.zeros_like(flat) for flat in flats],
        )

    @property
    def moments(self) -> tuple[list[Tensor], list[Tensor]]:
        """The two moments of each group of weights, in the order of MOMENTS."""
        return self.first, self.second

    @property
    def steps(self) -> list[int]:
        """The number of steps so far, of each replica."""
        return [int(steps) for steps in self.taken[:, 0].tolist()]

    def step(self, scales: Tensor | None) -> None:
        """Descend along the gradients; the learning rates are multiplied by scales (r,)."""
        self.taken.add_(1)
        groups = (self.flats, self.decays, self.sizes, self.first, self.second)
        for flat, decay, size, *moments in zip(*groups, strict=True):
            assert flat.grad is not None
            lr = size if scales is None else size * scales[:, None]
            if kernels.usable(flat):
                from gcnii.kernels.adam import adam

                adam(flat, flat.grad, moments, decay, lr, self.taken, BETAS, EPS)
            else:
                self._descend(flat, flat.grad, moments, decay, lr)
            flat.grad = None

    def _descend(
        self, flat: Tensor, gradient: Tensor, moments: Moments, decay: Tensor, lr: Tensor
    ) -> None:
        slow, fast = (1 - beta**self.taken for beta in BETAS)
        first, second = moments
        gradient = torch.addcmul(gradient, flat, decay)
        first.lerp_(gradient, 1 - BETAS[0])
        second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        below = torch.sqrt(second, out=gradient).div_(fast.sqrt().to(flat.dtype)).add_(EPS)
        flat.addcmul_(torch.div(first, below, out=below), -(lr / slow).to(flat.dtype))


def make_adam(
    flats: Sequence[Tensor],
    groups: Sequence[Group],
    moments: Sequence[list[Tensor]],
    steps: Sequence[int],
) -> FusedAdam | MixedAdam:
    """The optimiser of replicas (r, size): torch's own on a CPU where they agree in all numbers."""
    agree = all(group.alike for group in groups) and len(set(steps)) == 1
    own = agree and not is_gpu(flats[0].device)
    return (FusedAdam if own else MixedAdam)(flats, groups, moments, steps)
