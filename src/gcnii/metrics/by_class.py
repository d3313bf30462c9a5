"""Answers counted class by class, and what follows from the counts: precision, recall, F1.

With `weights` (m, b), column j says how often each of the m nodes counts in draw j, and every
count has one more axis in front, of length b: an interval takes a thousand draws at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counts:
    """How many nodes of each class are found, are there, and are predicted, each (…, k)."""

    hits: Floats
    support: Floats
    predicted: Floats

    @classmethod
    def of_confusion(cls, C: Floats) -> Counts:
        """Of confusion matrices (…, k, k), whose rows are the true classes."""
        return cls(C.diagonal(axis1=-2, axis2=-1), C.sum(-1), C.sum(-2))

    @property
    def precision(self) -> Floats:
        """Of the nodes that are predicted as the class, the share that is; NaN if none is."""
        return share(self.hits, self.predicted)

    @property
    def recall(self) -> Floats:
        """Of the nodes of the class, the share that is found; NaN if there is none."""
        return share(self.hits, self.support)

    @property
    def f1(self) -> Floats:
        """The harmonic mean of both; NaN for a class that is neither there nor predicted."""
        return share(2 * self.hits, self.support + self.predicted)

    @property
    def balanced_accuracy(self) -> Floats:
        """The mean recall of the classes that are there."""
        return mean_of_known(self.recall)

    @property
    def macro_f1(self) -> Floats:
        """The mean F1 of the classes that are there or predicted."""
        return mean_of_known(self.f1)


def confusion(y: Ints, guess: Ints, k: int, weights: Floats | None = None) -> Floats:
    """(k, k) how many nodes of each class (row) are predicted as each (column)."""
    if weights is None:
        return np.bincount(y * k + guess, minlength=k * k).reshape(k, k).astype(np.float64)
    return summed(y * k + guess, k * k, weights).reshape(-1, k, k)


def label_counts(y: Ints, guess: Ints, weights: Floats | None = None) -> Counts:
    """Of zeros and ones (m, k), where a node can have several labels."""
    ones = np.ones((len(y), 1)) if weights is None else weights
    hits, support, predicted = (ones.T @ one for one in (y * guess, y, guess))
    if weights is None:
        return Counts(hits[0], support[0], predicted[0])
    return Counts(hits, support, predicted)


def summed(places: Ints, size: int, weights: Floats, values: Floats | None = None) -> Floats:
    """(b, size) the weights (m, b) of the nodes in each place, times their values if given."""
    m = len(places)
    data = np.ones(m) if values is None else values
    return np.asarray((sp.csr_array((data, (places, np.arange(m))), (size, m)) @ weights).T)


def share(part: Floats, whole: Floats) -> Floats:
    """Part / whole, NaN where the whole is nothing."""
    found = np.full(np.broadcast(part, whole).shape, np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


def mean_of_known(values: Floats) -> Floats:
    """The mean over the last axis of what is not NaN; NaN where nothing is."""
    known = ~np.isnan(values)
    return share(np.where(known, values, 0.0).sum(-1), known.sum(-1).astype(np.float64))
