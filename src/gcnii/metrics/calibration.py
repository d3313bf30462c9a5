"""Calibration: of the nodes that get a label with probability 0.8, are 80 % labelled rightly?

Guo et al., On Calibration of Modern Neural Networks (2017): softmax(scores / T) with one
temperature T keeps every label.  T is found on nodes that were not trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp, softmax

BINS = 15
COLDEST, WARMEST = 1e-2, 1e2  # between which T is looked for
TINY = 1e-300  # the logarithm of 0 is none
HALVINGS = 60  # of that interval, on a logarithmic scale
LEAST = 10  # validation nodes, below which no temperature is looked for
FEW = 100  # validation nodes, below which the error that is left is worth a word


def best_temperature(scores: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """T with which scores (n, k) are as sure of labels y as they are right.

    Guo et al. take the likeliest T, and so does this where y is (n, k) and a node can have several
    labels.  With one label a node, a few confident mistakes weigh so much in the likelihood that T
    is too warm: on Citeseer's validation nodes a mean confidence of 0.65 where 0.70 are right.
    """
    return _likeliest(scores, y) if y.ndim == 2 else _matching(scores, y)


def _matching(scores: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """T at which the mean confidence of the n nodes is their accuracy.

    With Laplace's two nodes more, of which one is right: of few nodes that are all right, T would
    else be 0.  Confidence falls as T rises.
    """
    if np.ptp(scores, axis=1).max() == 0:
        return 1.0  # no temperature changes anything
    accuracy = ((scores.argmax(1) == y).sum() + 1) / (len(y) + 2)
    return _bisected(lambda T: bool(softmax(scores / T, axis=1).max(1).mean() > accuracy))


def _likeliest(scores: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """T that makes labels y (n, k) likeliest under sigmoid(scores / T).

    The loss is convex in 1 / T, so its slope has one zero.  Each label is trusted but for the
    share 1 / (n + 2), as Platt has it.
    """
    if np.ptp(scores) == 0:
        return 1.0
    unsure = 1 / (len(y) + 2)
    target = (1 - unsure) * y + unsure / 2
    return _bisected(lambda T: float(((expit(scores / T) - target) * scores).sum()) > 0)


def fitted(
    scores: NDArray[np.float64], y: NDArray[np.int64], log_weights: NDArray[np.float64]
) -> tuple[float, float]:
    """T and g with which softmax(scores / T - g log w) makes labels y likeliest.

    A loss that weighs class c by w_c teaches probabilities p_c w_c, so that g should be 1; but a
    network that fits its training nodes exactly does so whatever they weigh, and its g is lower.
    With several labels per node, the sigmoid takes the place of softmax.  The loss is convex in
    1 / T and g; each label is trusted but for the share 1 / (n + 2), as Platt has it.
    """
    from scipy.optimize import minimize  # few trainings need it

    unsure = 1 / (len(y) + 2)
    truth, even = (y, 0.5) if y.ndim == 2 else (np.eye(scores.shape[1])[y], 1 / scores.shape[1])
    target = (1 - unsure) * truth + unsure * even

    def loss(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        z = x[0] * scores - x[1] * log_weights
        if y.ndim == 2:
            each, gap = np.logaddexp(0, z) - target * z, expit(z) - target
        else:
            each = logsumexp(z, axis=1, keepdims=True) - (target * z).sum(1, keepdims=True)
            gap = softmax(z, axis=1) - target
        slopes = [(gap * scores).sum(), -(gap * log_weights).sum()]
        return float(each.sum()) / len(y), np.array(slopes) / len(y)

    bounds = [(1 / WARMEST, 1 / COLDEST), (None, None)]
    x = minimize(loss, (1.0, 1.0), jac=True, method="L-BFGS-B", bounds=bounds).x
    return 1 / float(x[0]), float(x[1])


def _bisected(too_cold: Callable[[float], bool]) -> float:
    """The temperature above those that are too cold."""
    cold, warm = np.log(COLDEST), np.log(WARMEST)
    for _ in range(HALVINGS):
        middle = (cold + warm) / 2
        cold, warm = (middle, warm) if too_cold(float(np.exp(middle))) else (cold, middle)
    return float(np.exp((cold + warm) / 2))


def tempered(P: NDArray[np.float64], T: float) -> NDArray[np.float64]:
    """(n, k) probabilities that have a temperature of their own: softmax(log P / T)."""
    return np.asarray(softmax(np.log(np.maximum(P, TINY)) / T, axis=1))


def warmed(p: float, T: float) -> float:
    """The probability sigmoid(score / T) of the score whose sigmoid is p."""
    return float(expit(logit(p) / T))


def error_left(right: int, nodes: int) -> float:
    """A standard error of these nodes' accuracy: probabilities fitted to it can be so far off.

    With Laplace's two nodes more, so that it is not 0 where all are right.
    """
    share = (right + 1) / (nodes + 2)
    return sqrt(share * (1 - share) / max(nodes, 1))


@dataclass(frozen=True)
class Bin:
    """The forecasts with a confidence in (low, high]: how sure they were, and how often right."""

    low: float
    high: float
    nodes: int
    confidence: float
    accuracy: float


def reliability(P: NDArray[np.float64], y: NDArray[np.int64], bins: int = BINS) -> list[Bin]:
    """The bins of equal width that have forecasts in them, from unsure to sure.

    P, y  (n, k) and (n,): a node's forecast is its most probable class.  If y is (n, k), every
          entry is a forecast of its own, of whether the node has the label
    """
    if y.ndim == 2:
        confidence, right = P.ravel(), y.ravel() == 1
    else:
        confidence, right = P.max(1, initial=-inf), P.argmax(1) == y
    place = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    sure, hits = (np.bincount(place, one, minlength=bins) for one in (confidence, right))
    return [
        Bin(i / bins, (i + 1) / bins, int(n), float(sure[i] / n), float(hits[i] / n))
        for i, n in enumerate(counts)
        if n
    ]


def calibration_error(P: NDArray[np.float64], y: NDArray[np.int64], bins: int = BINS) -> float:
    """The expected calibration error: the mean gap between confidence and accuracy of the bins.

    NaN without nodes.  It cannot be negative, so of few nodes it is too large.
    """
    found = reliability(P, y, bins)
    total = sum(one.nodes for one in found)
    gap = sum(one.nodes * abs(one.confidence - one.accuracy) for one in found)
    return gap / total if total else float("nan")
