"""GAT (Veličković et al. 2018): each node learns how much of each neighbour it gathers.

On citations as Fey & Lenssen (2019) ran it, because the paper quotes their numbers; and a wider
network for PPI.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import elu, leaky_relu

from gcnii import kernels
from gcnii.dropout import Dropout, levels, next_key
from gcnii.nn.model import Model, ModelCard, glorot
from gcnii.nn.settings import FewLayers, Heads, HeadWidth, OutHeads, Rate
from gcnii.propagation import Propagation, Sparse
from gcnii.propagation.attention import attend, row_softmax
from gcnii.propagation.sparse import Pattern, VmapInfo, replicas_first, to_entries

SLOPE = 0.2  # of LeakyReLU below zero


class Attention(nn.Module):
    """Σ_j α_ij W h_j per head, α_ij = softmax_j(LeakyReLU(a1·W h_i + a2·W h_j)) over N(i) ∪ {i}."""

    # authors: e_ij has two constants more, and W h is dropped out, too; here: neither, as in Fey &
    # Lenssen's runs.
    def __init__(self, d: int, width: int, heads: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.W = glorot(d, heads * width)
        self.a1, self.a2 = glorot(heads, width), glorot(heads, width)
        self.drop = Dropout(dropout)

    def forward(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """(d, h) → (n, heads, width); of P's values, it only matters which are zero."""
        Z = (H @ self.W).unflatten(1, (self.heads, -1))
        if P.pattern.transient and kernels.usable(Z.flatten(1)):
            drops, device = self.drop.active, Z.device
            key, kept = (
                (next_key(device), levels(self.drop.kept, device)) if drops else (None, None)
            )
            found: Tensor = AttendRows.apply(  # type: ignore[no-untyped-call]
                Z, self.a1, self.a2, P.values, key, kept, P.pattern
            )[0]
            return found
        own = to_entries(P.pattern, (Z[: P.shape[0]] * self.a1).sum(-1), end="row")
        theirs = to_entries(P.pattern, (Z * self.a2).sum(-1), end="column")
        alpha = row_softmax(P.pattern, leaky_relu(own + theirs, SLOPE), P.values != 0)
        return attend(P, self.drop(alpha), Z)


class AttendRows(torch.autograd.Function):
    """The same for the matrix of one step on a GPU, in two launches instead of a hundred."""

    @staticmethod
    def forward(
        Z: Tensor, a1: Tensor, a2: Tensor, values: Tensor, key: Tensor | None, kept: Tensor | None,
        pattern: Pattern,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Z (d, heads, width), or (r, d, …) with a1, a2 (r, …), keys (r, 2) and kept (1,) or (r,).

        Besides the result, what the gradients need.
        """
        from gcnii.kernels.attend import Dropped, Entries, attend

        if single := Z.ndim == 3:
            Z, a1, a2, key = Z[None], a1[None], a2[None], None if key is None else key[None]
        M, dropped = Entries(pattern.rows, pattern.columns, values), Dropped(key, kept)
        out, scores = attend(M, Z.contiguous(), a1.contiguous(), a2.contiguous(), SLOPE, dropped)
        return tuple(one[0] for one in (out, *scores)) if single else (out, *scores)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Save no weights of entries: they are made again."""
        *given, ctx.pattern = inputs
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*given, *output)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        """dZ, da1 and da2."""
        from gcnii.kernels.attend import Dropped, Entries, Scores, gradients

        saved, pattern = ctx.saved_tensors, ctx.pattern
        if single := G.ndim == 3:
            saved = [one if one is None else one[None] for one in saved]
            saved[3], saved[5], G = ctx.saved_tensors[3], ctx.saved_tensors[5], G[None]
        Z, a1, a2, values, key, kept, out, *scores = saved
        Z, a1, a2, G = (one.contiguous() for one in (Z, a1, a2, G))
        other, order = pattern.transposed
        M, T = (Entries(one.rows, one.columns, values) for one in (pattern, other))
        about = (SLOPE, Dropped(key, kept), Scores(*scores))
        dZ, down, dtheirs = gradients(M, T, order, G, out, Z, a1, a2, *about)
        ends = ((down, Z[:, : down.shape[1]]), (dtheirs, Z))
        da1, da2 = ((each.to(Z.dtype)[..., None] * of).sum(1) for each, of in ends)
        found = [one[0] if single else one for one in (dZ, da1, da2)]
        return *found, None, None, None, None

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...],
        Z: Tensor, a1: Tensor, a2: Tensor, values: Tensor, key: Tensor | None, kept: Tensor | None,
        pattern: Pattern,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:  # fmt: skip
        """All replicas in the same launches; the matrix is the same for all."""
        Z, a1, a2 = (
            replicas_first(one, dim, info.batch_size)
            for one, dim in zip((Z, a1, a2), in_dims, strict=False)
        )
        if kept is not None and in_dims[5] is not None:
            kept = kept.movedim(in_dims[5], 0).flatten()
        if key is not None:
            key = replicas_first(key, in_dims[4], info.batch_size).contiguous()
        found = AttendRows.apply(Z, a1, a2, values, key, kept, pattern)  # type: ignore[no-untyped-call]
        return found, (0,) * len(found)


