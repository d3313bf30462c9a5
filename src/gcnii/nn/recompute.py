"""Rematerialisation: forget the activations of a part of a network, and compute them again when
backward needs them.

The second pass gives the same bits as the first, because a dropout mask is a hash and not a stream
of random numbers: a function that drops takes its key as an input and runs its dropouts under
`keyed(key)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def recompute(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """function(*inputs), of which backward keeps the inputs alone.

    Gradients reach the inputs, so every weight must be one; what `function` holds beside them must
    need no gradient and be the same for all replicas.
    """
    return Recompute.apply(function, *inputs)  # type: ignore[no-any-return, no-untyped-call]


class Recompute(torch.autograd.Function):
    """A function of tensors that runs once more in backward.  Under vmap, it is that of the
    function under vmap.
    """

    @staticmethod
    def forward(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """Run it; torch records nothing within."""
        return function(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep what it takes to run it again."""
        ctx.function, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, ...]:
        """Run it again, this time recorded, and go back through it."""
        needed = ctx.needs_input_grad[1:]
        inputs = [
            tensor.detach().requires_grad_(need)
            for tensor, need in zip(ctx.saved_tensors, needed, strict=True)
        ]
        with torch.enable_grad():
            output = ctx.function(*inputs)
        wanted = [tensor for tensor in inputs if tensor.requires_grad]
        gradients = iter(torch.autograd.grad(output, wanted, G, allow_unused=True))
        return None, *(next(gradients) if need else None for need in needed)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], function: Callable[..., Tensor], *inputs: Tensor
    ) -> tuple[Tensor, int]:
        """All replicas in one pass, and in one more."""
        return recompute(torch.func.vmap(function, in_dims[1:]), *inputs), 0
