"""Baselines: what a model is compared with on the same split.

The majority or the mean, the features alone, the graph alone, and trees.  What each may choose is
chosen on the validation nodes; test nodes are only answered.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.graph import Features, Graph, Split
from gcnii.members.forest import available
from gcnii.members.known import Known
from gcnii.members.linear import Linear, affordable, affordable_rows
from gcnii.members.propagation import LabelPropagation
from gcnii.members.trees import NARROW, WIDE, Columns, Trees, refusal, work
from gcnii.targets import LabelTarget, Target, label_target_of, target_of
from gcnii.targets.scores import Answers
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


def usual(graph: Graph, split: Split) -> Candidates:
    """The share of each class, or the mean, of the nodes with labels that are not tested, for all.

    Training nodes are often drawn alike of all classes, and name none; validation nodes seldom are.
    """
    yield np.tile(_untested(graph, split).mean(0), (graph.n, 1))


def _untested(graph: Graph, split: Split) -> Floats:
    """(training and validation nodes, k) ones for the labels of each, or its numbers."""
    y, target = graph.labels[split.train | split.val], target_of(graph)
    return target.indicators(y) if isinstance(target, LabelTarget) else y


def tie(graph: Graph, split: Split) -> Iterator[str]:
    """That several classes are the largest, of which the majority names the first."""
    target = target_of(graph)
    if not isinstance(target, LabelTarget):
        return
    counts = _untested(graph, split).sum(0)
    most = np.flatnonzero(counts == counts.max())
    if target.exclusive and len(most) > 1:
        yield (
            f"{len(most)} classes have the most labels, {counts.max():,.0f} each; {MAJORITY} names "
            f"the first of them, {target.names[most[0]]}"
        )


def logistic_regression(graph: Graph, split: Split) -> Candidates:
    """On the features alone, one against the rest where a node can have several labels."""
    from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

    rows, asked = training_rows(graph, split), split.val | split.test
    y = graph.labels[rows]
    if (y == y[0]).all():  # there is nothing to separate
        yield from usual(graph, split)
        return
    # Which of them suits the features is for validation to say; what is sparse stays so.
    scalers = [Normalizer(), MaxAbsScaler()] if sp.issparse(graph.X) else [StandardScaler()]
    for scaler in scalers:
        X = scaler.fit(graph.X[rows]).transform(graph.X)
        for C in CS:
            fitted = _fitted(X[rows], y, C, label_target_of(graph))
            P = np.zeros((graph.n, graph.k))
            P[np.ix_(asked, fitted.classes_)] = fitted.predict_proba(X[asked])
            yield P


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
    MAJORITY: usual,
    FEATURES: logistic_regression,
    GRAPH: label_propagation,
    BOOSTED: gradient_boosting,
    BOOSTED_AROUND: partial(gradient_boosting, columns="neighbourhood"),
    MEAN: usual,
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
