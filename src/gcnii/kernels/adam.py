"""Adam for the weights of all replicas on a GPU, in one launch."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"

from __future__ import annotations

from collections.abc import Sequence
from math import log

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


def adam(
    weights: Tensor, gradient: Tensor, moments: Sequence[Tensor], decay: Tensor, lr: Tensor,
    taken: Tensor, betas: tuple[float, float], eps: float,
) -> None:  # fmt: skip
    """A step of these weights (r, size) and of their two moments, in place.

    decay, lr, taken  (r, 1), of the weights' type, float64 and float64; `taken` counts this step
    """
    replicas, size = weights.shape
    slow, fast = betas
    _adam[(triton.cdiv(size, BLOCK), replicas)](
        weights, gradient, *moments, decay, lr, taken, size, gradient.stride(0),
        SLOW=slow, FAST=fast, EPS=eps, LOG_SLOW=log(slow), LOG_FAST=log(fast), BLOCK=BLOCK,
    )  # fmt: skip


@triton.jit
def _adam(
    weights, gradient, first, second, decay, lr, taken, size, gradient_r,
    SLOW: tl.constexpr, FAST: tl.constexpr, EPS: tl.constexpr, LOG_SLOW: tl.constexpr,
    LOG_FAST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at, inside = replica * size + element, element < size
    weight = tl.load(weights + at, mask=inside, other=0.0)
    g = tl.load(gradient + replica * gradient_r + element, mask=inside, other=0.0)
    g += tl.load(decay + replica) * weight
    m = tl.load(first + at, mask=inside, other=0.0)
    v = tl.load(second + at, mask=inside, other=0.0)
    m += (1 - SLOW) * (g - m)
    v += (1 - FAST) * (g * g - v)
    # Each moment is divided by 1 - β^t, by how much it is too small after t steps.
    t = tl.load(taken + replica)
    length = (tl.load(lr + replica) / (1 - tl.exp(t * LOG_SLOW))).to(weight.dtype)
    below = tl.sqrt(1 - tl.exp(t * LOG_FAST)).to(weight.dtype)
    tl.store(weights + at, weight - length * m / (tl.sqrt(v) / below + EPS), mask=inside)
    tl.store(first + at, m, mask=inside)
    tl.store(second + at, v, mask=inside)
