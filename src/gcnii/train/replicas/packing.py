"""Many weights packed in one tensor: a step of Adam is then one operation, not sixty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import torch
from torch import Tensor

Stack = dict[str, Tensor]  # a parameter's name → its r copies (r, …)
ALIGNED = 16  # numbers; products are slower on matrices that start at odd addresses


class Layout:
    """Where each weight is stored in the row (size,) of its group.

    shapes  of the weights, by name
    groups  for each group of Adam, the names of its weights, in order
    """

    def __init__(
        self, shapes: Mapping[str, Sequence[int]], groups: Mapping[str, tuple[float, float]]
    ):
        self.shapes = {name: tuple(shape) for name, shape in shapes.items()}
        self.sizes = {name: prod(shape) for name, shape in self.shapes.items()}
        self.groups: dict[tuple[float, float], list[str]] = {}
        # Those of odd sizes (biases of the last layer) come last, where they shift nobody else.
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
