"""GraphSAGE and GAT on sampled neighbours as others train them: PyG's layers, draws by torch.

PyG's own NeighborLoader needs pyg-lib or torch-sparse, which are compiled for each torch; so the
neighbours are drawn here as one does it with torch alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, elu, normalize, relu

from gcnii.errors import InputError
from gcnii.kernels import row_and_step
from gcnii.train.plan import Plan
from gcnii_paper.bench.baselines import dense_tensors, entropy, numbers_of, pyg_layer
from gcnii_paper.bench.graphs import BenchGraph

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
