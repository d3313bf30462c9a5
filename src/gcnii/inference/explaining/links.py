"""Which links matter: the gradient × weight of each, taken through the normalisation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.graph import Graph
from gcnii.inference.explaining.network import Network
from gcnii.inference.explaining.question import Question
from gcnii.nn import MODELS
from gcnii.train.plan import Plan

Ints = NDArray[np.int64]
NEAR = 2  # hops: the neighbourhood that random links are drawn from


@dataclass(frozen=True, eq=False)
class Links:
    """The links that a model gathers over, each once; a node's link to itself is none.

    entries  the adjacency's entries off its diagonal
    link     (entries,) the link of each of these; both directions of an undirected one are one
    ends     (2, links) the nodes that it joins: in the direction of the graph's edge if it is
             one-way, else the lower number first
    total    the number of entries of the adjacency
    """

    entries: Tensor
    link: Tensor
    ends: Ints
    total: int

    @classmethod
    def of(cls, network: Network) -> Links:
        """The links of the graph that the network runs on."""
        task = network.task
        pattern, recipe = task.adjacency.pattern, network.plan.recipe
        rows, columns = pattern.row_of, pattern.columns.long()
        entries = torch.nonzero(rows != columns)[:, 0]
        one_way = task.graph.directed and recipe.direction != "both"
        if one_way:
            link = torch.arange(len(entries), device=entries.device)
        else:
            link = torch.unique(task.adjacency.pairs[entries], return_inverse=True)[1]
        count = int(link.max()) + 1 if len(link) else 0
        both = torch.stack([rows[entries], columns[entries]])
        if not one_way:
            both = both.sort(0)[0]  # so that either of two entries may be written last
            if task.graph.directed:
                back = torch.from_numpy(_only_back(task.graph, both.cpu().numpy()))
                both = torch.where(back.to(both.device), both.flip(0), both)
        elif recipe.direction == "in":  # the entry (v, u) is of the edge u → v
            both = both.flip(0)
        ends = both.new_zeros(2, count)
        ends[:, link] = both
        return cls(entries, link, np.asarray(ends.cpu()), len(rows))

    def __len__(self) -> int:
        return int(self.ends.shape[1])

    def without(self, dropped: Ints) -> Tensor:
        """(total,) whether an entry is kept when these links are dropped."""
        gone = torch.zeros(len(self), dtype=torch.bool, device=self.link.device)
        gone[torch.as_tensor(dropped, device=gone.device)] = True
        kept = torch.ones(self.total, dtype=torch.bool, device=gone.device)
        kept[self.entries] = ~gone[self.link]
        return kept

    def near(self, hops: NDArray[np.float64]) -> Ints:
        """The links whose two ends are both within NEAR of these `hops` (n,) of the node."""
        return np.flatnonzero((hops[self.ends] <= NEAR).all(0))


def _only_back(graph: Graph, pairs: Ints) -> NDArray[np.bool_]:
    """(pairs,) whether a directed graph has an edge from the second node to the first alone."""
    edges, there, back = (u * graph.n + v for u, v in (graph.edges, pairs, pairs[::-1]))
    return np.isin(back, edges) & ~np.isin(there, edges)


def effects(network: Network, links: Links, question: Question) -> NDArray[np.float64]:
    """(links,) by how much the log-probability in question would fall without each, by a gradient.

    The factor by which a link's weight is multiplied is 1 with it and 0 without it; the derivative
    by this factor is gradient × weight, and degrees are part of it: the rest is normalised anew.
    """
    kept = halfway(network, question.node).requires_grad_()
    (slope,) = torch.autograd.grad(network.log_probability(question, kept), kept)
    found = torch.zeros(len(links), dtype=torch.float64, device=slope.device)
    return np.asarray(found.index_add_(0, links.link, slope[links.entries].double()).cpu())


def halfway(network: Network, node: int) -> Tensor:
    """(total,) the factors at which the derivative is taken: ½ at the node's own links, else 1.

    To drop a link is a large change, and the slope halfway tells it better than the slope at one
    end: the midpoint rule.  On validation nodes of Cora it finds links that matter as much as those
    of a search by removal, and the slope at 1 finds weaker ones (docs/explaining.md).
    """
    pattern = network.task.adjacency.pattern
    rows, columns = pattern.row_of, pattern.columns
    own = ((rows == node) | (columns == node)) & (rows != columns)
    return 1 - 0.5 * own.to(network.task.adjacency.weights)


def strongest(effect: NDArray[np.float64], count: int) -> Ints:
    """The links that support the label most, at most `count`, the strongest first."""
    order = np.argsort(-effect, kind="stable")[:count]
    return order[effect[order] > 0]


def why_unranked(plan: Plan) -> str:
    """Why no gradient ranks the links of this model; empty where one does."""
    card = MODELS[plan.model].card
    if not card.uses_graph:
        return f"{plan.model} looks at the features alone, so no link matters"
    # Geom-GCN takes no weights from the graph, because its neighbours are of its own making, but it
    # multiplies by them.
    if not card.uses_weights and "geometry" not in card.recipe:
        return (
            f"{plan.model} looks at which links there are, not at their weights, in some layers or "
            "all, so no gradient says which link matters"
        )
    return ""


def what_links_are(plan: Plan) -> str:
    """What the links are where they are not the graph's own; else empty."""
    recipe = plan.recipe
    if recipe.geometry != "none":
        return f"links join neighbours in the graph and in the {recipe.geometry} plane"
    if recipe.diffusion != "none":
        return (
            f"links are those of the diffusion ({recipe.diffusion}), which the model gathers over"
        )
    return ""
