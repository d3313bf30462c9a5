"""GCNII as others run it: the same network on the same P̃, trained by plain PyTorch, eagerly, one
run at a time.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import inf, log
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, dropout, relu

from gcnii.paper.bench.cases import Who
from gcnii.paper.bench.graphs import BenchGraph
from gcnii.propagation import GraphAdjacency
from gcnii.train.plan import Plan


class Network(nn.Module):
    """GCNII's skeleton with torch's own dropout on dense features; `convs` are the peer's layers."""

    def __init__(self, d: int, k: int, convs: list[nn.Module], width: int, rate: float):
        super().__init__()
        self.encode, self.decode = nn.Linear(d, width), nn.Linear(width, k)
        self.convs = nn.ModuleList(convs)
        self.rate = rate

    def forward(self, X: Tensor, adjacency: Tensor) -> Tensor:
        """(n, d) → (n, k)."""
        H = H0 = relu(self.encode(dropout(X, self.rate, self.training)))
        for conv in self.convs:
            H = relu(conv(dropout(H, self.rate, self.training), H0, adjacency))
        scores: Tensor = self.decode(dropout(H, self.rate, self.training))
        return scores


class AuthorsLayer(nn.Module):
    """The authors' manner: a sparse product, then (1-α), α, θ and 1-θ applied to full matrices."""

    def __init__(self, width: int, alpha: float, lam: float, l: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width).uniform_(-(width**-0.5), width**-0.5))
        self.alpha, self.lam, self.l = alpha, lam, l

    def forward(self, H: Tensor, H0: Tensor, adjacency: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        theta = log(self.lam / self.l + 1)
        support = (1 - self.alpha) * torch.spmm(adjacency, H) + self.alpha * H0
        return theta * torch.mm(support, self.weight) + (1 - theta) * support


class Skip(nn.Module):
    """A layer + its own input, as on PPI."""

    def __init__(self, conv: nn.Module):
        super().__init__()
        self.conv = conv

    def forward(self, H: Tensor, H0: Tensor, adjacency: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        added: Tensor = self.conv(H, H0, adjacency) + H
        return added


def build_network(who: Who, plan: Plan, d: int, k: int) -> Network:
    """The plan's network, which is `gcnii` or `gcnii-ppi`, made of the peer's layers."""
    layers, width, alpha, lam, rate = (
        plan.model_settings[name] for name in ("layers", "width", "alpha", "lam", "dropout")
    )
    layer = _pyg_layer if who == "pyg" else AuthorsLayer
    convs: list[nn.Module] = [layer(width, alpha, lam, l) for l in range(1, layers + 1)]
    if plan.model == "gcnii-ppi":
        convs = [Skip(conv) for conv in convs]
    return Network(d, k, convs, width, rate)


def _pyg_layer(width: int, alpha: float, lam: float, l: int) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses what torch has deprecated
        from torch_geometric.nn import GCN2Conv
    layer: nn.Module = GCN2Conv(
        width, alpha=alpha, theta=lam, layer=l, normalize=False, add_self_loops=False
    )
    return layer


def adjacency_for(who: Who, links: GraphAdjacency) -> Tensor:
    """P̃, normalised once: COO in the authors' manner, CSR for PyG and for those who mended that."""
    P = links.whole
    places = torch.stack([P.pattern.row_of, P.pattern.columns.long()])
    with warnings.catch_warnings(), torch.sparse.check_sparse_tensor_invariants(False):
        # torch says once a process that CSR is in beta state, or that nobody checks it
        warnings.simplefilter("ignore")
        matrix = torch.sparse_coo_tensor(places, P.values, P.shape, is_coalesced=True)
        return matrix if who == "authors" else matrix.to_sparse_csr()


@dataclass(frozen=True, eq=False)
class Part:
    """What one step sees, and whose labels count in it."""

    X: Tensor
    adjacency: Tensor
    y: Tensor
    nodes: Tensor

    def loss(self, network: Network) -> Tensor:
        """Cross-entropy of one label a node, or of several."""
        scores, y = network(self.X, self.adjacency)[self.nodes], self.y[self.nodes]
        return (
            binary_cross_entropy_with_logits(scores, y) if y.ndim == 2 else cross_entropy(scores, y)
        )


class Peer:
    """A peer in training; `val_loss` is that of the last epoch, read by the host as early stopping
    has to.
    """

    def __init__(self, who: Who, scene: BenchGraph, plan: Plan, device: torch.device):
        self.train, self.val = _parts(who, scene, plan, device)
        network = build_network(who, plan, scene.graph.d, scene.graph.k).to(
            device, plan.recipe.dtype
        )
        dense = [*network.encode.parameters(), *network.decode.parameters()]
        groups: list[dict[str, Any]] = [
            {"params": network.convs.parameters(), "weight_decay": plan.recipe.decay_conv},
            {"params": dense, "weight_decay": plan.recipe.decay_dense},
        ]
        self.network, self.adam = network, torch.optim.Adam(groups, lr=plan.recipe.lr)
        self.val_loss = inf

    def epochs(self, count: int) -> int:
        """Each a step for every part, and an evaluation."""
        for _ in range(count):
            self.network.train()
            for part in self.train:
                self.adam.zero_grad()
                part.loss(self.network).backward()
                self.adam.step()
            self.network.eval()
            with torch.no_grad():
                self.val_loss = sum(float(part.loss(self.network)) for part in self.val) / len(
                    self.val
                )
        return count


def _parts(who: Who, scene: BenchGraph, plan: Plan, device: torch.device) -> list[list[Part]]:
    """To learn from and to stop by: the full graph; or, of several graphs, those with training or
    validation nodes.
    """
    graph, dtype = scene.graph, plan.recipe.dtype
    links, roles = scene.links.to(device, dtype), (graph.splits[0].train, graph.splits[0].val)
    X = torch.tensor(graph.X.toarray() if isinstance(graph.X, sp.csr_array) else graph.X).to(
        device, dtype
    )
    y = torch.tensor(graph.labels, device=device)
    y = y.to(dtype) if graph.multilabel else y

    def numbers(mask: NDArray[np.bool_]) -> Tensor:
        return torch.tensor(np.flatnonzero(mask), device=device)

    part = graph.part
    if part is None:
        adjacency = adjacency_for(who, links)
        return [[Part(X, adjacency, y, numbers(mask))] for mask in roles]

    def one(number: int, mask: NDArray[np.bool_]) -> Part:
        nodes = numbers(np.asarray(part == number))
        adjacency = adjacency_for(who, links.induced(nodes))
        return Part(X[nodes], adjacency, y[nodes], numbers(mask[part == number]))

    return [[one(number, mask) for number in np.unique(part[mask])] for mask in roles]
