"""Accuracy by degree (section 5): which nodes does a deepening residual GCN lose first?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.targets.interval import wilson

HUB = 100  # the paper speaks of nodes with more neighbours than this
Who = Literal["all", "test"]
Row = Document  # a group as JSON has it: who, from, below (None: no bound), nodes, accuracy


@dataclass(frozen=True)
class DegreeGroup:
    """The nodes with a degree in [low, high), and the accuracy of each run on them."""

    low: int
    high: float
    nodes: int
    accuracies: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        """The mean over the runs."""
        return fmean(self.accuracies)

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval, over the nodes.

        More runs do not narrow it: they grade the same few nodes again.
        """
        return wilson(self.accuracy, self.nodes)


@dataclass(frozen=True)
class Curve:
    """One line of Figure 1: the groups [2^i, 2^(i+1)) by degree, and the hubs, if there are any."""

    graph: str
    layers: int
    who: Who
    groups: tuple[DegreeGroup, ...]
    hubs: DegreeGroup | None = None

    @property
    def collapsed(self) -> bool:
        """Whether at most half of the runs have distinct results, as when all predict one label."""
        results = list(zip(*(group.accuracies for group in self.groups), strict=True))
        return len(results) > 2 and 2 * len(set(results)) <= len(results)


def degrees(graph: Graph) -> NDArray[np.int64]:
    """(n,) the number of other nodes that each node is joined to, in either direction."""
    u, v = graph.edges[:, graph.edges[0] != graph.edges[1]]
    pairs = np.unique(np.concatenate([u * graph.n + v, v * graph.n + u]))
    return np.bincount(pairs // graph.n, minlength=graph.n)


def spans(degree: NDArray[np.int64]) -> list[tuple[int, int]]:
    """[2^i, 2^(i+1)) up to the highest degree."""
    return [(2**i, 2 ** (i + 1)) for i in range(int(degree.max(initial=0)).bit_length())]


def by_degree(graph: Graph, labels: NDArray[np.int64]) -> list[Row]:
    """Accuracy of predicted labels (n,) in each group that has nodes, and of the hubs.

    `all` are the nodes whose label is known, `test` the test nodes of the first split; isolated
    nodes are in no group.
    """
    degree, right = degrees(graph), labels == graph.labels
    among = {"all": graph.labelled, "test": graph.splits[0].test}
    rows = []
    for who, nodes in among.items():
        for low, high in (*spans(degree), (HUB + 1, None)):
            inside = nodes & (degree >= low) & (degree < (high or inf))
            if inside.any():
                group = {"from": low, "below": high, "nodes": int(inside.sum())}
                rows.append({"who": who, **group, "accuracy": float(right[inside].mean())})
    return rows


def curves(graph: str, layers: int, runs: Sequence[Sequence[Row]]) -> list[Curve]:
    """The lines of one graph and depth, for all nodes and for test nodes, from each run's rows."""
    found: dict[tuple[str, int, float], list[Row]] = {}
    for row in (row for rows in runs for row in rows):
        found.setdefault((row["who"], row["from"], row["below"] or inf), []).append(row)
    lines = []
    for who in get_args(Who):
        groups = [
            DegreeGroup(low, high, rows[0]["nodes"], tuple(row["accuracy"] for row in rows))
            for (whose, low, high), rows in found.items()
            if whose == who
        ]
        bounded = tuple(group for group in groups if group.high < inf)
        hubs = next((group for group in groups if group.high == inf), None)
        if bounded:
            lines.append(Curve(graph, layers, who, bounded, hubs))
    return lines


def span(low: int, below: float) -> str:
    """A group of degrees: 1, 2–3, 4–7, …"""
    return str(low) if below == low + 1 else f"{low}–{below - 1:g}"
