"""Baselines on the same split: the majority, the features alone, the graph alone.

What each may choose is chosen on the validation nodes; test nodes are but answered.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.graph import Features, Graph, Split
from gcnii.metrics.answers import Answers
from gcnii.metrics.by_class import Floats, Ints
from gcnii.metrics.probabilities import HALF, best_threshold, decided
from gcnii.propagation.adjacency import adjacency

CS = (0.1, 1.0, 10.0)  # inverse strengths of logistic regression
ALPHAS = (0.5, 0.9, 0.99)  # how much of a label is the neighbours'
STEPS = 50
ROWS, WORK = 20_000, 50_000_000  # training nodes of logistic regression; times entries and classes
FEWEST = 1000
LINKS = 200_000_000  # edges × labels, beyond which labels are propagated with one α and few steps
MAJORITY, FEATURES, GRAPH = "majority", "logistic regression", "label propagation"

Candidates = Iterator[Floats]  # (n, k) probabilities of all nodes, one matrix for each choice


def baseline(name: str, graph: Graph, split: Split) -> Answers:
    """What the baseline of this name says of the test nodes of a split."""
    best: tuple[float, Floats, float] | None = None
    for P in BASELINES[name](graph, split):
        score, threshold = _judged(graph, P[split.val], split.val)
        if best is None or score > best[0]:
            best = score, P, threshold
    assert best is not None
    _, P, threshold = best
    P = P[split.test]
    guess = decided(P, multilabel=graph.multilabel, threshold=threshold)
    part = None if graph.part is None else graph.part[split.test]
    return Answers(P, guess, graph.labels[split.test], part)


def _judged(graph: Graph, P: Floats, val: NDArray[np.bool_]) -> tuple[float, float]:
    """Accuracy on validation; of several labels, micro-F1 with the best threshold, and that."""
    y = graph.labels[val]
    if not len(y):
        return 0.0, HALF
    if not graph.multilabel:
        return float((P.argmax(1) == y).mean()), HALF
    threshold = best_threshold(P, y)
    guess = threshold < P
    return float(2 * (guess & (y == 1)).sum() / max(guess.sum() + y.sum(), 1)), threshold


def majority(graph: Graph, split: Split) -> Candidates:
    """The share of each class among the training nodes, for every node."""
    yield np.tile(_prior(graph, split), (graph.n, 1))


def _prior(graph: Graph, split: Split) -> Floats:
    return np.asarray(_targets(graph)[split.train].mean(0))


def _targets(graph: Graph) -> Floats:
    """(n, k) ones for the labels of each node; anything for an unknown one."""
    if graph.multilabel:
        return graph.labels.astype(np.float64)
    return np.eye(graph.k)[graph.labels]


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
            fitted = _fitted(X[rows], y, C)
            P = np.zeros((graph.n, graph.k))
            known = np.arange(graph.k) if graph.multilabel else fitted.classes_
            P[np.ix_(asked, known)] = fitted.predict_proba(X[asked])
            yield P


def _scalers(graph: Graph) -> list[Any]:
    """Which of them suits the features is for validation to say; what is sparse stays so."""
    from sklearn.preprocessing import MaxAbsScaler, Normalizer, StandardScaler

    return [Normalizer(), MaxAbsScaler()] if sp.issparse(graph.X) else [StandardScaler()]


def _fitted(X: Features, y: Ints, C: float) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    model = LogisticRegression(C=C, max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # close enough for a baseline
        warnings.filterwarnings("ignore", "Label .* is present in all", UserWarning)
        return (OneVsRestClassifier(model) if y.ndim == 2 else model).fit(X, y)


def training_rows(graph: Graph, split: Split) -> Ints:
    """The training nodes that logistic regression sees: all, or a sample of what takes long."""
    rows = np.flatnonzero(split.train)
    entries = graph.X.nnz / graph.n if isinstance(graph.X, sp.csr_array) else graph.d
    most = int(np.clip(WORK / (max(entries, 1) * graph.k), FEWEST, ROWS))
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def label_propagation(graph: Graph, split: Split) -> Candidates:
    """Y ← α P̃ Y + (1 - α) Y0 from the training labels, with P̃ = D^-½ A D^-½ (Zhou et al. 2003).

    Edges count in both directions.  A node that no label reaches has the majority's shares.
    """
    A = adjacency(graph, "both", "remove")
    size = np.asarray(A.sum(1)).ravel()
    scale = sp.diags_array(np.divide(1, np.sqrt(size), out=np.zeros(graph.n), where=size > 0))
    P = sp.csr_array(scale @ A @ scale)
    large = A.nnz * graph.k > LINKS
    # The last column says how much of any training label has come to a node.
    start = np.column_stack([_targets(graph), np.ones(graph.n)]) * split.train[:, None]
    for alpha in ALPHAS[1:2] if large else ALPHAS:
        Y = start
        for _ in range(STEPS // 5 if large else STEPS):
            Y = alpha * (P @ Y) + (1 - alpha) * start
        come = Y[:, -1:]
        with np.errstate(invalid="ignore", divide="ignore"):
            yield np.where(come > 0, Y[:, :-1] / come, _prior(graph, split))


BASELINES: dict[str, Callable[[Graph, Split], Candidates]] = {
    MAJORITY: majority,
    FEATURES: logistic_regression,
    GRAPH: label_propagation,
}
