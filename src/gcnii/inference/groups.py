"""What test nodes are like: groups of them, with accuracy or errors, and copies of training nodes.

Groups are by degree, by homophily, by distance to a label, and by true number.  Twins are test
nodes that equal a training node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf

import numpy as np
import scipy.sparse as sp

from gcnii.analysis.degree import span
from gcnii.files import Document
from gcnii.graph import Features, Graph, Split
from gcnii.propagation.adjacency import adjacency
from gcnii.targets import Numbers
from gcnii.targets.interval import percentiles, wilson
from gcnii.targets.scores import Answers, number_shown, percent, share
from gcnii.targets.target import Bools, Floats, Ints

DEGREES = (0, 1, 2, 4, 8, 16, 32, 64)  # where the groups begin
TINY = 10  # nodes of a group that is joined to the next
QUARTERS = (0.25, 0.5, 0.75)
FURTHEST = 3  # steps that are counted one by one

Groups = dict[str, list[Document]]


@dataclass(frozen=True, eq=False)
class NodeNeighbourhoods:
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

    def distance(self, train: Bools) -> Floats:
        """(n,) the steps to the nearest training node, up to three; infinity beyond."""
        found = np.where(train, 0.0, inf)
        for step in range(1, FURTHEST + 1):
            reached = self.A @ np.isfinite(found).astype(np.float64) > 0
            found = np.where(reached & np.isinf(found), step, found)
        return found


def groups(around: NodeNeighbourhoods, roles: Mapping[str, Bools], right: Bools) -> Groups:
    """Accuracy by degree, by homophily and by distance, of test nodes that are right or wrong.

    roles  the nodes that train and that test
    """
    test = roles["test"]
    found = {
        "degree": degree_spans(around.degree[test]),
        "homophily": quarters(around.homophily[test]),
        "distance": steps(around.distance(roles["train"])[test]),
    }
    return {name: accuracies(one, right) for name, one in found.items()}


def degree_spans(degree: Ints) -> dict[str, Bools]:
    """Which nodes are in spans 0, 1, 2–3, 4–7, … 64 and more; a tiny one joins its neighbour."""
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
    return {_span(*one): _between(degree, *one) for one in spans}


def _between(degree: Ints, low: float, high: float) -> Bools:
    return np.asarray((degree >= low) & (degree < high))


def _span(low: float, high: float) -> str:
    return f"{low:g} and more" if high == inf else span(int(low), high)


def quarters(homophily: Floats) -> dict[str, Bools]:
    """Which nodes are in each quarter, and those without a labelled neighbour."""
    found = {
        f"{low:.0%} to {min(high, 1):.0%}": (homophily >= low) & (homophily < high)
        for low, high in pairwise((0.0, *QUARTERS, inf))
    }
    return {**found, "no labelled neighbour": np.isnan(homophily)}


def steps(distance: Floats) -> dict[str, Bools]:
    """Which nodes are this many steps from the nearest training node."""
    found = {str(step): distance == step for step in range(1, FURTHEST + 1)}
    return {**found, "more, or none in reach": np.isinf(distance)}


def accuracies(groups: Mapping[str, Bools], right: Bools) -> list[Document]:
    """The accuracy in each group that has nodes."""
    rows = []
    for name, inside in groups.items():
        if nodes := int(inside.sum()):
            accuracy = float(right[inside].mean())
            low, high = wilson(accuracy, nodes)
            ends = {"low": low, "high": high}
            rows.append({"group": name, "nodes": nodes, "accuracy": accuracy, **ends})
    return rows


RANGES = 5  # of the true number, with as many test nodes each
FEWEST = 10  # nodes of a range


def columns_of(said: Answers) -> Iterator[tuple[str, Answers]]:
    """The name of each column, and what is said of it alone."""
    for j, name in enumerate(said.target.names):
        P, y = said.P[:, [j]], said.y[:, [j]]
        yield name, Answers(Numbers(1, (name,)), P, P, y)


def by_target(said: Answers) -> list[Document]:
    """The scores of each column, with intervals over the nodes."""
    rows = []
    for name, one in columns_of(said):
        drawn = one.drawn_scores()
        scores = {key: one.estimate(key, drawn[key]).document() for key in one.scores}
        rows.append({"name": name, "mean": float(one.y.mean()), **scores})
    return rows


def error_groups(said: Answers, degree: Ints) -> dict[str, list[Document]]:
    """The errors of each column by degree, and by its true number.

    degree  of the test nodes
    """
    columns = list(columns_of(said))
    spans = degree_spans(degree)
    return {
        "degree": [row for name, one in columns for row in _error_rows(name, one, spans)],
        "value": [
            row for name, one in columns for row in _error_rows(name, one, ranges(one.y[:, 0]))
        ],
    }


def ranges(y: Floats) -> dict[str, Bools]:
    """Which nodes are in each range of true numbers; equal numbers are in the same."""
    count = int(np.clip(len(y) // FEWEST, 1, RANGES))
    ends = np.unique(np.quantile(y, np.linspace(0, 1, count + 1)))
    if len(ends) < 2:
        return {number_shown(float(ends[0])): np.ones(len(y), bool)}
    found = {}
    for low, high in pairwise(ends.tolist()):
        inside = (y >= low) & (y < (inf if high == ends[-1] else high))
        found[f"{number_shown(low)} to {number_shown(high)}"] = inside
    return found


def _error_rows(name: str, said: Answers, groups: Mapping[str, Bools]) -> Iterator[Document]:
    """The errors in each group that has nodes."""
    for group, inside in groups.items():
        if inside.any():
            own = said.among(inside)
            yield {"target": name, "group": group, "nodes": own.m, **_errors(own)}


def _errors(said: Answers) -> Document:
    """The mean absolute error, and the mean of what is too much, with intervals over the nodes."""
    gap, row = (said.P - said.y)[:, 0], dict[str, float]()
    values = {"mae": np.abs(gap), "bias": gap}

    def means(weights: Floats) -> dict[str, Floats]:
        return {name: each @ weights / len(gap) for name, each in values.items()}

    drawn = said.drawn(means)
    for name, each in values.items():
        one = percentiles(float(each.mean()), drawn[name])
        row |= {name: one.mean, f"{name}_low": one.low, f"{name}_high": one.high}
    return dict(row)


FEWEST_TWINS = 5  # that are worth a word
SHARE = 0.05  # of the test nodes, likewise
LEAST_LINKS = 2  # a single shared neighbour is not evidence of a copy
DISTINCT = 0.5  # of the rows of X; if fewer differ, equal ones are no sign of a copy


@dataclass(frozen=True, eq=False)
class Twins:
    """Test nodes that equal a training node in something, so that a model can copy its label.

    Chameleon and Squirrel are full of them (Platonov et al., ICLR 2023): pages with the same links.

    alike  "neighbours" or "features"
    copied (n test nodes,) whether there is such a training node
    same   the share of them that has its label
    """

    alike: str
    copied: Bools
    same: float

    def sentence(self, right: Bools) -> str:
        """A warning, if copying answers more than the model does elsewhere; else ""."""
        twins, all_nodes = int(self.copied.sum()), len(self.copied)
        rest = float(right[~self.copied].mean()) if twins < all_nodes else 0.0
        if twins < max(FEWEST_TWINS, SHARE * all_nodes) or self.same <= rest:
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
    several = np.diff(A.indptr) >= LEAST_LINKS
    links = _keys(A, np.concatenate([train, test]))
    yield _matched(graph, "neighbours", links, train, test, several)
    rows = _keys(graph.X, np.concatenate([train, test]))
    if len(set(rows.values())) >= DISTINCT * len(rows):
        yield _matched(graph, "features", rows, train, test, np.ones(graph.n, bool))


def _matched(
    graph: Graph,
    alike: str,
    keys: dict[int, int],
    train: Ints,
    test: Ints,
    asked: Bools,
) -> Twins:
    first = {keys[i]: i for i in train[::-1]}
    partner = np.array([first.get(keys[i], -1) if asked[i] else -1 for i in test])
    copied = partner >= 0
    y = graph.labels.reshape(graph.n, -1)
    equal = (y[test[copied]] == y[partner[copied]]).all(1)
    same = float(equal.mean()) if copied.any() else 0.0
    return Twins(alike, copied, same)


def _keys(X: Features, nodes: Ints) -> dict[int, int]:
    """A number for the row of each of these nodes, the same for equal rows."""
    A = sp.csr_array(X[nodes])
    A.eliminate_zeros()  # among them -0.0
    A.sort_indices()
    rows = (slice(*ends) for ends in pairwise(A.indptr))
    keys = (hash((A.indices[row].tobytes(), A.data[row].tobytes())) for row in rows)
    return dict(zip(nodes.tolist(), keys, strict=True))
