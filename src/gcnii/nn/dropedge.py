"""DropEdge's networks (Rong et al. 2020): GCN, and IncepGCN; a third is `jknet`.

DropEdge itself is a way of training that works for every model: the recipe's `drop_edge`.

IncepGCN has parallel branches of 1, 2, … convolutions and shares no weight.  64 layers are 62
branches and 1,953 convolutions; the t-th convolutions of all branches that have one run as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, relu

from gcnii.dropout import Dropout, next_key, numbered_keys
from gcnii.errors import InputError
from gcnii.nn.engine.recompute import recompute
from gcnii.nn.model import Model, ModelCard, matmul, uniform
from gcnii.nn.settings import BatchNorm, Layers, Rate, SelfWeight, Settings, Width
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


# The most activations per replica of a group of branches; backward keeps three numbers for each.
# What does not fit into one group is computed twice.  On a CPU this hardly matters; on a GPU,
# groups cost launches, and ten replicas should fit.
KEPT = 1 << 26  # on a CPU: 0.75 GiB in float32
BYTES_KEPT = 150  # on a GPU: bytes of its memory per activation

Weights = dict[str, Tensor]


class BranchStack(nn.Module):
    """The t-th convolutions of all branches: W (branches, width, width), b (branches, width)."""

    def __init__(self, branches: int, width: int, self_weight: bool, batch_norm: bool):
        super().__init__()
        self.W = uniform(branches, width, width)
        self.b = uniform(branches, width)
        self.W_self = uniform(branches, width, width) if self_weight else None
        self.norm = NodeNorm(branches, width) if batch_norm else None

    def split(self, sizes: list[int]) -> list[Weights]:
        """The weights of the first sizes[0] branches, of the next sizes[1], and so on."""
        parts = {name: weight.split(sizes) for name, weight in self.named_parameters()}
        return [{name: part[i] for name, part in parts.items()} for i in range(len(sizes))]


class Incep(DropEdgeNetwork):
    """IncepGCN: a last convolution reads x0 and branches of 1, …, `layers` - 2 convolutions."""

    card = ModelCard(
        paper="Rong et al. 2020",
        equation="conv([x_0, b_1, b_2, …]) with b_j = j times σ(conv(·)) of x_0, no weight shared",
        recipe={"lr": 0.005, **RECIPE},
    )
    batched = frozenset()  # its branches hold the dropout that they recompute with

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: Layers = 4,
        width: Width = 128,
        self_weight: SelfWeight = False,
        batch_norm: BatchNorm = False,
        dropout: Rate = 0.5,
    ):
        branches = between(layers)
        inner = (
            BranchStack(count, width, self_weight, batch_norm) for count in range(branches, 0, -1)
        )
        super().__init__(d, k, inner, 1 + branches, width, self_weight, batch_norm, dropout)

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """x0 and the ends of the branches side by side: (n, (layers - 1) · width)."""
        H0 = self.layer(0, P, X)
        PH0 = P @ H0  # the one product that all branches share
        groups = grouped(len(self.convs) - 2, most_kept(H0.device) // H0.numel())
        # Evaluation drops nothing, and must not draw from torch's own stream where no key is set.
        if self.training:
            key = next_key(H0.device)
        else:
            key = torch.zeros(2, dtype=torch.int32, device=H0.device)
        ends = [H0]
        for group, weights in zip(groups, self._weights(groups), strict=True):
            run = branch_runner(P, group, list(weights), self.drop)
            inputs = (*P.tensors, H0, PH0, key, *weights.values())
            ends.append(run(*inputs) if len(groups) == 1 else recompute(run, *inputs))
        return torch.cat(ends, 1)

    def _weights(self, groups: list[range]) -> list[Weights]:
        """For each group, all its convolutions' weights: W (convolutions, width, width), …."""
        # One tensor, not one for each step: gradients that stay, scattered among activations that
        # are freed, fragment a CPU's memory so much that it takes three times as much.
        parts = []
        for t, conv in enumerate(self.convs[1:-1], 1):
            assert isinstance(conv, BranchStack)
            parts.append(conv.split([active(group, t) for group in groups]))
        return [
            {name: torch.cat([part[i][name] for part in parts]) for name in parts[0][i]}
            for i in range(len(groups))
        ]


def most_kept(device: torch.device) -> int:
    """The number of activations per replica to keep at once."""
    if device.type == "cpu":
        return KEPT
    return torch.cuda.get_device_properties(device).total_memory // BYTES_KEPT


def grouped(branches: int, most: int) -> list[range]:
    """The lengths 1 … branches in runs of at most `most` convolutions, or of a single branch."""
    groups: list[range] = []
    room = 0
    for length in range(1, branches + 1):
        if length > room:
            groups.append(range(length, length))
            room = most
        groups[-1] = range(groups[-1].start, length + 1)
        room -= length
    return groups


def active(group: range, t: int) -> int:
    """The number of branches of the group that have a t-th convolution."""
    return max(0, group.stop - max(group.start, t))


def branch_runner(
    matrix: Sparse, group: range, names: Sequence[str], drop: Dropout
) -> Callable[..., Tensor]:
    """The branches of a group as a function of tensors alone, for `recompute`.

    Its inputs are P's values and those of Pᵀ, H0, P H0, a key, and the weights of these names; it
    returns the ends of the branches side by side, (n, len(group) · width).
    """

    sizes = [active(group, t) for t in range(1, group.stop)]

    def run(
        values: Tensor, transposed: Tensor, H0: Tensor, PH0: Tensor, key: Tensor, *stacks: Tensor
    ) -> Tensor:
        P, H, ends = matrix.holding((values, transposed)), H0, []
        for t, own in enumerate(zip(*(stack.split(sizes) for stack in stacks), strict=True), 1):
            weights = dict(zip(names, own, strict=True))
            Z = first_step(H0, PH0, weights) if t == 1 else step(P, H, weights)
            H = drop.each(relu(Z), _step_keys(key, group, t))
            if t >= group.start:  # the shortest branch ends here
                ends.append(H[:, 0])
                H = H[:, 1:]
        return torch.cat(ends, 1)

    return run


def _step_keys(key: Tensor, group: range, t: int) -> Tensor:
    """A key for each branch of the group at its t-th convolution, whatever the other branches."""
    first = max(group.start, t)
    lengths = torch.arange(first, group.stop, dtype=torch.int32, device=key.device)
    return numbered_keys(key, lengths + (t << 16))


def first_step(H0: Tensor, PH0: Tensor, weights: Weights) -> Tensor:
    """The first convolutions of all branches, before σ: (n, width) → (n, branches, width)."""
    Z = torch.einsum("ni,bij->nbj", PH0, weights["W"]) + weights["b"]
    if "W_self" in weights:
        Z = Z + torch.einsum("ni,bij->nbj", H0, weights["W_self"])
    return _normed(Z, weights)


def step(P: Sparse, H: Tensor, weights: Weights) -> Tensor:
    """The next convolutions of all branches, before σ, with one product by P for all of them.

    (n, branches, width) → (n, branches, width).
    """
    Z = (P @ _times(H, weights["W"]).flatten(1)).unflatten(1, H.shape[1:]) + weights["b"]
    if "W_self" in weights:
        Z = Z + _times(H, weights["W_self"])
    return _normed(Z, weights)


def _times(H: Tensor, W: Tensor) -> Tensor:
    return (H.transpose(0, 1) @ W).transpose(0, 1)


def _normed(Z: Tensor, weights: Weights) -> Tensor:
    if "norm.scale" not in weights:
        return Z
    return normalise(Z, weights["norm.scale"], weights["norm.shift"])
