"""Activations times weights, with a gradient that suits a GPU."""

from typing import Any

import torch
from torch import Tensor

from gcnii.kernels.products import gradients
from gcnii.propagation import Sparse, VmapInfo, replicas_first


def matmul(H: Tensor | Sparse, W: Tensor) -> Tensor:
    """H W; on a GPU with a gradient of W that stays fast for several replicas."""
    if isinstance(H, Sparse) or not H.is_cuda or torch.is_autocast_enabled("cuda"):
        return H @ W
    return MatMul.apply(H, W)  # type: ignore[no-any-return, no-untyped-call]


class MatMul(torch.autograd.Function):
    """H W for H (n, d) and W (d, h); with replicas in front, (r, n, d) and (r, d, h)."""

    @staticmethod
    def forward(H: Tensor, W: Tensor) -> Tensor:
        """H W."""
        return H @ W

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        """Save both factors."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """G Wᵀ and Hᵀ G."""
        H, W = ctx.saved_tensors
        dH = G @ W.mT if ctx.needs_input_grad[0] else None
        dW = (gradients(H, G) if G.ndim == 3 else H.mT @ G) if ctx.needs_input_grad[1] else None
        return dH, dW

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...], H: Tensor, W: Tensor
    ) -> tuple[Tensor, int]:
        """One batched product for all replicas."""
        H, W = (
            replicas_first(one, dim, info.batch_size)
            for one, dim in zip((H, W), in_dims, strict=True)
        )
        return MatMul.apply(H, W), 0  # type: ignore[no-untyped-call]
