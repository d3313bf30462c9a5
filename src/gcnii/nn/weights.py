"""Weights: their initial values, and products by them with a gradient that suits a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from gcnii.kernels import gradients
from gcnii.propagation import Sparse
from gcnii.propagation.product import VmapInfo, replicas_first

# What a mode sees of a draw: some functions of nn.init come whole, of the others the last call.
DRAWS = {
    torch.Tensor.uniform_,
    torch.Tensor.normal_,
    nn.init.uniform_,
    nn.init.normal_,
    nn.init.kaiming_uniform_,
}
MAKES = {torch.empty, torch.zeros, torch.ones}


class DrawnFrom(TorchFunctionMode):
    """Within, weights are made in float32 on the CPU and drawn from the generator of this seed.

    Layers such as `nn.Linear` draw from the generator that all threads share, and take no other.  A
    mode is its thread's own: what other threads draw meanwhile, and torch's random state, do not
    change.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call `func` with the generator, or with the dtype and device, that it was not given."""
        given, own = dict(kwargs or {}), dict[str, Any]()
        if func in DRAWS:
            own = {"generator": self.generator}
        if func in MAKES:
            own = {"dtype": torch.float32, "device": "cpu"}
        return func(*args, **given | {name: own[name] for name in own if given.get(name) is None})


def uniform(*shape: int) -> nn.Parameter:
    """A weight of this shape, each entry uniform in ±1/√width; the width is the last dimension."""
    bound = shape[-1] ** -0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def glorot(d: int, width: int) -> nn.Parameter:
    """W (d, width), each entry uniform in ±√(6 / (d + width))."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(d, width)))


def glorot_dense(d: int, width: int, *, bias: bool = True) -> nn.Linear:
    """A dense layer with a Glorot-uniform weight and a bias, if any, of zero."""
    layer = nn.Linear(d, width, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


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
