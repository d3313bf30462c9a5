"""Rematerialisation: compute activations again in backward instead of keeping them.

The second pass gives the same bits as the first, because a dropout mask is a hash and not a stream
of random numbers: a function with dropout takes its key as an input, and runs under `keyed(key)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcnii.propagation import VmapInfo

if TYPE_CHECKING:
    from gcnii.nn.offload import Place


def recompute(
    function: Callable[..., Tensor], *inputs: Tensor, place: Place | None = None
) -> Tensor:
    """function(*inputs), of which only the inputs are kept for backward.

    Gradients reach the inputs, so every weight must be one of them; what else `function` holds must
    not need a gradient and must be the same for all replicas.

    place  where the first input waits for backward; None: where it is
    """
    return Recompute.apply(function, place, *inputs)  # type: ignore[no-any-return, no-untyped-call]


class Recompute(torch.autograd.Function):
    """A function of tensors that runs again in backward; under vmap, the function is vmapped."""

    @staticmethod
    def forward(function: Callable[..., Tensor], place: Place | None, *inputs: Tensor) -> Tensor:
        """Run the function; torch records nothing."""
        if place is not None:
            place.put(inputs[0])
        return function(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Save the inputs, but for one that has a place of its own."""
        ctx.function, ctx.place, *tensors = inputs
        ctx.save_for_backward(*(tensors if ctx.place is None else tensors[1:]))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, ...]:
        """Run the function again, this time recorded, and differentiate it."""
        needed = ctx.needs_input_grad[2:]
        first = () if ctx.place is None else (ctx.place.take(),)
        inputs = [
            tensor.detach().requires_grad_(need)
            for tensor, need in zip((*first, *ctx.saved_tensors), needed, strict=True)
        ]
        with torch.enable_grad():
            output = ctx.function(*inputs)
        wanted = [tensor for tensor in inputs if tensor.requires_grad]
        gradients = iter(torch.autograd.grad(output, wanted, G, allow_unused=True))
        return None, None, *(next(gradients) if need else None for need in needed)

    @staticmethod
    def vmap(
        info: VmapInfo,
        in_dims: tuple[int | None, ...],
        function: Callable[..., Tensor],
        place: Place | None,
        *inputs: Tensor,
    ) -> tuple[Tensor, int]:
        """Recompute all replicas in one pass."""
        return recompute(torch.func.vmap(function, in_dims[2:]), *inputs, place=place), 0
