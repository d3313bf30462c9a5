"""Past: a graph as it was at a time, which is what a training on the past may see.

Three graphs are nested in one with times: up to its last training node, up to its last validation
node, and whole.  Training sees the first, validation the second; tests and predictions the third.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from gcnii.graph.arrays import Features, freeze
from gcnii.graph.graph import Graph


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Past(Graph):
    """All nodes of a graph, by their numbers, and those of its edges that were there.

    present  (n,) the nodes that were there; the others have no edges, and their features and
             labels must not be used
    """

    present: NDArray[np.bool_]


def past(graph: Graph, role: Literal["train", "val"]) -> Graph:
    """The graph as its last node of this role found it, made once; without times, the graph itself.

    An edge is there when both its nodes are, and its own time has come, if it has one.
    """
    if graph.times is None or not graph.splits or isinstance(graph, Past):
        return graph
    made = _MADE.setdefault(graph, {})
    if role not in made:
        made[role] = _until(graph, graph.times, last_time(graph, role))
    return made[role]


_MADE: WeakKeyDictionary[Graph, dict[str, Past]] = WeakKeyDictionary()


def last_time(graph: Graph, role: Literal["train", "val"]) -> float:
    """The time of the last node of this role, or of one before it."""
    assert graph.times is not None
    (split,) = graph.splits
    return float(graph.times[split.train if role == "train" else split.train | split.val].max())


def present(graph: Graph) -> NDArray[np.bool_] | None:
    """(n,) the nodes that are there; None of a whole graph."""
    return graph.present if isinstance(graph, Past) else None


def features_there(graph: Graph) -> Features:
    """X of the nodes that are there."""
    there = present(graph)
    return graph.X if there is None else graph.X[there]


def _until(graph: Graph, times: NDArray[np.float64], end: float) -> Past:
    there = times <= end  # of an unknown time, it never is
    known = np.asarray(there[graph.edges].all(0))
    if graph.edge_times is not None:
        known &= ~(graph.edge_times > end)
    same = {one.name: getattr(graph, one.name) for one in fields(Graph)}
    cut = {name: freeze(array) for name, array in graph.edges_kept(known).items()}
    return Past._of_checked(**same | cut, present=freeze(there))
