"""Probabilities of scores, their calibration, and prediction sets.

Scores (n, k) → probabilities, of one model or as the mean of several.

Calibration: of the nodes that get a label with probability 0.8, are 80 % labelled rightly?

Guo et al., On Calibration of Modern Neural Networks (2017): softmax(scores / T) with one
temperature T keeps every label.  T is found on nodes that were not trained on.

Conformal prediction: sets of classes that hold the true one with a chosen probability.

Split conformal prediction: how badly do the true classes of held-out nodes fit their probabilities?
A class is in a node's set if it fits no worse than all but a share 1 - coverage of those.  The
promise is on average over nodes that are drawn as the held-out ones were, and rests on nothing
else: a bad model has large sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp, softmax
from torch import Tensor

from gcnii.errors import InputError, is_one_of

HALF = 0.5  # the probability above which a label is predicted, if nothing else is chosen


def probabilities(scores: Tensor, *, multilabel: bool) -> NDArray[np.float64]:
    """(n, k) softmax of each row, or the sigmoid of each entry if a node can have several labels.

    In float64: float32 would round the probabilities of close scores to the same number, and the
    class with the highest score would not be the most probable one.
    """
    scores = scores.double()
    return np.asarray(scores.sigmoid() if multilabel else scores.softmax(1))


def mean_probabilities(scores: Iterable[Tensor], *, multilabel: bool) -> NDArray[np.float64]:
    """(n, k) the mean of the probabilities of several models, whose scores come one at a time."""
    each = (probabilities(one, multilabel=multilabel) for one in scores)
    total, count = next(each), 1
    for one in each:
        total += one
        count += 1
    total /= count
    return total


def decided(
    P: NDArray[np.float64], *, multilabel: bool, threshold: float = HALF
) -> NDArray[np.int64]:
    """(n,) the most probable class of each row; or (n, k) 1 for labels above the threshold."""
    return np.asarray(threshold < P if multilabel else P.argmax(1), np.int64)


def weighed(
    P: NDArray[np.float64], weights: NDArray[np.float64], *, multilabel: bool
) -> NDArray[np.float64]:
    """(n, k) probabilities as they were before they were divided by weights (k,).

    With several labels per node, it is the odds of each that were divided.
    """
    W = P * weights
    return W / (W + 1 - P) if multilabel else W / W.sum(1, keepdims=True)


def best_threshold(P: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """The threshold that gives probabilities (n, k) the highest micro-F1 on labels y (n, k).

    One for all labels, midway between two neighbouring probabilities; of equally good ones the
    highest, and one half if no node has a label.  A threshold for each label would be chosen by
    the few nodes that have it, and was worse on others.
    """
    order = np.argsort(-P, axis=None, kind="stable")
    values, hits = P.ravel()[order], np.cumsum(y.ravel()[order])
    if not hits[-1]:
        return HALF
    lower = np.append(values[1:], 0.0)
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + hits[-1])
    best = int(np.where(lower < values, f1, -1.0).argmax())
    middle = (values[best] + lower[best]) / 2
    # Between two neighbouring floats there is none, and the threshold itself is not above it.
    return float(middle if middle < values[best] else lower[best])


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


Sets: TypeAlias = Literal["lac", "aps"]


def refuse_coverage(coverage: float, kind: Sets) -> None:
    """Raise InputError if no set can have such a coverage, or be of this kind."""
    number = isinstance(coverage, int | float)
    if not number or not 0 < coverage < 1:
        raise InputError(f"coverage must be a number between 0 and 1, such as 0.9, got {coverage}")
    if not is_one_of(kind, get_args(Sets)):
        raise InputError(f"kind must be lac or aps, got {kind!r}")


def misfit(P: NDArray[np.float64], kind: Sets, seed: int = 0) -> NDArray[np.float64]:
    """(n, k) how badly each class fits probabilities P.

    lac  1 - p of the class (Sadinle et al., 2019): the smallest sets on average
    aps  the probability of all classes that are likelier, and a random part of its own (Romano et
         al., 2020): larger sets, that adapt to the node
    """
    if kind == "lac":
        return 1 - P
    order = np.argsort(-P, axis=1, kind="stable")
    sums = np.take_along_axis(P, order, 1).cumsum(1)
    likelier = np.empty_like(P)
    np.put_along_axis(likelier, order, sums, 1)
    part = np.random.default_rng(seed).random((len(P), 1))
    return likelier - part * P


def largest_misfit(misfits: NDArray[np.float64], coverage: float) -> float:
    """The ⌈(n + 1) coverage⌉-th smallest of n misfits of true classes; infinite if n is too small.

    The 1 is the next node: it is as likely to fall into any of the n + 1 places between them.
    """
    # A product such as 1000 · 0.9 = 900.0000000000001 must not ask for one place more.
    place = ceil((len(misfits) + 1) * coverage - 1e-9)
    return inf if place > len(misfits) else float(np.sort(misfits)[place - 1])


def conformal_sets(
    P: NDArray[np.float64],
    held_out: NDArray[np.float64],
    y: NDArray[np.int64],
    coverage: float,
    kind: Sets = "lac",
    seed: int = 0,
) -> NDArray[np.bool_]:
    """(n, k) whether a class is in a node's set.

    held_out, y  probabilities (m, k) and true classes (m,) of the nodes that set the bound
    seed         of the random parts of aps, which are not those of the held-out nodes
    """
    true = misfit(held_out, kind, 2 * seed + 1)[np.arange(len(y)), y]
    return misfit(P, kind, 2 * seed) <= largest_misfit(true, coverage)
