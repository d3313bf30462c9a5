"""Every score of what a model says of nodes whose labels are known.

Answers counted class by class, and what follows from the counts: precision, recall, F1.

With `weights` (m, b), column j says how often each of the m nodes counts in draw j, and every
count has one more axis in front, of length b: an interval takes a thousand draws at once.

Answers: what a model says of nodes whose labels are known, and every score of it.

Each score is computed for many weightings of the nodes at once; nodes as they are have weight 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.targets.calibration import BINS
from gcnii.targets.interval import DRAWS, Estimate, bootstrap_weights, percentiles, share_of

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


RANKED = 100_000_000  # entries of draws × nodes × classes that are ranked, more or less
FEWEST = 100  # draws of a ranking
RANKINGS = ("roc_auc", "average_precision")
SHARES = ("accuracy", "subset_accuracy")  # of nodes that are right
LOWER_IS_BETTER = ("log_loss", "calibration_error")
Scores = dict[str, Floats]


@dataclass(frozen=True, eq=False)
class Answers:
    """What is said of m nodes.

    P      (m, k) probabilities
    guess  (m,) class ids, or (m, k) zeros and ones where a node can have several labels
    y      the true labels, as the guess
    part   (m,) the graph of each node, where there are several: micro-F1 is the graphs' mean
    positive   the class that ROC AUC and average precision are of; None: of two the second, else
           the mean over the classes
    """

    P: Floats
    guess: Ints
    y: Ints
    part: Ints | None = None
    positive: int | None = None

    @property
    def m(self) -> int:
        """Number of nodes."""
        return len(self.y)

    @property
    def k(self) -> int:
        """Number of classes."""
        return int(self.P.shape[1])

    @property
    def multilabel(self) -> bool:
        """Whether a node can have several labels."""
        return self.y.ndim == 2

    @property
    def right(self) -> NDArray[np.bool_]:
        """(m,) whether a node's label, or all of its labels, are as predicted."""
        same = self.guess == self.y
        return np.asarray(same.all(1) if self.multilabel else same)

    def among(self, nodes: NDArray[np.bool_]) -> Answers:
        """What is said of some of the nodes."""
        part = None if self.part is None else self.part[nodes]
        return replace(self, P=self.P[nodes], guess=self.guess[nodes], y=self.y[nodes], part=part)

    def counts(self, weights: Floats | None = None) -> Counts:
        """Class by class."""
        if self.multilabel:
            return label_counts(self.y, self.guess, weights)
        return Counts.of_confusion(confusion(self.y, self.guess, self.k, weights))

    def label_scores(self, weights: Floats) -> Scores:
        """Scores of the labels and of the probabilities, each (b,)."""
        total, counts = weights.sum(0), self.counts(weights)
        right = self.right @ weights / total
        if self.multilabel:
            chosen = {"micro_f1": self._micro_f1(weights), "macro_f1": counts.macro_f1}
            chosen["subset_accuracy"] = right
        else:
            chosen = {"accuracy": right, "balanced_accuracy": counts.balanced_accuracy}
            chosen["macro_f1"] = counts.macro_f1
        chosen["log_loss"] = self._losses @ weights / total
        chosen["calibration_error"] = np.abs(self._gaps @ weights).sum(0) / total
        return chosen

    def rankings(self, weights: Floats) -> Scores:
        """ROC AUC and average precision of each class against the rest, each (b, k)."""
        classes = [self._ranking(j, weights) for j in range(self.k)]
        auc, ap = zip(*classes, strict=True)
        return {"roc_auc": np.stack(auc, 1), "average_precision": np.stack(ap, 1)}

    def ranking_scores(self, weights: Floats) -> Scores:
        """Those of the positive class, or their means over the classes with both kinds of nodes."""
        if (j := self._ranked) is not None:
            return dict(zip(RANKINGS, self._ranking(j, weights), strict=True))
        return {name: mean_of_known(one) for name, one in self.rankings(weights).items()}

    @cached_property
    def scores(self) -> dict[str, float]:
        """Every score of the nodes as they are."""
        ones = np.ones((self.m, 1))
        found = self.label_scores(ones) | self.ranking_scores(ones)
        return {name: float(one[0]) for name, one in found.items()}

    @property
    def ranking_draws(self) -> int:
        """The number of draws for an interval of a ranking, which is slow for many nodes."""
        return int(np.clip(RANKED // (self.m * self.k), FEWEST, DRAWS))

    def drawn(self, score: Callable[[Floats], Scores], draws: int = DRAWS) -> Scores:
        """What a function of weights gives for bootstrap draws of the nodes, (draws, …)."""
        chunks = [score(weights) for weights in bootstrap_weights(self.m, draws)]
        return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}

    def drawn_scores(self) -> Scores:
        """Every score of bootstrap draws of the nodes."""
        ranked = self.drawn(self.ranking_scores, self.ranking_draws)
        return self.drawn(self.label_scores) | ranked

    def scored(self, name: str) -> Callable[[Floats], Floats]:
        """The function of weights that gives the score of this name, (b,)."""
        every = self.ranking_scores if name in RANKINGS else self.label_scores
        return lambda weights: every(weights)[name]

    def estimate(self, name: str, drawn: Floats) -> Estimate:
        """A score with its interval over the nodes, from what bootstrap draws of them give."""
        score = self.scores[name]
        if name in SHARES:
            return share_of(float(self.right.sum()), self.m)
        return percentiles(score, drawn, () if name == "log_loss" else self.sizes(name))

    def sizes(self, name: str) -> list[float]:
        """The nodes that a score rests on: of each class, where it is the mean over classes."""
        if name in ("balanced_accuracy", "macro_f1"):
            return [one for one in self.counts().support.tolist() if one]
        if name not in RANKINGS:
            return [self.m]
        truth = self.y == 1 if self.multilabel else self.y[:, None] == np.arange(self.k)
        with_it = truth.sum(0)
        fewer = np.minimum(with_it, self.m - with_it)
        j = self._ranked
        return [one for one in (fewer if j is None else fewer[[j]]).tolist() if one]

    @property
    def _ranked(self) -> int | None:
        """The class whose order is graded; None: all."""
        second = self.positive is None and self.k == 2 and not self.multilabel
        return 1 if second else self.positive

    def _micro_f1(self, weights: Floats) -> Floats:
        part = np.zeros(self.m, np.int64) if self.part is None else self.part
        size = int(part.max()) + 1
        counts = ((self.y * self.guess).sum(1), self.y.sum(1) + self.guess.sum(1))
        hits, named = (summed(part, size, weights, one.astype(np.float64)) for one in counts)
        there = summed(part, size, weights) > 0
        # As in training: where no label is there and none is predicted, the F1 of a graph is 0.
        f1 = np.where(named > 0, share(2 * hits, named), 0.0)
        return mean_of_known(np.where(there, f1, np.nan))

    @cached_property
    def _losses(self) -> Floats:
        """(m,) the log loss of each node; of several labels, the mean over the labels."""
        tiny = np.finfo(np.float64).eps
        P = self.P.clip(tiny, 1 - tiny)
        if self.multilabel:
            return np.asarray(-np.where(self.y == 1, np.log(P), np.log1p(-P)).mean(1))
        return np.asarray(-np.log(P[np.arange(self.m), self.y]))

    @cached_property
    def _gaps(self) -> sp.csr_array:
        """(bins, m) by which each node is more often right than its confidence says."""
        if self.multilabel:
            sure, hit, times = self.P.ravel(), self.y.ravel(), self.k
        else:
            sure, hit, times = self.P.max(1), self.P.argmax(1) == self.y, 1
        nodes = np.repeat(np.arange(self.m), times)
        bins = np.clip(np.ceil(sure * BINS).astype(np.int64) - 1, 0, BINS - 1)
        return sp.csr_array(((hit - sure) / times, (bins, nodes)), (BINS, self.m))

    def _ranking(self, j: int, weights: Floats) -> tuple[Floats, Floats]:
        """ROC AUC and average precision of class j, each (b,); NaN if all or no nodes are of it."""
        truth = self.y[:, j] == 1 if self.multilabel else self.y == j
        order, first = self._order(j)
        positive = np.add.reduceat(weights[order] * truth[order, None], first, 0)
        every = np.add.reduceat(weights[order], first, 0)
        # Highest probability first; equal ones are one step, and half of their pairs are won.
        found, called = positive.cumsum(0), every.cumsum(0)
        positives, negatives = found[-1], called[-1] - found[-1]
        won = (every - positive) * (found - positive / 2)
        auc = share(won.sum(0), positives * negatives)
        precision = np.divide(found, called, out=np.zeros_like(found), where=called > 0)
        ap = share((positive * precision).sum(0), positives)
        return auc, np.where(negatives > 0, ap, np.nan)

    def _order(self, j: int) -> tuple[Ints, Ints]:
        """The nodes, the most probable of class j first, and where each probability begins."""
        order = np.argsort(-self.P[:, j], kind="stable")
        ordered = self.P[order, j]
        return order, np.flatnonzero(np.diff(ordered, prepend=np.inf))
