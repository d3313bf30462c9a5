"""Accuracy by degree (section 5): which nodes does a deepening residual GCN lose first?"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from gcnii.files import Document
from gcnii.graph import Graph

HUB = 100  # the paper speaks of nodes with more neighbours than this
Row = Document  # a group as JSON has it: who, from, below (None: no bound), nodes, accuracy


def degrees(graph: Graph) -> NDArray[np.int64]:
    """(n,) the number of other nodes that each node is joined to, in either direction."""
    u, v = graph.edges[:, graph.edges[0] != graph.edges[1]]
    pairs = np.unique(np.concatenate([u * graph.n + v, v * graph.n + u]))
    return np.bincount(pairs // graph.n, minlength=graph.n)


def spans(degree: NDArray[np.int64]) -> list[tuple[int, int]]:
    """[2^i, 2^(i+1)) up to the highest degree."""
    return [(2**i, 2 ** (i + 1)) for i in range(int(degree.max(initial=0)).bit_length())]


def by_degree(graph: Graph, labels: NDArray[np.int64], split: int = 0) -> list[Row]:
    """Accuracy of predicted labels (n,) in each group that has nodes, and of the hubs.

    `all` are the nodes whose label is known, `test` the test nodes of the split; isolated nodes are
    in no group.
    """
    degree, right = degrees(graph), labels == graph.labels
    among = {"all": graph.labelled, "test": graph.splits[split].test}
    rows = []
    for who, nodes in among.items():
        for low, high in (*spans(degree), (HUB + 1, None)):
            inside = nodes & (degree >= low) & (degree < (high or inf))
            if inside.any():
                group = {"from": low, "below": high, "nodes": int(inside.sum())}
                rows.append({"who": who, **group, "accuracy": float(right[inside].mean())})
    return rows


def span(low: int, below: float) -> str:
    """A group of degrees: 1, 2–3, 4–7, …"""
    return str(low) if below == low + 1 else f"{low}–{below - 1:g}"
