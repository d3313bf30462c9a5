"""The same training as others run it, one run at a time: GCNII's network and P̃ with the authors'
layer or PyG's.

    pyg           PyG's layer on P̃ as CSR, eagerly
    pyg-edges     on edge_index and weights, eagerly
    pyg-graph     on edge_index, a whole epoch captured in one CUDA graph, with fused Adam
    pyg-compiled  on edge_index by torch.compile(mode="reduce-overhead"), with fused Adam
    authors       the authors' layer on P̃ as COO, eagerly; authors-csr: as CSR
    pyg-sampled   GraphSAGE and GAT of PyG's layers on sampled neighbours, eagerly

CSR cannot be captured: torch's product copies from the host.  PyG's own NeighborLoader needs
pyg-lib or torch-sparse, which are compiled for each torch; so neighbours are drawn here as one does
it with torch alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    dropout,
    elu,
    normalize,
    relu,
)

from gcnii.errors import GcniiError, InputError
from gcnii.graph import Graph
from gcnii.graph.arrays import dense
from gcnii.kernels import row_and_step
from gcnii.propagation import Adjacency
from gcnii.train.group import CapturedEpoch
from gcnii.train.plan import Plan
from gcnii_paper.bench.cases import Who
from gcnii_paper.bench.graphs import BenchGraph

Mask = NDArray[np.bool_]
Links = tuple[Tensor, ...]  # P̃ as one sparse matrix; or edge_index, (2, entries), and its weights
Network = Callable[[Tensor, Links], Tensor]


class BaselineNetwork(nn.Module):
    """GCNII's skeleton with torch's dropout and dense X; `convs` are the baseline's layers."""

    def __init__(self, d: int, k: int, convs: list[nn.Module], width: int, rate: float):
        super().__init__()
        self.encode, self.decode = nn.Linear(d, width), nn.Linear(width, k)
        self.convs = nn.ModuleList(convs)
        self.rate = rate

    def forward(self, X: Tensor, links: Links) -> Tensor:
        """(n, d) → (n, k)."""
        H = H0 = relu(self.encode(dropout(X, self.rate, self.training)))
        for conv in self.convs:
            H = relu(conv(dropout(H, self.rate, self.training), H0, *links))
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

    def forward(self, H: Tensor, H0: Tensor, *links: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        added: Tensor = self.conv(H, H0, *links) + H
        return added


def build_network(who: Who, plan: Plan, d: int, k: int) -> BaselineNetwork:
    """The plan's network, `gcnii` or `gcnii-ppi`, made of the baseline's layers."""
    layers, width, alpha, lam, rate = (
        plan.model_settings[name] for name in ("layers", "width", "alpha", "lam", "dropout")
    )
    layer = _pyg_gcn2 if who.startswith("pyg") else AuthorsLayer
    convs: list[nn.Module] = [layer(width, alpha, lam, l) for l in range(1, layers + 1)]
    if plan.model == "gcnii-ppi":
        convs = [Skip(conv) for conv in convs]
    return BaselineNetwork(d, k, convs, width, rate)


def _pyg_gcn2(width: int, alpha: float, lam: float, l: int) -> nn.Module:
    how = {"alpha": alpha, "theta": lam, "layer": l, "normalize": False, "add_self_loops": False}
    return pyg_layer("GCN2Conv")(width, **how)


def pyg_layer(name: str) -> type[nn.Module]:
    """The class of that name in torch_geometric.nn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses what torch has deprecated
        from torch_geometric import nn as layers
    layer: type[nn.Module] = getattr(layers, name)
    return layer


def links_for(who: Who, adjacency: Adjacency) -> Links:
    """P̃ in the form that this code multiplies by."""
    P = adjacency.whole
    row, column = P.pattern.row_of, P.pattern.columns.long()
    if who in ("pyg-edges", "pyg-graph", "pyg-compiled"):
        return torch.stack([column, row]), P.values  # from column to row
    places = torch.stack([row, column])
    with warnings.catch_warnings(), torch.sparse.check_sparse_tensor_invariants(False):
        # torch warns once per process that CSR is in beta state, or that it is not checked
        warnings.simplefilter("ignore")
        matrix = torch.sparse_coo_tensor(places, P.values, P.shape, is_coalesced=True)
        return (matrix if who == "authors" else matrix.to_sparse_csr(),)


@dataclass(frozen=True, eq=False)
class TrainingPart:
    """What one step sees: a graph, and the nodes whose labels count."""

    X: Tensor
    links: Links
    y: Tensor
    nodes: Tensor

    def loss(self, network: Network) -> Tensor:
        """The entropy of the nodes' scores."""
        return entropy(network(self.X, self.links)[self.nodes], self.y[self.nodes])


def entropy(scores: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy, for one label per node or for several."""
    of = binary_cross_entropy_with_logits if y.ndim == 2 else cross_entropy
    return of(scores, y)


class BaselineTraining:
    """A baseline in training, its epochs run kernel by kernel.

    val_loss  that of the last epoch, read by the host as early stopping requires
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
        quick = device.type == "cuda" and who in ("pyg-graph", "pyg-compiled")
        fused = True if quick else None  # None: torch decides
        adam = torch.optim.Adam(groups, lr=recipe.lr, fused=fused, capturable=quick)
        self.network, self.adam = network, adam
        self.scores: Network = compiled(network) if who == "pyg-compiled" else network
        self.measured = torch.zeros((), device=device, dtype=recipe.dtype)
        self.val_loss = inf

    def epoch(self) -> None:
        """A step for every part and an evaluation; the host waits for nothing."""
        self.network.train()
        for part in self.train:
            self.adam.zero_grad()
            part.loss(self.scores).backward()
            self.adam.step()
        self.network.eval()
        with torch.no_grad():
            losses = torch.stack([part.loss(self.scores) for part in self.val])
            self.measured.copy_(losses.mean())

    def epochs(self, count: int) -> int:
        """Train `count` epochs; returns `count`."""
        for _ in range(count):
            self.epoch()
            self.val_loss = float(self.measured)
        return count


def compiled(network: BaselineNetwork) -> Network:
    """The network by torch.compile, each call a CUDA graph of its own."""
    run = torch.compile(network, mode="reduce-overhead")

    def scores(X: Tensor, links: Links) -> Tensor:
        # What the last call returned has been used, and may be overwritten.
        torch.compiler.cudagraph_mark_step_begin()
        found: Tensor = run(X, links)
        return found

    return scores


class CapturedTraining:
    """A baseline whose whole epoch is one CUDA graph, warmed up and captured as ours is.

    The host reads the validation loss after the last epoch alone.
    """

    def __init__(self, bench_graph: BenchGraph, plan: Plan, device: torch.device):
        self.eager = BaselineTraining("pyg-graph", bench_graph, plan, device)
        self.captured, self.val_loss = CapturedEpoch(device), inf

    def epochs(self, count: int) -> int:
        """Train `count` epochs; returns `count`."""
        for _ in range(count):
            self.captured(self.eager.epoch)
        if self.captured.refused:
            raise GcniiError(f"no CUDA graph: {self.captured.why_not}")
        self.val_loss = float(self.eager.measured)
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
        P = links_for(who, links)
        return [[TrainingPart(X, P, y, numbers_of(mask, device))] for mask in roles]

    def one(number: int, mask: Mask) -> TrainingPart:
        inside = np.asarray(part == number)
        nodes = numbers_of(inside, device)
        P = links_for(who, links.induced(nodes))
        return TrainingPart(X[nodes], P, y[nodes], numbers_of(mask[inside], device))

    return [[one(number, mask) for number in np.unique(part[mask])] for mask in roles]


def dense_tensors(graph: Graph, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """X, dense, and y."""
    y = torch.tensor(graph.labels, device=device)
    return torch.tensor(dense(graph.X)).to(device, dtype), y.to(dtype) if graph.multilabel else y


def numbers_of(mask: Mask, device: torch.device) -> Tensor:
    """The nodes of a mask."""
    return torch.tensor(np.flatnonzero(mask), device=device)


Hop = tuple[Tensor, int]  # (2, links): source and row, and the number of rows


@dataclass(frozen=True, eq=False)
class NeighbourLists:
    """Who is a neighbour of whom, without loops, in CSR form: rows (n + 1,), columns (links,)."""

    rows: Tensor
    columns: Tensor

    @classmethod
    def of(cls, bench_graph: BenchGraph, device: torch.device) -> NeighbourLists:
        """The links of a graph."""
        pattern = bench_graph.links.pattern
        there = bench_graph.links.weights.cpu() != 0
        row, columns = pattern.row_of.cpu(), pattern.columns.cpu().long()
        there &= row != columns
        count = torch.bincount(row[there], minlength=pattern.shape[0])
        rows = torch.cat([count.new_zeros(1), count.cumsum(0)])
        return cls(rows.to(device), columns[there].to(device))

    def draw(self, nodes: Tensor, fanout: int) -> tuple[Tensor, Tensor]:
        """Up to `fanout` links of each node, or all (0): (2, links) places, and their nodes.

        The nodes come first among those that are reached.
        """
        row, step = row_and_step(self.rows.diff()[nodes])
        if fanout:
            # Within each row at random; then the first of each row.
            order = torch.argsort(row + torch.rand(len(row), device=row.device, dtype=torch.double))
            chosen = order[step < fanout]
            row, step = row[chosen], step[chosen]
        sources = self.columns[self.rows[nodes][row] + step]
        place = torch.full((len(self.rows) - 1,), -1, device=nodes.device)
        place[nodes] = torch.arange(len(nodes), device=nodes.device)
        strange = torch.unique(sources[place[sources] < 0])
        reached = torch.cat([nodes, strange])
        place[strange] = torch.arange(len(nodes), len(reached), device=nodes.device)
        return torch.stack([place[sources], row]), reached


class SampledSAGE(nn.Module):
    """GraphSAGE's mean, concat(H W, mean W') per layer, where PyG takes the mean."""

    def __init__(self, plan: Plan, d: int, k: int):
        super().__init__()
        layers, width, self.rate = (
            plan.model_settings[name] for name in ("layers", "width", "dropout")
        )
        self.mean = pyg_layer("SimpleConv")(aggr="mean")
        reads = [d, *[2 * width] * (layers - 1)]
        self.own, self.near = (
            nn.ModuleList(nn.Linear(each, width, bias=False) for each in reads) for _ in range(2)
        )
        self.decode = nn.Linear(2 * width, k)

    def forward(self, hops: list[Hop], X: Tensor) -> Tensor:
        """(nodes of the first hop, d) → (rows of the last, k)."""
        H = X
        for (links, rows), own, near in zip(hops, self.own, self.near, strict=True):
            H = dropout(H, self.rate, self.training)
            mean = self.mean((H, H[:rows]), links)
            H = relu(torch.cat([own(H[:rows]), near(mean)], 1))
        scores: Tensor = self.decode(dropout(normalize(H), self.rate, self.training))
        return scores


class SampledGAT(nn.Module):
    """GAT of PyG's GATConv, which adds each node's link to itself."""

    def __init__(self, plan: Plan, d: int, k: int):
        super().__init__()
        layers, width, heads, out_heads, self.rate = (
            plan.model_settings[name]
            for name in ("layers", "width", "heads", "out_heads", "dropout")
        )
        conv = pyg_layer("GATConv")
        reads = [d, *[heads * width] * (layers - 1)]
        convs = [conv(each, width, heads, dropout=self.rate) for each in reads[:-1]]
        last = conv(reads[-1], k, out_heads, concat=False, dropout=self.rate)
        self.convs = nn.ModuleList([*convs, last])

    def forward(self, hops: list[Hop], X: Tensor) -> Tensor:
        """As `SampledSAGE`."""
        H = X
        for l, ((links, rows), conv) in enumerate(zip(hops, self.convs, strict=True)):
            H = dropout(elu(H) if l else H, self.rate, self.training)
            H = conv((H, H[:rows]), links)
        return H


def sampled_network(plan: Plan, d: int, k: int) -> nn.Module:
    """The plan's network, of PyG's layers."""
    match plan.model:
        case "graphsage-mean":
            return SampledSAGE(plan, d, k)
        case "gat":
            return SampledGAT(plan, d, k)
    raise InputError(f"PyG's layers are for graphsage-mean and gat here, not for {plan.model}")


class SampledTraining:
    """Epochs of steps on sampled neighbours, each followed by an evaluation on all of them.

    `val_loss` is that of the last epoch, read by the host as early stopping requires.
    """

    def __init__(self, bench_graph: BenchGraph, plan: Plan, device: torch.device):
        graph, recipe = bench_graph.graph, plan.recipe
        layers, split = plan.model_settings["layers"], graph.splits[0]
        self.fanout = [*recipe.fanout, *[recipe.fanout[-1]] * layers][:layers]
        self.links, self.size = NeighbourLists.of(bench_graph, device), recipe.batch_size
        self.X, self.y = dense_tensors(graph, device, recipe.dtype)
        self.train, self.val = (numbers_of(mask, device) for mask in (split.train, split.val))
        # All nodes, or the graphs with nodes to evaluate.
        asked = split.val | split.test
        part = np.zeros(graph.n) if graph.part is None else graph.part
        self.asked = numbers_of(np.isin(part, part[asked]), device)
        self.whole = [(self.links.draw(self.asked, 0)[0], len(self.asked))] * layers
        self.network = sampled_network(plan, graph.d, graph.k).to(device, recipe.dtype)
        self.adam = torch.optim.Adam(
            self.network.parameters(), lr=recipe.lr, weight_decay=recipe.decay_conv
        )
        self.val_loss = inf

    def epochs(self, count: int) -> int:
        """Train `count` epochs; returns `count`."""
        for _ in range(count):
            self.network.train()
            order = self.train[torch.randperm(len(self.train), device=self.train.device)]
            for nodes in order.split(self.size):
                self.adam.zero_grad()
                entropy(self.network(*self.drawn(nodes)), self.y[nodes]).backward()
                self.adam.step()
            self.network.eval()
            with torch.no_grad():
                scores = self.network(self.whole, self.X[self.asked])
                found = scores[torch.searchsorted(self.asked, self.val)]
                self.val_loss = float(entropy(found, self.y[self.val]))
        return count

    def drawn(self, nodes: Tensor) -> tuple[list[Hop], Tensor]:
        """What a step on these nodes reads: the links of each layer, and X."""
        hops: list[Hop] = []
        for fanout in self.fanout:
            links, reached = self.links.draw(nodes, fanout)
            hops.insert(0, (links, len(nodes)))
            nodes = reached
        return hops, self.X[nodes]
