"""Twins: test nodes that a training node equals, so that a model can copy its label.

Chameleon and Squirrel are full of them (Platonov et al., ICLR 2023): pages with the same links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.graph import Features, Graph, Split
from gcnii.propagation.adjacency import adjacency
from gcnii.targets.objective import percent

FEWEST, SHARE = 5, 0.05  # twins that are worth a word: a number, and a share of the test nodes
LINKS = 2  # a single shared neighbour is not evidence of a copy
DISTINCT = 0.5  # of the rows of X; if fewer differ, equal ones are no sign of a copy


@dataclass(frozen=True, eq=False)
class Twins:
    """Test nodes that equal a training node in something.

    alike  "neighbours" or "features"
    copied (n test nodes,) whether there is such a training node
    same   the share of them that has its label
    """

    alike: str
    copied: NDArray[np.bool_]
    same: float

    def sentence(self, right: NDArray[np.bool_]) -> str:
        """A warning, if copying answers more than the model does elsewhere; else ""."""
        twins, all_nodes = int(self.copied.sum()), len(self.copied)
        rest = float(right[~self.copied].mean()) if twins < all_nodes else 0.0
        if twins < max(FEWEST, SHARE * all_nodes) or self.same <= rest:
            return ""
        others = "there are no others" if twins == all_nodes else f"on the others, {percent(rest)}"
        return (
            f"{twins} of {all_nodes} test nodes ({twins / all_nodes:.0%}) have the same "
            f"{self.alike} as a training node, and {self.same:.0%} of them its label, so that a "
            f"model can copy it ({others} % are right); remove duplicated nodes, or split by them"
        )


def twins(graph: Graph, split: Split) -> Iterator[Twins]:
    """By their neighbours (where edges have a direction, those that they point to); by features."""
    train, test = np.flatnonzero(split.train), np.flatnonzero(split.test)
    A = adjacency(graph, "out", "remove")
    A.sort_indices()
    several = np.diff(A.indptr) >= LINKS
    links = _keys(A, np.concatenate([train, test]))
    yield _matched(graph, "neighbours", links, train, test, several)
    rows = _keys(graph.X, np.concatenate([train, test]))
    if len(set(rows.values())) >= DISTINCT * len(rows):
        yield _matched(graph, "features", rows, train, test, np.ones(graph.n, bool))


def _matched(
    graph: Graph,
    alike: str,
    keys: dict[int, int],
    train: NDArray[np.int64],
    test: NDArray[np.int64],
    asked: NDArray[np.bool_],
) -> Twins:
    first: dict[int, int] = {}
    for i in train:
        first.setdefault(keys[i], i)
    partner = [first.get(keys[i], -1) if asked[i] else -1 for i in test]
    copied = np.array(partner) >= 0
    y = graph.labels.reshape(graph.n, -1)
    pairs = test[copied], np.array(partner)[copied]
    same = float((y[pairs[0]] == y[pairs[1]]).all(1).mean()) if copied.any() else 0.0
    return Twins(alike, copied, same)


def _keys(X: Features, nodes: NDArray[np.int64]) -> dict[int, int]:
    """A number for the row of each of these nodes, the same for equal rows."""
    if isinstance(X, sp.csr_array):
        return {int(i): _sparse_key(X, i) for i in nodes}
    return {int(i): hash((X[i] + 0.0).tobytes()) for i in nodes}  # + 0.0: -0.0 equals 0.0


def _sparse_key(X: sp.csr_array, i: int) -> int:
    place = slice(X.indptr[i], X.indptr[i + 1])
    columns, values = X.indices[place], X.data[place]
    kept = values != 0
    order = np.argsort(columns[kept])
    return hash((columns[kept][order].tobytes(), values[kept][order].tobytes()))
