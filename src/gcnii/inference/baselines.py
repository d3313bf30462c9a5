"""What a model is compared with on the same split, and what its test nodes are like.

Baselines: the majority or the mean, the features alone, the graph alone, and trees.  What each may
choose is chosen on the validation nodes; test nodes are only answered.  Neighbourhoods: accuracy by
degree, by homophily and by distance to a label.  Twins: test nodes that equal a training node.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import inf
from statistics import fmean
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.analysis.degree import span
from gcnii.files import Document
from gcnii.graph import Features, Graph, Split
from gcnii.members.forest import available
from gcnii.members.known import Known
from gcnii.members.linear import Linear, affordable, affordable_rows
from gcnii.members.propagation import LabelPropagation
from gcnii.members.trees import NARROW, WIDE, Columns, Trees, refusal, work
from gcnii.propagation.adjacency import adjacency
from gcnii.targets import LabelTarget, Target, label_target_of, target_of
from gcnii.targets.interval import wilson
from gcnii.targets.scores import Answers, percent, share
from gcnii.targets.target import HALF, Floats, Ints

CS = (0.1, 1.0, 10.0)  # inverse strengths of logistic regression
MAJORITY, FEATURES, GRAPH = "majority", "logistic regression", "label propagation"
MEAN, LINEAR = "mean", "linear regression"
BOOSTED, BOOSTED_AROUND = "gradient boosting", "gradient boosting with neighbours"

# (n, k) probabilities of all nodes, or values, one matrix for each choice
Candidates = Iterator[Floats]


def baseline(name: str, graph: Graph, *splits: Split) -> Answers:
    """What the baseline of this name says of the test nodes of a split; of folds, the mean."""
    each = [_chosen(name, graph, split) for split in splits]
    P, threshold = np.mean([P for P, _ in each], 0), fmean(bound for _, bound in each)
    target, test = target_of(graph), splits[0].test
    part = None if graph.part is None else graph.part[test]
    return Answers(target, P, target.decided(P, threshold), graph.labels[test], part)


def _chosen(name: str, graph: Graph, split: Split) -> tuple[Floats, float]:
    """(test nodes, k) answers, and the threshold, of what validation prefers."""
    best: tuple[float, Floats, float] | None = None
    for P in PREDICTORS[name](graph, split):
        score, threshold = _judged(graph, P[split.val], split.val)
        if best is None or score > best[0]:
            best = score, P[split.test], threshold
    assert best is not None
    return best[1:]


def _judged(graph: Graph, P: Floats, val: NDArray[np.bool_]) -> tuple[float, float]:
    """Accuracy on validation; of several labels, micro-F1 with the best threshold, and that.

    Of numbers, the squared error, with a minus.
    """
    y, target = graph.labels[val], target_of(graph)
    if not len(y):
        return 0.0, HALF
    if not isinstance(target, LabelTarget):
        return -float(target.badness(P, y).mean()), HALF
    threshold = target.best_threshold(P, y)
    return target.counts(y, target.decided(P, threshold)).micro_f1, threshold


def majority(graph: Graph, split: Split) -> Candidates:
    """The share of each class among the nodes with labels that are not tested, for every node.

    Training nodes are often drawn alike of all classes, and name none; validation nodes seldom are.
    """
    yield np.tile(_labels(graph, split).mean(0), (graph.n, 1))


def _labels(graph: Graph, split: Split) -> Floats:
    """(training and validation nodes, k) ones for the labels of each."""
    return label_target_of(graph).indicators(graph.labels[split.train | split.val])


def tie(graph: Graph, split: Split) -> Iterator[str]:
    """That several classes are the largest, of which the majority names the first."""
    target = target_of(graph)
    if not isinstance(target, LabelTarget):
        return
    counts = _labels(graph, split).sum(0)
    most = np.flatnonzero(counts == counts.max())
    if target.exclusive and len(most) > 1:
        yield (
            f"{len(most)} classes have the most labels, {counts.max():,.0f} each; {MAJORITY} names "
            f"the first of them, {target.names[most[0]]}"
        )


def logistic_regression(graph: Graph, split: Split) -> Candidates:
    """On the features alone, one against the rest where a node can have several labels."""
    rows, asked = training_rows(graph, split), split.val | split.test
    y = graph.labels[rows]
    if (y == y[0]).all():  # there is nothing to separate
        yield from majority(graph, split)
        return
    for scaler in _scalers(graph):
        X = scaler.fit(graph.X[rows]).transform(graph.X)
        for C in CS:
            fitted = _fitted(X[rows], y, C, label_target_of(graph))
            P = np.zeros((graph.n, graph.k))
            P[np.ix_(asked, fitted.classes_)] = fitted.predict_proba(X[asked])
            yield P


def _scalers(graph: Graph) -> list[Any]:
    """Which of them suits the features is for validation to say; what is sparse stays so."""
    from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

    return [Normalizer(), MaxAbsScaler()] if sp.issparse(graph.X) else [StandardScaler()]


def _fitted(X: Features, y: Ints, C: float, target: LabelTarget) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    model = LogisticRegression(C=C, max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # close enough for a baseline
        warnings.filterwarnings("ignore", "Label .* is present in all", UserWarning)
        return (model if target.exclusive else OneVsRestClassifier(model)).fit(X, y)


def training_rows(graph: Graph, split: Split) -> Ints:
    """The training nodes that logistic regression sees."""
    return affordable(np.flatnonzero(split.train), graph.X, graph.k)


def mean(graph: Graph, split: Split) -> Candidates:
    """That of the nodes with numbers that are not tested, for every node."""
    known = graph.labels[split.train | split.val]
    yield np.tile(known.mean(0), (graph.n, 1))


def linear_regression(graph: Graph, split: Split) -> Candidates:
    """Ridge regression on the features alone."""
    yield Linear.fit(graph, split).answers(graph.X)


def label_propagation(graph: Graph, split: Split) -> Candidates:
    """On the graph alone: the labels of the training nodes spread along the edges."""
    yield LabelPropagation.fit(graph, split)(graph, Known.of(graph, split))


def gradient_boosting(graph: Graph, split: Split, columns: Columns = "own") -> Candidates:
    """Trees on the columns of each node, or on those and its neighbourhood."""
    trees = Trees.fit(graph, split, columns=columns)
    yield trees.answers(graph, Known.of(graph, split))


PREDICTORS: dict[str, Callable[[Graph, Split], Candidates]] = {
    MAJORITY: majority,
    FEATURES: logistic_regression,
    GRAPH: label_propagation,
    BOOSTED: gradient_boosting,
    BOOSTED_AROUND: partial(gradient_boosting, columns="neighbourhood"),
    MEAN: mean,
    LINEAR: linear_regression,
}
OF_LABELS = (MAJORITY, FEATURES, GRAPH, BOOSTED, BOOSTED_AROUND)
OF_NUMBERS = (MEAN, LINEAR, GRAPH, BOOSTED, BOOSTED_AROUND)


def baselines_of(target: Target) -> tuple[str, ...]:
    """Those that can predict it; the first costs nothing."""
    every = OF_LABELS if isinstance(target, LabelTarget) else OF_NUMBERS
    no_trees = available() or refusal(target)
    return tuple(one for one in every if not no_trees or not one.startswith(BOOSTED))


def notes(graph: Graph, split: Split) -> Iterator[str]:
    """Equal classes, and what was left out to save time or because it cannot be had."""
    yield from tie(graph, split)
    target, there = target_of(graph), int(split.train.sum())
    labels = isinstance(target, LabelTarget)
    fitted_to = training_rows if labels else affordable_rows
    seen = {FEATURES if labels else LINEAR: len(fitted_to(graph, split))}
    if no_trees := available() or refusal(target):
        yield f"{BOOSTED} is left out: {no_trees}"
    else:
        seen[BOOSTED] = len(work(graph, split, "own")[0])
        seen[BOOSTED_AROUND] = len(work(graph, split, "neighbourhood")[0])
        if graph.d > WIDE:
            yield f"{BOOSTED} saw {NARROW} columns (SVD) in place of {graph.d:,} features"
    for name, used in seen.items():
        if used < there:
            yield f"{name} saw {used:,} of the {there:,} training nodes, to save time"
    if graph.multilabel:
        yield "accuracy by degree, homophily and distance is for nodes with one label each"


DEGREES = (0, 1, 2, 4, 8, 16, 32, 64)  # where the groups begin
TINY = 10  # nodes of a group that is joined to the next
QUARTERS = (0.25, 0.5, 0.75)
FURTHEST = 3  # steps that are counted one by one

Groups = dict[str, list[Document]]
Nodes = NDArray[np.bool_]


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

    def distance(self, train: Nodes) -> Floats:
        """(n,) the steps to the nearest training node, up to three; infinity beyond."""
        found = np.where(train, 0.0, inf)
        for step in range(1, FURTHEST + 1):
            reached = self.A @ np.isfinite(found).astype(np.float64) > 0
            found = np.where(reached & np.isinf(found), step, found)
        return found


def groups(around: NodeNeighbourhoods, roles: Mapping[str, Nodes], right: Nodes) -> Groups:
    """Accuracy by degree, by homophily and by distance, of test nodes that are right or wrong.

    roles  the nodes that train and that test
    """
    test = roles["test"]
    return {
        "degree": by_degree(around.degree[test], right),
        "homophily": by_homophily(around.homophily[test], right),
        "distance": by_distance(around.distance(roles["train"])[test], right),
    }


def by_degree(degree: Ints, right: Nodes) -> list[Document]:
    """In the spans of degrees."""
    return _rows(degree_spans(degree), right)


def degree_spans(degree: Ints) -> dict[str, Nodes]:
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


def _between(degree: Ints, low: float, high: float) -> Nodes:
    return np.asarray((degree >= low) & (degree < high))


def _span(low: float, high: float) -> str:
    return f"{low:g} and more" if high == inf else span(int(low), high)


def by_homophily(homophily: Floats, right: Nodes) -> list[Document]:
    """In quarters, and the nodes without a labelled neighbour."""
    quarters = {
        f"{low:.0%} to {min(high, 1):.0%}": (homophily >= low) & (homophily < high)
        for low, high in pairwise((0.0, *QUARTERS, inf))
    }
    return _rows({**quarters, "no labelled neighbour": np.isnan(homophily)}, right)


def by_distance(distance: Floats, right: Nodes) -> list[Document]:
    """In steps to the nearest training node."""
    steps = {str(step): distance == step for step in range(1, FURTHEST + 1)}
    return _rows({**steps, "more, or none in reach": np.isinf(distance)}, right)


def _rows(groups: Mapping[str, Nodes], right: Nodes) -> list[Document]:
    """The accuracy in each group that has nodes."""
    rows = []
    for name, inside in groups.items():
        if nodes := int(inside.sum()):
            accuracy = float(right[inside].mean())
            low, high = wilson(accuracy, nodes)
            ends = {"low": low, "high": high}
            rows.append({"group": name, "nodes": nodes, "accuracy": accuracy, **ends})
    return rows


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
    copied: NDArray[np.bool_]
    same: float

    def sentence(self, right: NDArray[np.bool_]) -> str:
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
    train: NDArray[np.int64],
    test: NDArray[np.int64],
    asked: NDArray[np.bool_],
) -> Twins:
    first = {keys[i]: i for i in train[::-1]}
    partner = np.array([first.get(keys[i], -1) if asked[i] else -1 for i in test])
    copied = partner >= 0
    y = graph.labels.reshape(graph.n, -1)
    equal = (y[test[copied]] == y[partner[copied]]).all(1)
    same = float(equal.mean()) if copied.any() else 0.0
    return Twins(alike, copied, same)


def _keys(X: Features, nodes: NDArray[np.int64]) -> dict[int, int]:
    """A number for the row of each of these nodes, the same for equal rows."""
    A = sp.csr_array(X[nodes])
    A.eliminate_zeros()  # among them -0.0
    A.sort_indices()
    rows = (slice(*ends) for ends in pairwise(A.indptr))
    keys = (hash((A.indices[row].tobytes(), A.data[row].tobytes())) for row in rows)
    return dict(zip(nodes.tolist(), keys, strict=True))
