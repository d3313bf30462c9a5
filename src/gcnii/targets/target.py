"""Target: what is predicted of each node, and everything that depends on it.

Loss, link function, thresholds, calibration, how labels are counted and named.  The kinds are
classes of kinds.py; other rooms ask the Target of a graph (`target_of`) and need not know its kind.

What takes tensors runs inside a captured epoch: tensors alone, and no host synchronisation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log, sqrt
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from gcnii.targets.scores import ClassCounts, Score

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Total = Callable[[Tensor], Tensor]

HALF = 0.5  # the probability above which a label is predicted, if nothing else is chosen
BINS = 15
COLDEST, WARMEST = 1e-2, 1e2  # between which a temperature is looked for
HALVINGS = 60  # of that interval, on a logarithmic scale
LEAST = 10  # validation nodes, below which no temperature is looked for
FEW = 100  # validation nodes, below which the remaining error is reported


def alone(sums: Tensor) -> Tensor:
    """The total, where one process has all nodes."""
    return sums


@dataclass(frozen=True)
class Bin:
    """The forecasts with a confidence in (low, high]: how sure they were, and how often right."""

    low: float
    high: float
    nodes: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Target(ABC):
    """What is predicted of each node: one of k classes, or any of k labels.

    k        columns of scores and of probabilities
    classes  their names, if they have any

    scores     how predictions are graded; the first is what `metric="auto"` stands for
    exclusive  whether a node has exactly one of the k, so that it is confused with another
    words      what one of the k is called, and several
    described  what all k are called, where they are listed
    """

    k: int
    classes: tuple[str, ...] | None = None

    scores: ClassVar[tuple[Score, ...]]
    exclusive: ClassVar[bool]
    words: ClassVar[tuple[str, str]]
    described: ClassVar[str]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the k, or their numbers."""
        return self.classes or tuple(map(str, range(self.k)))

    @property
    def binary(self) -> bool:
        """Whether a node is of one of two classes, so that the score of one says all."""
        return self.exclusive and self.k == 2

    def score(self, metric: str) -> Score:
        """What a setting such as "f1" means for this target."""
        return next(one for one in self.scores if metric in ("auto", one.setting))

    # Training: tensors of all replicas.

    @abstractmethod
    def losses(self, scores: Tensor, y: Tensor, weights: Tensor | None) -> Tensor:
        """(r, n) the loss of each node, of scores (r, n, k) and what `balanced_weights` gives.

        Anything finite where the label is unknown.
        """

    @abstractmethod
    def ordered(self, scores: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Each (…, k): by what nodes can be put in order, and whether they are of the class.

        The higher the first, the more likely the class.
        """

    @abstractmethod
    def log_probabilities(self, scores: Tensor) -> Tensor:
        """(…, k) with a gradient."""

    @abstractmethod
    def agreed(self, scores: Tensor, T: Tensor) -> tuple[Tensor, Tensor]:
        """Probabilities (r, S, n, k) of S views, and the sharpened mean (r, n, k) of the views."""

    def disagreement(self, scores: Tensor, sharpen: Tensor) -> Tensor:
        """The mean over views and nodes of ‖p - sharp(p̄)‖², for scores (r, S, n, k): (r,).

        GRAND (Feng et al. 2020).  p̄ is the mean of the views' probabilities, and no gradient passes
        through sharp(p̄).

        sharpen  (r,) T; its type is that of the numbers here
        """
        p, target = self.agreed(scores.to(sharpen.dtype), sharpen[:, None, None])
        return (p - target.detach()[:, None]).square().sum(-1).mean((1, 2))

    @abstractmethod
    def balanced_weights(self, y: Ints, total: Total = alone) -> Floats:
        """By which losses are multiplied, so that all classes count the same in training.

        The mean over the training nodes is 1, so that a learning rate keeps its meaning.

        y      labels of the training nodes
        total  adds up the counts of several processes
        """

    # Probabilities and what they predict.

    @abstractmethod
    def probabilities(self, scores: Tensor) -> Floats:
        """(n, k) of scores (n, k).

        In float64: float32 would round the probabilities of close scores to the same number, and
        the class with the highest score would not be the most probable one.
        """

    def mean_probabilities(self, scores: Iterable[Tensor]) -> Floats:
        """(n, k) the mean over several models, whose scores come one at a time."""
        each = map(self.probabilities, scores)
        mean, count = next(each), 1
        for one in each:
            mean += one
            count += 1
        mean /= count
        return mean

    @abstractmethod
    def decided(self, P: Floats, threshold: float = HALF) -> Ints:
        """What probabilities (n, k) predict, in the form of a graph's labels."""

    @abstractmethod
    def best_threshold(self, P: Floats, y: Ints) -> float:
        """The threshold that suits labels y best; one half where there is none to choose."""

    @abstractmethod
    def log_odds(self, weights: Floats) -> Floats:
        """(k,) by which `balanced_weights` move the scores."""

    @abstractmethod
    def weighed(self, P: Floats, weights: Floats) -> Floats:
        """(n, k) probabilities as they were before they were divided by weights (k,)."""

    def named(self, ids: Ints) -> NDArray[np.str_] | Ints:
        """What is predicted, by name where a node has one."""
        return np.array(self.classes)[ids] if self.exclusive and self.classes else ids

    @abstractmethod
    def shown(self, ids: Ints | Bools) -> list[str]:
        """The label of each node as a table has it; anything where it is unknown."""

    # Calibration: of the nodes that get a label with probability 0.8, are 80 % labelled rightly?
    # Guo et al., On Calibration of Modern Neural Networks (2017): scores / T with one temperature T
    # keep every label.  T is found on nodes that were not trained on.

    @abstractmethod
    def link(self, scores: Floats) -> Floats:
        """(n, k) the probabilities of scores, as numpy has them."""

    @abstractmethod
    def best_temperature(self, scores: Floats, y: Ints) -> float:
        """T at which the confidence of scores (n, k) matches their accuracy on labels y."""

    @abstractmethod
    def tempered(self, P: Floats, T: float) -> Floats:
        """Probabilities with a temperature of their own."""

    @abstractmethod
    def _likelihood(self, z: Floats, trusted: Floats) -> Floats:
        """Terms whose sum is the log loss of scores z (n, k) against labels (n, k)."""

    def fitted(self, scores: Floats, y: Ints, log_weights: Floats) -> tuple[float, float]:
        """T and g with which link(scores / T - g log w) makes labels y likeliest.

        A loss that weighs class c by w_c teaches probabilities p_c w_c, so that g should be 1; but
        a network that fits its training nodes exactly does so whatever they weigh, and its g is
        lower.  The loss is convex in 1 / T and g.
        """
        from scipy.optimize import minimize  # few trainings need it

        trusted = self._trusted(y)

        def loss(x: Floats) -> tuple[float, Floats]:
            z = x[0] * scores - x[1] * log_weights
            each, gap = self._likelihood(z, trusted), self.link(z) - trusted
            slopes = [(gap * scores).sum(), -(gap * log_weights).sum()]
            return float(each.sum()) / len(y), np.array(slopes) / len(y)

        bounds = [(1 / WARMEST, 1 / COLDEST), (None, None)]
        x = minimize(loss, (1.0, 1.0), jac=True, method="L-BFGS-B", bounds=bounds).x
        return 1 / float(x[0]), float(x[1])

    def _trusted(self, y: Ints) -> Floats:
        """(n, k) labels, each trusted but for the share 1 / (n + 2), as Platt has it."""
        unsure, even = 1 / (len(y) + 2), 1 / self.k if self.exclusive else 0.5
        return np.asarray((1 - unsure) * self.indicators(y) + unsure * even)

    @abstractmethod
    def forecasts(self, P: Floats, y: Ints) -> tuple[Floats, Bools]:
        """How sure each forecast is, and whether it is right."""

    def reliability(self, P: Floats, y: Ints, bins: int = BINS) -> list[Bin]:
        """The bins of equal width that have forecasts in them, from unsure to sure."""
        confidence, right = self.forecasts(P, y)
        place = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
        counts = np.bincount(place, minlength=bins)
        sure, hits = (np.bincount(place, one, minlength=bins) for one in (confidence, right))
        return [
            Bin(i / bins, (i + 1) / bins, int(n), float(sure[i] / n), float(hits[i] / n))
            for i, n in enumerate(counts)
            if n
        ]

    def calibration_error(self, P: Floats, y: Ints, bins: int = BINS) -> float:
        """The expected calibration error: the mean gap of the bins' confidence and accuracy.

        NaN without nodes.  It cannot be negative, so it is too large for few nodes.
        """
        found = self.reliability(P, y, bins)
        total = sum(one.nodes for one in found)
        gap = sum(one.nodes * abs(one.confidence - one.accuracy) for one in found)
        return gap / total if total else float("nan")

    # Labels that are known.

    @abstractmethod
    def indicators(self, y: Ints) -> Floats:
        """(n, k) ones for what a node is; anything where its label is unknown."""

    def usual(self, y: Ints) -> Ints:
        """(1, …) the label of one node: what most nodes have."""
        return self.decided(self.indicators(y).mean(0, keepdims=True))

    @abstractmethod
    def counts(self, y: Ints, guess: Ints, weights: Floats | None = None) -> ClassCounts:
        """How many nodes of each class are there, are predicted, and are found."""

    @abstractmethod
    def log_losses(self, P: Floats, y: Ints) -> Floats:
        """(n,) the log loss of each node, of probabilities within (0, 1)."""


def bisected(too_cold: Callable[[float], bool]) -> float:
    """The temperature above those that are too cold."""
    cold, warm = np.log(COLDEST), np.log(WARMEST)
    for _ in range(HALVINGS):
        middle = (cold + warm) / 2
        cold, warm = (middle, warm) if too_cold(float(np.exp(middle))) else (cold, middle)
    return float(np.exp((cold + warm) / 2))


def error_left(right: int, nodes: int) -> float:
    """A standard error of these nodes' accuracy: probabilities fitted to it can be so far off.

    Laplace's rule adds two nodes, so that it is not 0 where all are right.
    """
    share = (right + 1) / (nodes + 2)
    return sqrt(share * (1 - share) / max(nodes, 1))


def log_mean(log_p: Tensor) -> Tensor:
    """The logarithm of the mean over the views: (r, S, n, k) → (r, n, k)."""
    return log_p.detach().logsumexp(1) - log(log_p.shape[1])
