"""Scores (n, k) → probabilities, of one model or as the mean of several."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


def probabilities(scores: Tensor, *, multilabel: bool) -> NDArray[np.float64]:
    """(n, k) softmax of each row, or the sigmoid of each entry if a node can have several labels.

    In float64: float32 would round the probabilities of close scores to the same number, and the
    class with the highest score would not be the most probable one.
    """
    scores = scores.double()
    return np.asarray(scores.sigmoid() if multilabel else scores.softmax(1))


def mean_probabilities(scores: Iterable[Tensor], *, multilabel: bool) -> NDArray[np.float64]:
    """(n, k) the mean of the probabilities of several models, whose scores come one at a time."""
    total, count = np.zeros(()), 0
    for one in scores:
        total, count = total + probabilities(one, multilabel=multilabel), count + 1
    return np.asarray(total / count)


def decided(P: NDArray[np.float64], *, multilabel: bool) -> NDArray[np.int64]:
    """(n,) the most probable class of each row; or (n, k) 1 where a label is above one half."""
    return np.asarray(P > 0.5 if multilabel else P.argmax(1), np.int64)