# torch asks for this at every call; made once instead of each time, it saves 15 µs.
AttendRows.forward.__signature__ = inspect.signature(AttendRows.forward)  # type: ignore[attr-defined]


class GATConv(Attention):
    """Attention with the heads side by side, + b."""

    def __init__(self, d: int, width: int, heads: int, dropout: float):
        super().__init__(d, width, heads, dropout)
        self.b = nn.Parameter(torch.zeros(heads * width))

    def forward(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """→ (n, heads · width)."""
        return super().forward(P, H).flatten(1) + self.b


class GATMean(Attention):
    """Attention averaged over the heads, + b."""

    def __init__(self, d: int, width: int, heads: int, dropout: float):
        super().__init__(d, width, heads, dropout)
        self.b = nn.Parameter(torch.zeros(width))

    def forward(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """→ (n, width)."""
        return super().forward(P, H).mean(1) + self.b


class GAT(Model):
    """GAT: `layers` layers of attention, ELU and dropout between them."""

    supports_sampling = True
    card = ModelCard(
        paper="Veličković et al. 2018",
        equation="h_i ← σ(Σ_j α_ij W h_j + b), α_ij = softmax_j(LeakyReLU(a1·W h_i + a2·W h_j))",
        recipe={
            **{"lr": 0.005, "decay_conv": 5e-4, "decay_dense": 5e-4, "epochs": 1000},
            **{"patience": 1000, "monitor": "val_loss", "window": 100, "window_from": 500},
        },
        uses_weights=False,
        when="some neighbours matter more than others: attention",
    )

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: FewLayers = 2,
        width: HeadWidth = 8,
        heads: Heads = 8,
        out_heads: OutHeads = 1,
        dropout: Rate = 0.6,
    ):
        super().__init__()
        self.widths = (d, *[heads * width] * (layers - 1))  # what each layer reads
        self.convs = nn.ModuleList(
            GATConv(each, width, heads, dropout) for each in self.widths[:-1]
        )
        self.convs.append(GATMean(self.widths[-1], k, out_heads, dropout))
        self.drop = Dropout(dropout)

    def layer(self, l: int, P: Propagation, H: Tensor | Sparse) -> Tensor:
        """Layer l, counted from 0, before σ."""
        scores: Tensor = self.convs[l](P.at(l), self.drop(H))
        return scores

    def embed(self, P: Propagation, X: Tensor | Sparse) -> Tensor | Sparse:
        """What the last layer reads: (n, heads · width), or X where there is only one layer."""
        H = X
        for l in range(len(self.convs) - 1):
            H = elu(self.layer(l, P, H))
        return H

    def forward(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        return self.layer(len(self.convs) - 1, P, self.embed(P, X))


class GATPPI(GAT):
    """GAT with a linear skip connection around every layer, for PPI."""

    # paper: a skip around the middle layer alone; here: around each, as in PyG's example.
    card = ModelCard(
        paper="Veličković et al. 2018, section 3.3",
        equation="h_i ← σ(Σ_j α_ij W h_j + b + W' h_i + b'), α_ij as in gat",
        recipe={
            **{"lr": 0.005, "decay_conv": 0.0, "decay_dense": 0.0, "epochs": 100_000},
            **{"patience": 100, "monitor": "val_either"},
        },
        uses_weights=False,
    )

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: FewLayers = 3,
        width: HeadWidth = 256,
        heads: Heads = 4,
        out_heads: OutHeads = 6,
        dropout: Rate = 0.0,
    ):
        super().__init__(
            d, k, layers=layers, width=width, heads=heads, out_heads=out_heads, dropout=dropout
        )
        ends = zip(self.widths, (*self.widths[1:], k), strict=True)
        self.dense = nn.ModuleList(nn.Linear(*both) for both in ends)

    def layer(self, l: int, P: Propagation, H: Tensor | Sparse) -> Tensor:
        """Layer l, counted from 0, before σ."""
        H = self.drop(H)
        gathered, skipped = self.convs[l](P.at(l), H), self.dense[l](H)
        scores: Tensor = gathered + skipped[: len(gathered)]
        return scores
