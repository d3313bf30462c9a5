"""The lines of Figure 1: accuracy by degree over the runs of one graph and depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import Literal, get_args

from gcnii.analysis.degree import Row
from gcnii.targets.interval import wilson

Who = Literal["all", "test"]


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
