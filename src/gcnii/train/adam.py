"""Adam for replicas, on weights packed in one tensor: a step is one operation, not sixty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim.adam import adam as torch_adam

from gcnii import kernels
from gcnii.train.recipe import Recipe

MOMENTS = ("first", "second")  # the names of Adam's moments in a checkpoint
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
            padding = flat.shape[-1] - sum(sizes)
            # Without an empty piece, whose gradient would make a GPU's concatenation seven times as
            # long.
            pieces = flat.split([*sizes, padding] if padding else sizes, -1)
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


class Adam:
    """Adam for replicas (r, size), each with a learning rate, a decay and a number of steps.

    flats    the weights of each group
    taken    (r, 1) float64, the number of steps so far
    first, second  each group's moments: running means of the gradient and of its square
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

        self.flats, self.groups, self.taken = list(flats), groups, column(steps)
        self.decays = [column(group.decay).to(flats[0].dtype) for group in groups]
        self.sizes = [column(group.lr) for group in groups]
        zeros = ([torch.zeros_like(flat) for flat in flats] for _ in MOMENTS)
        self.first, self.second = moments or zeros
        self.agree = all(group.alike for group in groups) and len(set(steps)) == 1
        # as torch's own takes them
        self.counts = [torch.tensor(float(steps[0]), device=flat.device) for flat in flats]

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
        for i, flat in enumerate(self.flats):
            # Torch's own takes one learning rate for a whole tensor, and on a GPU it gives four
            # programs to what a hundred could do.
            if kernels.usable(flat):
                self._on_gpu(i, scales)
            elif self.agree:
                self._by_torch(i, scales)
            else:
                self._each(i, scales)
            flat.grad = None

    def _on_gpu(self, i: int, scales: Tensor | None) -> None:
        from gcnii.kernels.adam import adam

        flat, moments = self.flats[i], (self.first[i], self.second[i])
        assert flat.grad is not None
        lr = self._lr(i, scales)
        adam(flat, flat.grad, moments, self.decays[i], lr, self.taken, BETAS, EPS)

    def _by_torch(self, i: int, scales: Tensor | None) -> None:
        flat, group, gradient = self.flats[i], self.groups[i], self.flats[i].grad
        assert gradient is not None
        before = None if scales is None else flat.clone()
        # The class of the same name imports torch's compiler, which takes a second.
        torch_adam(
            [flat],
            [gradient],
            [self.first[i]],
            [self.second[i]],
            [],
            [self.counts[i]],
            fused=True,
            amsgrad=False,
            maximize=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            eps=EPS,
            lr=group.lr[0],
            weight_decay=group.decay[0],  # L2 in the gradient, not AdamW
        )
        if before is not None and scales is not None:
            # The step is proportional to the learning rate: a smaller one goes part of the way.
            flat.copy_(torch.lerp(before, flat, scales.to(flat)[:, None]))

    def _each(self, i: int, scales: Tensor | None) -> None:
        flat, first, second = self.flats[i], self.first[i], self.second[i]
        assert flat.grad is not None
        slow, fast = (1 - beta**self.taken for beta in BETAS)
        gradient = torch.addcmul(flat.grad, flat, self.decays[i])
        first.lerp_(gradient, 1 - BETAS[0])
        second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        below = torch.sqrt(second, out=gradient).div_(fast.sqrt().to(flat.dtype)).add_(EPS)
        length = self._lr(i, scales) / slow
        flat.addcmul_(torch.div(first, below, out=below), -length.to(flat.dtype))

    def _lr(self, i: int, scales: Tensor | None) -> Tensor:
        """(r, 1) each replica's learning rate."""
        return self.sizes[i] if scales is None else self.sizes[i] * scales[:, None]
