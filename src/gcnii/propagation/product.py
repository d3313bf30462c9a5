"""The one sparse product, with its gradients and its vmap rule; and sums over entries."""

from __future__ import annotations

import inspect
import warnings
from functools import cache
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from gcnii import kernels
from gcnii.propagation.pattern import AnyPattern, CutPattern, CutTranspose, Pattern, Send


def product(values: Tensor, transposed: Tensor | None, H: Tensor, pattern: AnyPattern) -> Tensor:
    """M H (n, h) for H (d, h), where M has these values, and Mᵀ those of `transposed`.

    Without `transposed`, they are made of the values if a gradient needs them.
    """
    return Product.apply(values, transposed, H, pattern)  # type: ignore[no-any-return, no-untyped-call]


def dots(pattern: Pattern, G: Tensor, H: Tensor) -> Tensor:
    """G (n, h), H (d, h) → (entries,): G_i · H_j at each entry (i, j)."""
    return Dots.apply(G, H, pattern)  # type: ignore[no-any-return, no-untyped-call]


def row_sums(pattern: Pattern, E: Tensor) -> Tensor:
    """E (entries,) or (entries, h) → (n,) or (n, h): the sum of each row's entries."""
    collect, _ = pattern.at_rows.transposed
    sums = _sum_over(collect, E if E.ndim == 2 else E[:, None])
    return sums if E.ndim == 2 else sums[:, 0]


def to_entries(pattern: Pattern, H: Tensor, *, end: Literal["row", "column"]) -> Tensor:
    """H (n, h) → (entries, h): for each entry, the row of H of its row or of its column.

    The same as H[row_of] or H[columns], whose gradient is a sum in no fixed order on a GPU.
    """
    return _sum_over(pattern.at_rows if end == "row" else pattern.at_columns, H)


def _sum_over(pattern: Pattern, H: Tensor) -> Tensor:
    ones = H.new_ones(len(pattern.columns))
    return product(ones, ones, H, pattern)


def replicas_first(tensor: Tensor, dim: int | None, replicas: int) -> Tensor:
    """A tensor under vmap with its replicas as the first axis; expanded where all share it."""
    return tensor.expand(replicas, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


class VmapInfo(Protocol):
    """What torch tells a vmap rule: the number of replicas."""

    @property
    def batch_size(self) -> int:
        """The number of replicas."""


class Product(torch.autograd.Function):
    """M H for a sparse M (n, d) and H (d, h); dH = Mᵀ G, and M's value at (i, j) gets G_i · H_j.

    Under vmap the replicas of H become columns of one wide product; where the values of M differ
    between replicas (dropout on features), M becomes one block-diagonal matrix.  On a GPU a kernel
    takes them as they are: H (r, d, h) and values (1, entries) or (r, entries).
    """

    @staticmethod
    def forward(
        values: Tensor, transposed: Tensor | None, H: Tensor, pattern: AnyPattern
    ) -> Tensor:
        """M H; for H (r, d, h), (r, n, h)."""
        if H.ndim == 3:
            return multiply_each(pattern, values, H)
        return _multiply(pattern, values, H)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor | None, Tensor, AnyPattern], output: Tensor
    ) -> None:
        """Save what the gradients need; H only for that of the values, because it is large."""
        values, transposed, H, ctx.pattern = inputs
        ctx.save_for_backward(values, transposed, H if values.requires_grad else None)

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, None, Tensor | None, None]:
        """dH is a product by the transpose, the values' gradient dot products at the entries."""
        values, transposed, H = ctx.saved_tensors
        dH = None
        if ctx.needs_input_grad[2]:
            other, order = ctx.pattern.transposed
            there = values.detach()[..., order] if transposed is None else transposed
            dH = product(there, values, G, other)
        dV = dots(ctx.pattern, G, H) if ctx.needs_input_grad[0] else None
        if dV is not None and dV.ndim == 2 and len(values) == 1:
            dV = dV.sum(0, keepdim=True)  # all replicas share the values
        return dV, None, dH, None

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...],
        values: Tensor, transposed: Tensor | None, H: Tensor, pattern: AnyPattern,
    ) -> tuple[Tensor, int]:  # fmt: skip
        """One product for all replicas."""
        H = replicas_first(H, in_dims[2], info.batch_size)
        if in_dims[0] is None and not kernels.usable(H):
            return _product_in_columns(values, transposed, H, pattern), 1
        # The two may have their replicas in different dimensions: vmap moves them as it likes.
        values = values[None] if in_dims[0] is None else values.movedim(in_dims[0], 0)
        if transposed is not None:
            dim = in_dims[1]
            transposed = transposed[None] if dim is None else transposed.movedim(dim, 0)
        if kernels.usable(H) or not isinstance(pattern, Pattern):
            return _product_of_each(values, transposed, H, pattern), 0
        blocks = pattern.repeat(info.batch_size)
        flat = None if transposed is None else transposed.flatten()
        below = product(values.flatten(), flat, H.flatten(0, 1), blocks)
        return below.unflatten(0, (info.batch_size, -1)), 0


def _product_in_columns(
    values: Tensor, transposed: Tensor | None, H: Tensor, pattern: AnyPattern
) -> Tensor:
    """H (r, d, h) → (n, r, h), as one product by r · h columns."""
    columns = H.transpose(0, 1).reshape(H.shape[1], -1)
    wide: Tensor = product(values, transposed, columns, pattern).unflatten(1, (len(H), -1))
    return wide


