"""Scores (n, k) → probabilities, of one model or as the mean of several."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

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
