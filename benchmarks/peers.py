"""GCNII as others run it: the same network, trained by plain PyTorch.  Each peer is a function that does one epoch."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, relu

from gcnii.graph import Graph
from gcnii.propagation import propagation_matrix

Epoch = Callable[[], float]


class Network(nn.Module):
    """GCNII's skeleton with torch's own dropout on dense features; `propagate(H, H0, l)` is the peer's layer."""

    def __init__(self, graph: Graph, layers: list[nn.Module], width: int, rate: float):
        super().__init__()
        self.encode, self.decode = nn.Linear(graph.d, width), nn.Linear(width, graph.k)
        self.convs = nn.ModuleList(layers)
        self.rate = rate

    def forward(self, X: Tensor, adjacency: Tensor) -> Tensor:
        H = H0 = relu(self.encode(dropout(X, self.rate, self.training)))
        for conv in self.convs:
            H = relu(conv(dropout(H, self.rate, self.training), H0, adjacency))
        return self.decode(dropout(H, self.rate, self.training))


class AuthorsLayer(nn.Module):
    """The authors' manner: the product of a COO matrix, then (1-α), α, θ and 1-θ applied to full matrices."""

    def __init__(self, width: int, alpha: float, lam: float, l: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width).uniform_(-(width**-0.5), width**-0.5))
        self.alpha, self.lam, self.l = alpha, lam, l

    def forward(self, H: Tensor, H0: Tensor, adjacency: Tensor) -> Tensor:
        theta = log(self.lam / self.l + 1)
        support = (1 - self.alpha) * torch.spmm(adjacency, H) + self.alpha * H0
        return theta * torch.mm(support, self.weight) + (1 - theta) * support


def _epoch(network: Network, graph: Graph, adjacency: Tensor) -> Epoch:
    X = torch.tensor(graph.X.toarray() if hasattr(graph.X, "toarray") else graph.X)
    y, split = torch.tensor(graph.labels), graph.splits[0]
    train, val = torch.tensor(split.train).nonzero()[:, 0], torch.tensor(split.val).nonzero()[:, 0]
    dense = [*network.encode.parameters(), *network.decode.parameters()]
    groups = [{"params": network.convs.parameters(), "weight_decay": 0.01}, {"params": dense, "weight_decay": 5e-4}]
    adam = torch.optim.Adam(groups, lr=0.01)

    def epoch() -> float:
        network.train()
        adam.zero_grad()
        cross_entropy(network(X, adjacency)[train], y[train]).backward()
        adam.step()
        network.eval()
        with torch.no_grad():
            return float(cross_entropy(network(X, adjacency)[val], y[val]))

    return epoch


def _sparse(graph: Graph) -> Tensor:
    """P̃ as a COO tensor."""
    P = propagation_matrix(graph).to("cpu", torch.float32)
    rows = torch.repeat_interleave(torch.arange(graph.n), P.pattern.rows.diff().long())
    return torch.sparse_coo_tensor(
        torch.stack([rows, P.pattern.columns.long()]), P.values, P.shape, check_invariants=False
    ).coalesce()


def authors_manner(graph: Graph, layers: int, width: int, alpha: float, lam: float, rate: float) -> Epoch:
    """Plain PyTorch as the authors wrote it."""
    convs = [AuthorsLayer(width, alpha, lam, l) for l in range(1, layers + 1)]
    return _epoch(Network(graph, convs, width, rate), graph, _sparse(graph))


def pyg(graph: Graph, layers: int, width: int, alpha: float, lam: float, rate: float) -> Epoch:
    """PyG's GCN2Conv on a CSR adjacency that is normalised once."""
    from torch_geometric.nn import GCN2Conv

    convs = [
        GCN2Conv(width, alpha=alpha, theta=lam, layer=l, normalize=False, add_self_loops=False)
        for l in range(1, layers + 1)
    ]
    return _epoch(Network(graph, convs, width, rate), graph, _sparse(graph).to_sparse_csr())
