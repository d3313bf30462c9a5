"""DropEdge's GCN (Rong et al. 2020), and the convolution of its three networks.

DropEdge itself is a way of training that works for every model: the recipe's `drop_edge`.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, relu

from gcnii.dropout import Dropout
from gcnii.errors import InputError
from gcnii.nn.matmul import matmul
from gcnii.nn.model import Model, ModelCard
from gcnii.nn.settings import BatchNorm, Layers, Rate, SelfWeight, Settings, Width
from gcnii.nn.weights import uniform
from gcnii.propagation import Sparse

EPSILON = 1e-5  # avoids a division by zero for units that are equal on all nodes


# How Rong et al. train all three networks.
RECIPE: Settings = {
    "decay_conv": 5e-4,
    "epochs": 400,
    "patience": 400,
    "monitor": "noisy_loss",
}


class DropEdgeConv(nn.Module):
    """Before σ:  norm(P (H W) + H W_self + b), where W_self and the norm are optional."""

    def __init__(self, d: int, width: int, self_weight: bool, batch_norm: bool):
        super().__init__()
        self.W = uniform(d, width)
        self.b = uniform(width)
        self.W_self = uniform(d, width) if self_weight else None
        self.norm = NodeNorm(width) if batch_norm else None

    def forward(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """(n, d) → (n, width)."""
        Z = P @ matmul(H, self.W) + self.b
        if self.W_self is not None:
            Z = Z + matmul(H, self.W_self)
        return Z if self.norm is None else self.norm(Z)


class NodeNorm(nn.Module):
    """(Z - mean) / √(variance + ε) · scale + shift, with mean and variance over the nodes."""

    def __init__(self, *shape: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(shape))
        self.shift = nn.Parameter(torch.zeros(shape))

    def forward(self, Z: Tensor) -> Tensor:
        """(n, …) → (n, …)."""
        return normalise(Z, self.scale, self.shift)


class DropEdgeNetwork(Model):
    """X → x0 → `embed` → scores (n, k), where the first and the last map are convolutions, too.

    inner  the convolutions between the two
    read   the number of hidden layers that the last convolution reads, side by side
    """

    def __init__(
        self,
        d: int,
        k: int,
        inner: Iterable[nn.Module],
        read: int,
        width: int,
        self_weight: bool,
        batch_norm: bool,
        dropout: float,
    ):
        super().__init__()
        first = DropEdgeConv(d, width, self_weight, batch_norm)
        self.convs = nn.ModuleList([first, *inner])
        self.convs.append(DropEdgeConv(read * width, k, self_weight, batch_norm))
        self.drop = Dropout(dropout)

    def layer(self, l: int, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """The l-th convolution, followed by ReLU and dropout."""
        dropped: Tensor = self.drop(relu(self.convs[l](P, H)))
        return dropped

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        scores: Tensor = self.convs[-1](P, self.embed(P, X))
        return scores


class DropEdgeGCN(DropEdgeNetwork):
    """GCN as in DropEdge: a chain of `layers` convolutions, without dropout on the features."""

    card = ModelCard(
        paper="Rong et al. 2020",
        equation="H ← σ(P̃ H W + H W_self + b)",
        recipe={"lr": 0.01, **RECIPE},
    )

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: Layers = 2,
        width: Width = 128,
        self_weight: SelfWeight = False,
        batch_norm: BatchNorm = False,
        dropout: Rate = 0.5,
    ):
        inner = (
            DropEdgeConv(width, width, self_weight, batch_norm) for _ in range(between(layers))
        )
        super().__init__(d, k, inner, 1, width, self_weight, batch_norm, dropout)

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """The last hidden layer (n, width)."""
        H = self.layer(0, P, X)
        for l in range(1, len(self.convs) - 1):
            H = self.layer(l, P, H)
        return H


def between(layers: int) -> int:
    """The number of layers between the first and the last."""
    if layers < 2:
        raise InputError(
            f"layers counts the first and the last convolution and must be at least 2, got {layers}"
        )
    return layers - 2


def normalise(Z: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """What NodeNorm computes, with these weights."""
    # authors: evaluate with running means over the epochs; here: with the means over the nodes, as
    # in training, because the full graph is the batch.  So a model has no state but its weights.
    flat = batch_norm(
        Z.flatten(1), None, None, scale.flatten(), shift.flatten(), training=True, eps=EPSILON
    )
    return flat.view_as(Z)
