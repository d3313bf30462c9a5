"""Cross-entropy of all replicas on a GPU: one launch forward and one backward."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

ELEMENTS = 1024  # scores of a program


class Entropies(Function):
    """Scores (r, n, k), classes y (n,) → -log softmax at y, (r, n); any number where y < 0."""

    @staticmethod
    def forward(ctx: Function, scores: Tensor, y: Tensor) -> Tensor:
        """One number a node."""
        scores = scores.contiguous()
        ctx.save_for_backward(scores, y)
        out = scores.new_empty(scores.shape[:2])
        _launch(_entropies, scores, y, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Function, G: Tensor) -> tuple[Tensor, None]:
        """(softmax - 1 at y) G."""
        scores, y = ctx.saved_tensors
        out = torch.empty_like(scores)
        _launch(_gradient, scores, y, G.contiguous(), out)
        return out, None


def _launch(kernel: triton.JITFunction, scores: Tensor, y: Tensor, *others: Tensor) -> None:
    (replicas, n, k), exact = scores.shape, scores.dtype == torch.float64
    columns = triton.next_power_of_2(k)
    rows = max(1, ELEMENTS // columns)
    kernel[(triton.cdiv(n, rows), replicas)](
        scores, y, *others, n, k,
        TYPE=tl.float64 if exact else tl.float32, ROWS=rows, COLUMNS=columns,
    )  # fmt: skip


@triton.jit
def _logarithms(scores, y, n, k, TYPE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Of this program's rows: places in scores, log softmax, and 1 where y is, else 0."""
    replica = tl.program_id(1).to(tl.int64)
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    there = (column < k)[None, :]
    at = (replica * n + row[:, None]) * k + column[None, :]
    value = tl.load(scores + at, mask=(row < n)[:, None] & there, other=0.0).to(TYPE)
    value = tl.where(there, value, float("-inf"))
    value -= tl.max(value, 1)[:, None]
    value -= tl.log(tl.sum(tl.exp(value), 1))[:, None]
    own = tl.maximum(tl.load(y + row, mask=row < n, other=0), 0)
    return at, value, (column[None, :] == own[:, None]).to(TYPE)


@triton.jit
def _entropies(
    scores, y, out, n, k, TYPE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    _, value, own = _logarithms(scores, y, n, k, TYPE, ROWS, COLUMNS)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    loss = -tl.sum(tl.where(own > 0, value, 0.0), 1)
    tl.store(out + tl.program_id(1).to(tl.int64) * n + row, loss, mask=row < n)


@triton.jit
def _gradient(
    scores, y, G, out, n, k, TYPE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    at, value, own = _logarithms(scores, y, n, k, TYPE, ROWS, COLUMNS)
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    g = tl.load(G + tl.program_id(1).to(tl.int64) * n + row, mask=row < n, other=0.0).to(TYPE)
    inside = (row < n)[:, None] & (column < k)[None, :]
    tl.store(out + at, (tl.exp(value) - own) * g[:, None], mask=inside)
