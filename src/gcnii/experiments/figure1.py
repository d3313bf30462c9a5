"""Figure 1: accuracy of a GCN with residual connections by degree and depth.  The paper prints no numbers.

Group i holds the nodes of degree 2^i … 2^(i+1) - 1, self-loops not counted.  All nodes count, those learnt from too:
the eight groups that the authors speak of exist on Cora only so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcnii.experiments.cells import Cell
from gcnii.experiments.found import FOUND
from gcnii.experiments.printed import DEPTHS, PUBLIC
from gcnii.graph import Graph

RUNS = 10
NOTE = "settings are ours: the paper gives none for this figure"


def _cell(name: str, layers: int) -> Cell:
    cell = f"figure1/{name}/{layers}"
    return Cell(
        table="figure1",
        row=name.capitalize(),
        column=str(layers),
        graph=name,
        model="gcn-residual",
        settings={"layers": layers} | FOUND.get(cell, {}),
        runs=RUNS,
        note=NOTE,
        by_degree=True,
    )


CELLS = tuple(_cell(name, layers) for name in PUBLIC for layers in DEPTHS)


def degrees(graph: Graph) -> NDArray[np.int64]:
    """(n,) number of different neighbours; a node is not its own."""
    u, v = graph.edges[:, graph.edges[0] != graph.edges[1]]
    pairs = np.unique(np.minimum(u, v) * graph.n + np.maximum(u, v))
    return np.bincount(np.concatenate(np.divmod(pairs, graph.n)), minlength=graph.n)


def by_degree(graph: Graph, labels: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Accuracy of these labels in each group of degrees; who has no neighbour or no known label is in none."""
    degree, known = degrees(graph), graph.labelled
    groups = []
    for i in range(int(np.log2(max(degree.max(initial=1), 1))) + 1):
        inside = known & (degree >= 2**i) & (degree < 2 ** (i + 1))
        if inside.any():
            right = float((labels[inside] == graph.labels[inside]).mean())
            groups.append({"from": 2**i, "below": 2 ** (i + 1), "nodes": int(inside.sum()), "accuracy": right})
    return groups
