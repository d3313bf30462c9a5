"""What the graph around a node is like: its degree, its homophily, how far the nearest label is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.analysis.degree import span
from gcnii.files import Document
from gcnii.graph import Graph, Split
from gcnii.propagation.adjacency import adjacency
from gcnii.targets.answers import Floats, Ints, share
from gcnii.targets.interval import wilson

DEGREES = (0, 1, 2, 4, 8, 16, 32, 64)  # where the groups begin
TINY = 10  # nodes of a group that is joined to the next
QUARTERS = (0.25, 0.5, 0.75)
FURTHEST = 3  # steps that are counted one by one

Groups = dict[str, list[Document]]
Nodes = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Of each node of a graph; edges are taken in both directions and without their weights."""

    graph: Graph

    @cached_property
    def A(self) -> sp.csr_array:
        """(n, n) ones where two nodes are joined."""
        A = adjacency(self.graph, "both", "remove")
        return sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), A.shape)

    @cached_property
    def degree(self) -> Ints:
        """(n,) the number of neighbours."""
        return np.asarray(np.diff(self.A.indptr), np.int64)

    @cached_property
    def homophily(self) -> Floats:
        """(n,) the share of a node's labelled neighbours with its own label; NaN without any."""
        graph, known = self.graph, np.flatnonzero(self.graph.labelled)
        y = graph.labels
        L = sp.csr_array((np.ones(len(known)), (known, y[known])), (graph.n, graph.k))
        counts = sp.csr_array(self.A @ L)
        same = np.asarray(counts.multiply(L).sum(1)).ravel()
        return np.where(graph.labelled, share(same, np.asarray(counts.sum(1)).ravel()), np.nan)

    def distance(self, train: Nodes) -> Floats:
        """(n,) the steps to the nearest training node, up to three; infinity beyond."""
        found = np.where(train, 0.0, inf)
        for step in range(1, FURTHEST + 1):
            reached = self.A @ np.isfinite(found).astype(np.float64) > 0
            found = np.where(reached & np.isinf(found), step, found)
        return found


def groups(around: Neighbourhood, split: Split, nodes: Ints, right: Nodes) -> Groups:
    """Accuracy by degree, by homophily and by distance, of the nodes that are right or wrong."""
    return {
        "degree": by_degree(around.degree[nodes], right),
        "homophily": by_homophily(around.homophily[nodes], right),
        "distance": by_distance(around.distance(split.train)[nodes], right),
    }


def by_degree(degree: Ints, right: Nodes) -> list[Document]:
    """In spans 0, 1, 2–3, 4–7, … 64 and more; a tiny one is joined to its neighbour."""
    spans: list[tuple[float, float]] = []
    for low, high in pairwise((*DEGREES, inf)):
        if not _between(degree, low, high).any():
            continue
        if spans and _between(degree, *spans[-1]).sum() < TINY:
            low, _ = spans.pop()
        spans.append((low, high))
    if len(spans) > 1 and _between(degree, *spans[-1]).sum() < TINY:
        _, high = spans.pop()
        spans[-1] = spans[-1][0], high
    return [_row(_span(*one), _between(degree, *one), right) for one in spans]


def _between(degree: Ints, low: float, high: float) -> Nodes:
    return np.asarray((degree >= low) & (degree < high))


def _span(low: float, high: float) -> str:
    return f"{low:g} and more" if high == inf else span(int(low), high)


def by_homophily(homophily: Floats, right: Nodes) -> list[Document]:
    """In quarters, and the nodes without a labelled neighbour."""
    edges, rows = (0.0, *QUARTERS, inf), []
    for low, high in pairwise(edges):
        name = f"{low:.0%} to {min(high, 1):.0%}"
        rows.append(_row(name, (homophily >= low) & (homophily < high), right))
    rows.append(_row("no labelled neighbour", np.isnan(homophily), right))
    return [row for row in rows if row["nodes"]]


def by_distance(distance: Floats, right: Nodes) -> list[Document]:
    """In steps to the nearest training node."""
    steps = range(1, FURTHEST + 1)
    rows = [_row(str(step), distance == step, right) for step in steps]
    rows.append(_row("more, or none in reach", np.isinf(distance), right))
    return [row for row in rows if row["nodes"]]


def _row(name: str, inside: Nodes, right: Nodes) -> Document:
    nodes = int(inside.sum())
    if not nodes:
        return {"group": name, "nodes": 0}
    accuracy = float(right[inside].mean())
    low, high = wilson(accuracy, nodes)
    return {"group": name, "nodes": nodes, "accuracy": accuracy, "low": low, "high": high}