def _product_of_each(
    values: Tensor, transposed: Tensor | None, H: Tensor, pattern: AnyPattern
) -> Tensor:
    """On a GPU: H (r, d, h), or (r, heads, d, h) where heads are within replicas."""
    if H.ndim == 3:
        return product(values, transposed, H, pattern)
    values = values.expand(*H.shape[:2], -1).flatten(0, 1)
    if transposed is not None:
        transposed = transposed.expand(*H.shape[:2], -1).flatten(0, 1)
    below = product(values, transposed, H.flatten(0, 1), pattern)
    return below.reshape(*H.shape[:2], *below.shape[1:])


class Dots(torch.autograd.Function):
    """G_i · H_j at each entry (i, j) of a pattern: the product's gradient, and attention's scores.

    Its own gradients are products again: M H and Mᵀ G, where M has the incoming gradient as values.
    """

    @staticmethod
    def forward(G: Tensor, H: Tensor, pattern: Pattern) -> Tensor:
        """(n, h) and (d, h) → (entries,)."""
        return _dot_each(pattern, G, H)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Pattern], output: Tensor) -> None:
        """Save both matrices."""
        G, H, ctx.pattern = inputs
        ctx.save_for_backward(G, H)

    @staticmethod
    def backward(ctx: Any, values: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        """dG and dH, a product each."""
        G, H = ctx.saved_tensors
        other, order = ctx.pattern.transposed
        transposed = values[..., order]
        dG = product(values, transposed, H, ctx.pattern) if ctx.needs_input_grad[0] else None
        dH = product(transposed, values, G, other) if ctx.needs_input_grad[1] else None
        return dG, dH, None

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...], G: Tensor, H: Tensor, pattern: Pattern
    ) -> tuple[Tensor, int]:
        """Stack the replicas below each other; the pattern becomes block-diagonal."""
        replicas = info.batch_size
        G, H = (
            replicas_first(one, dim, replicas) for one, dim in zip((G, H), in_dims, strict=False)
        )
        if kernels.usable(H):  # also where heads are within replicas
            each = dots(pattern, G.flatten(0, -3), H.flatten(0, -3))
            return each.unflatten(0, H.shape[:-2]), 0
        below = dots(pattern.repeat(replicas), G.flatten(0, 1), H.flatten(0, 1))
        return below.unflatten(0, (replicas, -1)), 0


# torch asks for this at every call; made once instead of each time, it saves 15 µs.
Product.forward.__signature__ = inspect.signature(Product.forward)  # type: ignore[attr-defined]
Dots.forward.__signature__ = inspect.signature(Dots.forward)  # type: ignore[attr-defined]


def multiply_each(pattern: AnyPattern, values: Tensor, H: Tensor) -> Tensor:
    """M H for H (r, d, h) and M's values (1, entries) or (r, entries); torch records nothing."""
    if not isinstance(pattern, Pattern):
        near, far, send = shared(pattern, values)
        wait = send(H)  # while rows are on their way, the near ones are multiplied
        S = multiply_each(pattern.near, near, H)
        return S.add_(multiply_each(pattern.arriving, far, wait()))
    if not len(pattern.columns):
        return H.new_zeros(len(H), pattern.shape[0], H.shape[2])
    if kernels.usable(H):
        from gcnii.kernels.gather import cut, gather, gather_by_row
        from gcnii.kernels.layouts import schedule_of

        if pattern.transient:
            return gather_by_row(pattern.rows, pattern.columns, values, H.contiguous())
        return gather(schedule_of(pattern, *cut(H)).with_values(values), H.contiguous())
    replicas = len(H)
    if replicas == 1:
        return _multiply(pattern, values[0], H[0])[None]
    values = values.expand(replicas, -1).flatten()
    below = _multiply(pattern.repeat(replicas), values, H.flatten(0, 1))
    return below.view(replicas, -1, H.shape[2])


def shared(pattern: CutPattern | CutTranspose, values: Tensor) -> tuple[Tensor, Tensor, Send]:
    """The values of near's entries and of those of what arrives, and what sends rows."""
    near, far = values.split([len(pattern.near.columns), len(pattern.far.columns)], -1)
    return near, *pattern.exchange(far, multiply_each)


def _multiply(pattern: AnyPattern, values: Tensor, H: Tensor) -> Tensor:
    if not isinstance(pattern, Pattern):
        return multiply_each(pattern, values[None], H[None])[0]
    rows, columns = pattern.rows, pattern.columns
    if H.device.type == "cpu":
        # A weighted bag of rows is the same sum; on two cores it takes half the time of the CSR
        # product.  torch.nn's function of this name would spend 6 µs on checks.
        bag = torch.embedding_bag(H.contiguous(), columns, rows, False, 0, False, values, True)
        return bag[0]
    if kernels.usable(H):
        return multiply_each(pattern, values[None], H[None])[0]
    _hush_beta_warning()
    shape = pattern.shape
    return torch.sparse_csr_tensor(rows, columns, values, shape, check_invariants=False) @ H


def _dot_each(pattern: Pattern, G: Tensor, H: Tensor) -> Tensor:
    if G.device.type == "cpu":
        # The gradient of a weighted bag's weights: with 64 columns, 20 times as fast as gathering
        # both.
        ends = (pattern.columns, pattern.rows[:-1], pattern.at_rows.columns)
        each = torch.ops.aten._embedding_bag_per_sample_weights_backward
        return each(G.contiguous(), H.contiguous(), *ends, 0)  # type: ignore[no-any-return]
    if kernels.usable(G):
        from gcnii.kernels import gather

        G3, H3 = (one.view(-1, *one.shape[-2:]) for one in (G, H))
        found = gather.dots(pattern.row_of, pattern.columns, G3, H3)
        return found.view(*G.shape[:-2], -1)
    return (G[pattern.row_of] * H[pattern.columns]).sum(-1)


@cache
def _hush_beta_warning() -> None:
    """Silence torch's notice, once per process, that its CSR tensors are in beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)
