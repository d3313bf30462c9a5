"""Nodes without links, where a model was trained on linked ones: answered by their features alone.

What a network of graph convolutions says of a node that gathers from nobody rests on a case that it
never saw, and may be sure of anything.  A softmax regression on the features is fitted to what the
model says of the nodes of its training graph, and answers instead.  Its optimum has the mean
probability of each class that the model has, so that nodes like those of the training get, on
average, what they would get with links.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax, softmax

from gcnii.errors import InputError, notice
from gcnii.graph import Features, Graph
from gcnii.inference.training_graph import is_training_graph, load_training_graph
from gcnii.nn import MODELS
from gcnii.propagation.adjacency import adjacency
from gcnii.train.results.result import Result

Floats = NDArray[np.float64]

ENOUGH = 10  # training nodes without links, from which a model has learnt what they are like
RIDGE = 0.01  # of the regression, on features whose mean square is 1
STEPS = 500
ROWS, WORK = 20_000, 50_000_000  # nodes that it is fitted to; times their entries and classes
FEWEST = 1000
# What the column `basis` says: the model, which knows such nodes; the features alone; or the model,
# which does not, where the graph of the training is not at hand.
MODEL, FEATURES, GUESS = "model", "features", "guess"


def unlinked(result: Result, graph: Graph) -> NDArray[np.bool_]:
    """(n,) the nodes that the model sees without a neighbour; none, if it uses no links."""
    recipe = result.plan.recipe
    if not MODELS[result.plan.model].card.uses_graph or recipe.geometry != "none":
        return np.zeros(graph.n, bool)
    A = adjacency(graph, recipe.direction, "remove")
    return np.asarray(np.asarray(A.sum(1)).ravel() == 0)


def unknown_kind(result: Result, graph: Graph, known: Graph) -> NDArray[np.bool_]:
    """(n,) the nodes without links, if the training on the graph `known` had next to none such."""
    found = unlinked(result, graph)
    if found.any():
        split = known.splits[result.runs[result.predicting()[0]].split]
        if (unlinked(result, known) & split.train).sum() >= ENOUGH:
            found[:] = False
    return found


def answered(
    result: Result, graph: Graph, known: Graph | None, device: str, *, ensemble: bool
) -> tuple[Floats, list[str]]:
    """(n, k) probabilities of the nodes of a graph, and the basis of each.

    known  the graph of the training, whose nodes come first in this one and are not answered; None:
           this is another graph, and that of the training is loaded if it is needed
    """
    first = 0 if known is None else known.n
    P = result.predict_proba(graph, device, ensemble=ensemble)[first:]
    if not unlinked(result, graph)[first:].any():
        return P, [MODEL] * len(P)
    known = _at_hand(result) if known is None else known
    if known is None:
        found = unlinked(result, graph)[first:]
        notice(
            f"{_count(found)} no links, and the graph of the training, which an answer by the "
            "features needs, is not there; take the model's answer for a guess (basis: guess)"
        )
        return P, [GUESS if one else MODEL for one in found]
    found = unknown_kind(result, graph, known)
    found[:first] = False
    if found.any():
        own = result.predict_proba(known, device, ensemble=ensemble)
        by_features = FeaturesOnly.of(result, known, own, np.ones(known.n, bool))
        P[found[first:]] = by_features(graph, found)
        notice(
            f"{_count(found)} no links, unlike the nodes that the model was trained on; "
            "the answer is by the features alone (basis: features)"
        )
    return P, [FEATURES if one else MODEL for one in found[first:]]


def _count(found: NDArray[np.bool_]) -> str:
    count = int(found.sum())
    return "1 node has" if count == 1 else f"{count:,} nodes have"


def _at_hand(result: Result) -> Graph | None:
    """The graph of the training, if it can be loaded and has not changed."""
    try:
        known = load_training_graph(result, offline=True)
    except InputError:
        return None
    return known if is_training_graph(result, known) else None


@dataclass(frozen=True)
class FeaturesOnly:
    """Probabilities by the features alone, after the model's on the graph of its training."""

    result: Result
    weights: Floats
    bias: Floats

    @classmethod
    def of(cls, result: Result, known: Graph, P: Floats, rows: NDArray[np.bool_]) -> FeaturesOnly:
        """Fitted to probabilities P (n, k) of these nodes of the training's graph."""
        X, nodes = result.features(known), np.flatnonzero(rows)
        entries = X.nnz / known.n if isinstance(X, sp.csr_array) else X.shape[1]
        most = int(np.clip(WORK / (max(entries, 1) * P.shape[1]), FEWEST, ROWS))
        if len(nodes) > most:
            nodes = np.sort(np.random.default_rng(0).choice(nodes, most, replace=False))
        return cls(result, *_regression(X[nodes], P[nodes], result.graph.multilabel))

    def __call__(self, graph: Graph, rows: NDArray[np.bool_]) -> Floats:
        """(rows, k) the probabilities of these nodes of a graph."""
        scores = self.result.features(graph)[rows] @ self.weights + self.bias
        return np.asarray(expit(scores) if self.result.graph.multilabel else softmax(scores, 1))


def _regression(X: Features, P: Floats, multilabel: bool) -> tuple[Floats, Floats]:
    """Weights (d, k) and bias (k,) with the least cross-entropy to P; the problem is convex."""
    X = X.astype(np.float64)
    (n, d), k = X.shape, P.shape[1]
    square = float((X.data**2).sum() if isinstance(X, sp.csr_array) else (X**2).sum()) / (n * d)
    ridge = RIDGE * (square or 1.0)

    def loss(numbers: Floats) -> tuple[float, Floats]:
        W, b = numbers[: d * k].reshape(d, k), numbers[d * k :]
        scores = X @ W + b
        if multilabel:
            entropy = -(P * log_expit(scores) + (1 - P) * log_expit(-scores)).sum() / n
            error = (expit(scores) - P) / n
        else:
            logs = log_softmax(scores, 1)
            entropy = -(P * logs).sum() / n
            error = (np.exp(logs) - P) / n
        slope = np.concatenate([(X.T @ error + ridge * W).ravel(), error.sum(0)])
        return entropy + ridge / 2 * (W**2).sum(), slope

    options = {"maxiter": STEPS}
    found = minimize(loss, np.zeros((d + 1) * k), jac=True, method="L-BFGS-B", options=options)
    return found.x[: d * k].reshape(d, k), found.x[d * k :]
