"""Dropout of entries, of links and of nodes, by masks that are hashes."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from gcnii import kernels
from gcnii.dropout.keys import current_rows, next_key
from gcnii.dropout.masks import LEVELS, keep_mask, kept_of, lanes_of, levels, words_of
from gcnii.errors import InputError
from gcnii.propagation import Adjacency, Rows, Sparse, VmapInfo, replicas_first

Matrix = TypeVar("Matrix", Tensor, Sparse)
DropForm = Literal["entries", "pairs"]


class Dropout(nn.Module):
    """H → H · mask / keep while training, else H; of a Sparse, the stored values are dropped."""

    def __init__(self, rate: float):
        super().__init__()
        if not 0 <= rate < 1:
            raise InputError(
                f"dropout is the share of entries set to zero and must lie in [0, 1), got {rate}"
            )
        # A tensor () within a batch of replicas whose rates differ.
        self.kept: int | Tensor = kept_of(rate)
        if self.kept == 0:
            raise InputError(
                f"dropout keeps entries in steps of 1/{LEVELS}, and {rate} would keep none"
            )

    @property
    def active(self) -> bool:
        """Whether the next call drops anything."""
        return self.training and (isinstance(self.kept, Tensor) or self.kept < LEVELS)

    def scale(self, dtype: torch.dtype) -> float | Tensor:
        """By how much entries that are kept are scaled, in numbers of this type."""
        kept = self.kept.to(dtype) if isinstance(self.kept, Tensor) else self.kept
        return LEVELS / kept

    def forward(self, H: Matrix) -> Matrix:
        """H with some of its entries set to zero, and the rest scaled up to keep the mean."""
        if not self.active:
            return H
        if isinstance(H, Sparse):
            return H.with_values(self.forward(H.values))
        key, rows = next_key(H.device), current_rows()
        if kernels.usable(H):
            kept, starts = levels(self.kept, H.device), rows and rows.starts(H.shape)[0]
            return Drop.apply(H, key, kept, starts)  # type: ignore[no-any-return, no-untyped-call]
        mask = keep_mask(key, H.numel(), self.kept, words_of(rows, H.shape)).view(H.shape)
        factors = mask.to(H.dtype).mul_(self.scale(H.dtype))
        # Features have no gradient, and are large: one matrix of their size less.
        return H * factors if H.requires_grad else factors.mul_(H)

    def each(self, H: Tensor, keys: Tensor) -> Tensor:
        """H (n, b, h) and keys (b, 2): each of the b matrices with the mask of its own key."""
        if not self.active:
            return H
        n, b, h = H.shape
        mask = keep_mask(keys, n * h, self.kept).view(b, n, h).transpose(0, 1)
        return H * mask.to(H.dtype).mul_(self.scale(H.dtype))

    def extra_repr(self) -> str:
        """Show the rate in `print(model)`."""
        return f"rate={1 - float(self.kept) / LEVELS:.4g}"


class Drop(torch.autograd.Function):
    """H, key (2,), kept (1,) → H · mask / keep in one pass on a GPU; only the key is saved.

    starts  of the rows of H, where several processes share a matrix
    """

    @staticmethod
    def forward(H: Tensor, key: Tensor, kept: Tensor, starts: Tensor | None) -> Tensor:
        """Drop from H; with keys (r, 2), H is (r, …), and kept (1,) or (r,)."""
        from gcnii.kernels.mask import drop

        if key.ndim == 2:
            return drop(H, key, kept, scaled=True, starts=starts)
        return drop(H[None], key[None], kept, scaled=True, starts=starts)[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor | None, ...], output: Tensor) -> None:
        """Save the key, from which backward makes the mask again."""
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, None, None, None]:
        """G with the same mask."""
        return Drop.apply(G, *ctx.saved_tensors), None, None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...],
        H: Tensor, key: Tensor, kept: Tensor, starts: Tensor | None,
    ) -> tuple[Tensor, int]:  # fmt: skip
        """Drop from all replicas in one pass."""
        H, key = (
            replicas_first(one, dim, info.batch_size)
            for one, dim in zip((H, key), in_dims, strict=False)
        )
        if in_dims[2] is not None:
            kept = kept.movedim(in_dims[2], 0).flatten()
        return Drop.apply(H, key, kept, starts), 0  # type: ignore[no-untyped-call]


class InplaceDropout:
    """Drops in place, from one H (r, …) after the other; torch records nothing.

    It reuses its buffers: new ones for each H would not be in the CPU's caches, and would cost more
    than the hash.

    rows  of the whole graph that each H has; None: all
    """

    def __init__(self, like: Tensor, kept: int, rows: Rows | None = None):
        self.kept, self.words = kept, words_of(rows, like.shape[1:])
        self.count = like[0].numel()
        count = (self.count + 1) // 2 if self.words is None else len(self.words.hashed)
        self.buffers = like.new_empty(2, len(like), count, dtype=torch.int32).unbind()
        self.lanes = torch.empty_like(like, memory_format=torch.contiguous_format)

    def __call__(self, H: Tensor, keys: Tensor) -> Tensor:
        """Set to zero what the masks of these keys (r, 2) drop; the rest is not scaled."""
        if self.words is None:
            lanes = lanes_of(keys, self.count, *self.buffers)
        else:
            lanes = self.words.lanes(keys, *self.buffers)
        self.lanes.view(len(H), -1).copy_(lanes)
        # Whatever its name says, this is "zero where the lane is not below", in one pass.
        return torch.ops.aten.hardtanh_backward.grad_input(  # type: ignore[no-any-return]
            H, self.lanes, -torch.inf, self.kept - LEVELS // 2, grad_input=H
        )


def drop_edges(adjacency: Adjacency, kept: int | Tensor, form: DropForm) -> Sparse:
    """DropEdge (Rong et al. 2020): P of the links that are kept in this forward pass.

    The next key decides which ones are kept; self-loops always are.  Of LEVELS links, `kept` are.

    entries  the authors' form: u may lose v while v keeps u; degrees count the links that are left
    pairs    a link is lost at both ends
    """
    # authors: exactly ⌊keep · entries⌋ are drawn; here: each is kept with that probability, which
    # needs no sorting.
    if isinstance(kept, int) and kept == LEVELS:
        return adjacency.whole
    weights, key = adjacency.weights, next_key(adjacency.weights.device)
    if rows := adjacency.entries if form == "entries" else adjacency.paired:
        words = words_of(rows, (len(weights),))
        return adjacency.matrix(keep_mask(key, len(weights), kept, words))
    mask = keep_mask(key, len(weights), kept)
    return adjacency.matrix(mask if form == "entries" else mask[adjacency.pairs])


def drop_nodes(X: Tensor | Sparse, kept: int | Tensor) -> Tensor | Sparse:
    """DropNode (Feng et al. 2020): X with some rows set to zero, and the rest scaled up.

    The next key decides which ones are kept.  Of LEVELS rows, `kept` are.
    """
    if isinstance(kept, int) and kept == LEVELS:
        return X
    words = words_of(current_rows(), (X.shape[0], 1))
    mask = keep_mask(next_key(X.device), X.shape[0], kept, words).to(X.dtype)
    rows = mask * (LEVELS / (kept.to(X.dtype) if isinstance(kept, Tensor) else kept))
    if isinstance(X, Sparse):
        return X.with_values(X.values * rows[X.pattern.row_of])
    return X * rows[:, None]
