"""GCNII as others run it: the same network and P̃ in plain, eager PyTorch, one run at a time."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import inf, log

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, dropout, relu

from gcnii.graph import Graph
from gcnii.propagation import GraphAdjacency
from gcnii.train.plan import Plan
from gcnii_paper.bench.cases import Who
from gcnii_paper.bench.graphs import BenchGraph

Mask = NDArray[np.bool_]


class Network(nn.Module):
    """GCNII's skeleton with torch's dropout and dense X; `convs` are the baseline's layers."""

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
    """The authors' layer: a sparse product, then (1-α), α, θ and 1-θ applied to full matrices."""

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
    """A layer plus its own input, as on PPI."""

    def __init__(self, conv: nn.Module):
        super().__init__()
        self.conv = conv

    def forward(self, H: Tensor, H0: Tensor, adjacency: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        added: Tensor = self.conv(H, H0, adjacency) + H
        return added


def build_network(who: Who, plan: Plan, d: int, k: int) -> Network:
    """The plan's network, `gcnii` or `gcnii-ppi`, made of the baseline's layers."""
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
    """P̃: COO as in the authors' code, CSR for PyG and for the authors' layer on CSR."""
    P = links.whole
    places = torch.stack([P.pattern.row_of, P.pattern.columns.long()])
    with warnings.catch_warnings(), torch.sparse.check_sparse_tensor_invariants(False):
        # torch warns once per process that CSR is in beta state, or that it is not checked
        warnings.simplefilter("ignore")
        matrix = torch.sparse_coo_tensor(places, P.values, P.shape, is_coalesced=True)
        return matrix if who == "authors" else matrix.to_sparse_csr()


@dataclass(frozen=True, eq=False)
class TrainingPart:
    """What one step sees: a graph, and the nodes whose labels count."""

    X: Tensor
    adjacency: Tensor
    y: Tensor
    nodes: Tensor

    def loss(self, network: Network) -> Tensor:
        """The entropy of the nodes' scores."""
        return entropy(network(self.X, self.adjacency)[self.nodes], self.y[self.nodes])


def entropy(scores: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy, for one label per node or for several."""
    of = binary_cross_entropy_with_logits if y.ndim == 2 else cross_entropy
    return of(scores, y)


class BaselineTraining:
    """A baseline in training.

    `val_loss` is that of the last epoch, read by the host as early stopping requires.
    """

    def __init__(self, who: Who, bench_graph: BenchGraph, plan: Plan, device: torch.device):
        self.train, self.val = _parts(who, bench_graph, plan, device)
        graph, recipe = bench_graph.graph, plan.recipe
        network = build_network(who, plan, graph.d, graph.k).to(device, recipe.dtype)
        dense = [*network.encode.parameters(), *network.decode.parameters()]
        groups = [
            {"params": list(network.convs.parameters()), "weight_decay": recipe.decay_conv},
            {"params": dense, "weight_decay": recipe.decay_dense},
        ]
        self.network, self.adam = network, torch.optim.Adam(groups, lr=recipe.lr)
        self.val_loss = inf

    def epochs(self, count: int) -> int:
        """Train `count` epochs, each a step for every part and an evaluation; returns `count`."""
        for _ in range(count):
            self.network.train()
            for part in self.train:
                self.adam.zero_grad()
                part.loss(self.network).backward()
                self.adam.step()
            self.network.eval()
            with torch.no_grad():
                losses = [float(part.loss(self.network)) for part in self.val]
            self.val_loss = sum(losses) / len(losses)
        return count


def _parts(
    who: Who, bench_graph: BenchGraph, plan: Plan, device: torch.device
) -> list[list[TrainingPart]]:
    """To train on and to stop by: the whole graph; of several graphs, those with training nodes and
    those with validation nodes.
    """
    graph, links = bench_graph.graph, bench_graph.links.to(device, plan.recipe.dtype)
    X, y = dense_tensors(graph, device, plan.recipe.dtype)
    roles, part = (graph.splits[0].train, graph.splits[0].val), graph.part
    if part is None:
        P = adjacency_for(who, links)
        return [[TrainingPart(X, P, y, _numbers(mask, device))] for mask in roles]

    def one(number: int, mask: Mask) -> TrainingPart:
        inside = np.asarray(part == number)
        nodes = _numbers(inside, device)
        P = adjacency_for(who, links.induced(nodes))
        return TrainingPart(X[nodes], P, y[nodes], _numbers(mask[inside], device))

    return [[one(number, mask) for number in np.unique(part[mask])] for mask in roles]


def dense_tensors(graph: Graph, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """X, dense, and y."""
    X = graph.X.toarray() if isinstance(graph.X, sp.csr_array) else graph.X
    y = torch.tensor(graph.labels, device=device)
    return torch.tensor(X).to(device, dtype), y.to(dtype) if graph.multilabel else y


def _numbers(mask: Mask, device: torch.device) -> Tensor:
    return torch.tensor(np.flatnonzero(mask), device=device)
