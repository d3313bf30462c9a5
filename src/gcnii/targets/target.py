"""Target: what is predicted of each node, and everything that depends on it.

Other rooms ask the Target of a graph (`target_of`) and need not know its kind where a loss, scores
and answers are all they want.  A LabelTarget has probabilities, and so thresholds, calibration, and
labels that are counted and named:

Classes: a node is of one of k.  Cross-entropy, softmax, and sets of classes.

SeveralLabels: a node has any of k labels.  Binary cross-entropy, sigmoid, thresholds.

Numbers, in a file of its own, has values in their units.

What takes tensors runs inside a captured epoch: tensors alone, and no host synchronisation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil, inf, log, sqrt
from typing import ClassVar, Literal, TypeAlias, final, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, logit, logsumexp, softmax
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid, nll_loss

from gcnii import kernels
from gcnii.errors import InputError
from gcnii.graph.arrays import Labels
from gcnii.targets.scores import (
    BINS,
    CLASS_SCORES,
    LABEL_SCORES,
    ClassCounts,
    Score,
    confusion,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Total = Callable[[Tensor], Tensor]

HALF = 0.5  # the probability above which a label is predicted, if nothing else is chosen
COLDEST, WARMEST = 1e-2, 1e2  # between which a temperature is looked for
HALVINGS = 60  # of that interval, on a logarithmic scale
MOST_WEIGHT = 100  # of a rare label's positives beside its negatives
BELOW_ONE = float(np.nextafter(1.0, 0.0))  # above which no probability needs to be
TINY, LEAST_P = 1e-300, 1e-12  # 0 has no logarithm
LEAST = 10  # validation nodes, below which no temperature is looked for
FEW = 100  # validation nodes, below which the remaining error is reported
Sets: TypeAlias = Literal["lac", "aps"]


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
    """What is predicted of each node: k columns of scores, and of answers made of them.

    scores     how predictions are graded; the first is what `metric="auto"` stands for
    words      what one of the k is called, and several
    described  what all k are called, where they are listed
    """

    k: int

    scores: ClassVar[tuple[Score, ...]]
    words: ClassVar[tuple[str, str]]
    described: ClassVar[str]

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """What each of the k is called."""

    @property
    def binary(self) -> bool:
        """Whether a node is of one of two classes, so that the score of one says all."""
        return False

    def score(self, metric: str) -> Score:
        """What a setting such as "f1" means for this target; InputError if it means nothing."""
        found = [one for one in self.scores if metric in ("auto", one.setting)]
        if not found:
            known = ", ".join(one.setting for one in self.scores if one.setting)
            raise InputError(f"metric {metric} is not for {self.words[1]}; known: auto, {known}")
        return found[0]

    @abstractmethod
    def learnt(self, y: Labels, class_weight: str, total: Total = alone) -> Floats | None:
        """What the loss must know of the training nodes, whose labels are y; None: nothing.

        total  adds up the sums of several processes
        """

    @abstractmethod
    def losses(
        self, scores: Tensor, y: Tensor, learnt: Tensor | None, focal: float = 0.0
    ) -> Tensor:
        """(r, n) the loss of each node, of scores (r, n, k) and what each replica has `learnt`.

        Anything finite where the label is unknown.

        focal  γ of the focal loss, of labels
        """

    @abstractmethod
    def answers(self, scores: Tensor) -> Floats:
        """(n, k) probabilities of scores (n, k), or values."""

    def mean_answers(self, scores: Iterable[Tensor]) -> Floats:
        """(n, k) the mean over several models, whose scores come one at a time."""
        each = map(self.answers, scores)
        mean, count = next(each), 1
        for one in each:
            mean += one
            count += 1
        mean /= count
        return mean

    @abstractmethod
    def decided(self, P: Floats, threshold: float = HALF) -> Labels:
        """What answers (n, k) predict, in the form of a graph's labels."""

    @abstractmethod
    def named(self, ids: Labels) -> NDArray[np.str_] | Labels:
        """What is predicted, as a user has it."""

    @abstractmethod
    def badness(self, answers: Floats, y: Labels) -> Floats:
        """(n,) how wrong answers (n, k) are of each node, whose mean is the lowest for the best.

        The log loss of probabilities; the squared error of values, in variances of y.
        """

    @abstractmethod
    def shown(self, ids: Labels | Bools) -> list[str]:
        """The label of each node as a table has it; anything where it is unknown."""


def as_labels(target: Target, what: str) -> LabelTarget:
    """The target itself, if it is of labels; else InputError, as `what` is for labels alone."""
    if isinstance(target, LabelTarget):
        return target
    names = ", ".join(target.names)
    raise InputError(f"{what} for classes, but this model predicts numbers ({names})")


@dataclass(frozen=True)
class LabelTarget(Target):
    """One of k classes, or any of k labels.

    classes    their names, if they have any
    exclusive  whether a node has exactly one of the k, so that it is confused with another
    """

    classes: tuple[str, ...] | None = None

    exclusive: ClassVar[bool]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the k, or their numbers."""
        return self.classes or tuple(map(str, range(self.k)))

    # Training: tensors of all replicas.

    def learnt(self, y: Ints, class_weight: str, total: Total = alone) -> Floats | None:
        """`balanced_weights`, if classes are weighed."""
        return self.balanced_weights(y, total) if class_weight == "balanced" else None

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

    # Probabilities and what they predict.  In float64: float32 would round the probabilities of
    # close scores to the same number, and the class with the highest score would not be the most
    # probable one.

    def badness(self, answers: Floats, y: Ints) -> Floats:
        """The log loss."""
        return self.log_losses(np.clip(answers, LEAST_P, 1 - LEAST_P), y)

    @abstractmethod
    def decided(self, P: Floats, threshold: float = HALF) -> Ints:
        """What probabilities (n, k) predict, in the form of a graph's labels."""

    @abstractmethod
    def best_threshold(
        self, P: Floats, y: Ints, positive: int | None = None, cost: float | None = None
    ) -> float:
        """The threshold that suits labels y best; one half where there is none to choose.

        positive  of two classes, the one whose F1 is to be highest; None: none is chosen for them
        cost      or what missing a node of it costs, in false alarms, where the sum of these counts
        """

    @abstractmethod
    def log_odds(self, weights: Floats) -> Floats:
        """(k,) by which `balanced_weights` move the scores."""

    @abstractmethod
    def weighed(self, P: Floats, weights: Floats) -> Floats:
        """(n, k) probabilities as they were before they were divided by weights (k,)."""

    def named(self, ids: Ints) -> NDArray[np.str_] | Ints:
        """What is predicted, by name where a node has one."""
        return np.array(self.classes)[ids] if self.exclusive and self.classes else ids

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


def best_cut(p: Floats, truth: Ints | Bools, cost: float | None = None) -> float:
    """The probability above which to call nodes positive, for the highest F1 or the least cost.

    Midway between two neighbouring probabilities; of equally good ones the highest, and one half if
    no node is positive.

    p      of each node
    truth  whether it is positive
    cost   of a miss, in false alarms; None: F1 counts
    """
    order = np.argsort(-p, kind="stable")
    values, hits = p[order], np.cumsum(truth[order])
    if not hits[-1]:
        return HALF
    lower, called = np.append(values[1:], 0.0), np.arange(1, len(hits) + 1)
    gain: Floats = 2 * hits / (called + hits[-1])
    if cost is not None:
        gain = np.multiply(cost + 1, hits) - called
    best = int(np.where(lower < values, gain, -inf).argmax())
    if cost is not None and gain[best] <= 0:  # whoever is called costs more than is won
        return BELOW_ONE
    middle = (values[best] + lower[best]) / 2
    # Between two neighbouring floats there is none, and the threshold itself is not above it.
    return float(middle if middle < values[best] else lower[best])


def error_left(right: int, nodes: int) -> float:
    """A standard error of these nodes' accuracy: probabilities fitted to it can be so far off.

    Laplace's rule adds two nodes, so that it is not 0 where all are right.
    """
    share = (right + 1) / (nodes + 2)
    return sqrt(share * (1 - share) / max(nodes, 1))


SUREST = 1e-6  # 1 - p, below which a power of it has no useful slope


def focused(losses: Tensor, gamma: float) -> Tensor:
    """(1 - p)^γ (-log p) of losses -log p: what is easy weighs less (Lin et al., 2017)."""
    if not gamma:
        return losses
    return losses * (-torch.expm1(-losses)).clamp(min=SUREST) ** gamma


def log_mean(log_p: Tensor) -> Tensor:
    """The logarithm of the mean over the views: (r, S, n, k) → (r, n, k)."""
    return log_p.detach().logsumexp(1) - log(log_p.shape[1])


def _entropies(scores: Tensor, y: Tensor) -> Tensor:
    """(r, n) -log softmax of scores (r, n, k) at y (n,); any number where y < 0."""
    if kernels.usable(scores):
        from gcnii.kernels.loss import Entropies

        return Entropies.apply(scores, y)  # type: ignore[no-any-return, no-untyped-call]
    labels = y.clamp(min=0).expand(len(scores), -1)
    each = nll_loss(scores.log_softmax(-1).flatten(0, 1), labels.flatten(), reduction="none")
    return each.view(scores.shape[:2])


@final
@dataclass(frozen=True)
class Classes(LabelTarget):
    """Labels are class ids (n,), predicted by the highest of k scores."""

    scores = CLASS_SCORES
    exclusive = True
    words = ("class", "classes")
    described = "classes"

    @property
    def binary(self) -> bool:
        """Whether there are two."""
        return self.k == 2

    def losses(
        self, scores: Tensor, y: Tensor, learnt: Tensor | None, focal: float = 0.0
    ) -> Tensor:
        each, y = focused(_entropies(scores, y), focal), y.clamp(min=0)
        return each if learnt is None else each * learnt.to(scores.dtype)[:, y]

    def ordered(self, scores: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        k = scores.shape[-1]
        # Probabilities can be compared between nodes, and scores cannot.
        margins = scores - scores.flip(-1) if k == 2 else scores.log_softmax(-1)
        return margins, y[..., None] == torch.arange(k, device=y.device)

    def log_probabilities(self, scores: Tensor) -> Tensor:
        return scores.log_softmax(-1)

    def agreed(self, scores: Tensor, T: Tensor) -> tuple[Tensor, Tensor]:
        """sharp(p)_c = p_c^(1/T) / Σ_j p_j^(1/T)."""
        log_p = scores.log_softmax(-1)
        return log_p.exp(), (log_mean(log_p) / T).softmax(-1)

    def balanced_weights(self, y: Ints, total: Total = alone) -> Floats:
        """(k,) n / (classes · n_c) for a class of n_c of the n nodes, as in scikit-learn.

        1 for a class that has none.
        """
        n = int(total(torch.tensor(len(y))))
        counts = total(torch.tensor(np.bincount(y, minlength=self.k))).numpy()
        return np.where(counts, n / (np.maximum(counts, 1) * (counts > 0).sum()), 1.0)

    def answers(self, scores: Tensor) -> Floats:
        return np.asarray(scores.double().softmax(1))

    def decided(self, P: Floats, threshold: float = HALF) -> Ints:
        """(n,) the most probable class of each node; of two, the second above the threshold."""
        if self.binary and threshold != HALF:
            return np.asarray(threshold < P[:, 1], np.int64)
        return np.asarray(P.argmax(1), np.int64)

    def best_threshold(
        self, P: Floats, y: Ints, positive: int | None = None, cost: float | None = None
    ) -> float:
        """Of two classes, that of the probability of the second, whichever is the positive one."""
        if positive is None or not self.binary:
            return HALF
        cut = best_cut(P[:, positive], y == positive, cost)
        return cut if positive == 1 else min(1 - cut, BELOW_ONE)

    def log_odds(self, weights: Floats) -> Floats:
        return np.asarray(np.log(weights))

    def weighed(self, P: Floats, weights: Floats) -> Floats:
        W = P * weights
        return np.asarray(W / W.sum(1, keepdims=True))

    def shown(self, ids: Ints | Bools) -> list[str]:
        names = self.names
        return [names[i] if i >= 0 else "" for i in ids]

    def link(self, scores: Floats) -> Floats:
        return np.asarray(softmax(scores, axis=1))

    def best_temperature(self, scores: Floats, y: Ints) -> float:
        """T at which the mean confidence of the n nodes is their accuracy.

        Guo et al. take the likeliest T; but a few confident mistakes weigh so much in the
        likelihood that it is too warm: on Citeseer's validation nodes a mean confidence of 0.65
        where 0.70 are right.  Laplace's rule adds two nodes, one of them right: otherwise T would
        be 0 for a few nodes that are all right.  Confidence falls as T rises.
        """
        if np.ptp(scores, axis=1).max() == 0:
            return 1.0  # no temperature changes anything
        accuracy = ((scores.argmax(1) == y).sum() + 1) / (len(y) + 2)
        return bisected(lambda T: bool(self.link(scores / T).max(1).mean() > accuracy))

    def tempered(self, P: Floats, T: float) -> Floats:
        """Softmax(log P / T)."""
        return self.link(np.log(np.maximum(P, TINY)) / T)

    def _likelihood(self, z: Floats, trusted: Floats) -> Floats:
        return np.asarray(logsumexp(z, axis=1, keepdims=True) - (trusted * z).sum(1, keepdims=True))

    def forecasts(self, P: Floats, y: Ints) -> tuple[Floats, Bools]:
        """Of each node, that it is of its most probable class."""
        return P.max(1, initial=-inf), P.argmax(1) == y

    def indicators(self, y: Ints) -> Floats:
        return np.asarray(np.eye(self.k)[y])

    def counts(self, y: Ints, guess: Ints, weights: Floats | None = None) -> ClassCounts:
        return ClassCounts.of_confusion(confusion(y, guess, self.k, weights))

    def log_losses(self, P: Floats, y: Ints) -> Floats:
        return np.asarray(-np.log(P[np.arange(len(y)), y]))


@final
@dataclass(frozen=True)
class SeveralLabels(LabelTarget):
    """Labels are zeros and ones (n, k), each predicted by a score of its own."""

    scores = LABEL_SCORES
    exclusive = False
    words = ("label", "labels")
    described = "labels (a node can have several)"

    def losses(
        self, scores: Tensor, y: Tensor, learnt: Tensor | None, focal: float = 0.0
    ) -> Tensor:
        y = y.clamp(min=0)
        target = y.to(scores.dtype).expand_as(scores)
        entries = binary_cross_entropy_with_logits(scores, target, reduction="none")
        entries = focused(entries, focal)
        if learnt is not None:
            negative, positive = learnt.to(scores.dtype)[:, :, None].unbind(1)
            entries = entries * torch.where(y == 1, positive, negative)
        return entries.mean(-1)

    def ordered(self, scores: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return scores, y == 1

    def log_probabilities(self, scores: Tensor) -> Tensor:
        return logsigmoid(scores)

    def agreed(self, scores: Tensor, T: Tensor) -> tuple[Tensor, Tensor]:
        """sharp(p) = p^(1/T) / (p^(1/T) + (1-p)^(1/T)), of each label by itself."""
        odds = log_mean(logsigmoid(scores)) - log_mean(logsigmoid(-scores))
        return scores.sigmoid(), (odds / T).sigmoid()

    def balanced_weights(self, y: Ints, total: Total = alone) -> Floats:
        """(2, k) of each label's negatives and positives.

        Their ratio is negatives / positives, at least 1 and at most 100.
        """
        n = int(total(torch.tensor(len(y))))
        positives = total(torch.tensor(y.sum(0))).numpy()
        ratio = np.clip((n - positives) / np.maximum(positives, 1), 1, MOST_WEIGHT)
        ratio = np.where(positives, ratio, 1.0)
        negative = n / (n - positives + ratio * positives)
        return np.stack([negative, ratio * negative])

    def answers(self, scores: Tensor) -> Floats:
        return np.asarray(scores.double().sigmoid())

    def decided(self, P: Floats, threshold: float = HALF) -> Ints:
        """(n, k) 1 for labels above the threshold."""
        return np.asarray(threshold < P, np.int64)

    def best_threshold(
        self, P: Floats, y: Ints, positive: int | None = None, cost: float | None = None
    ) -> float:
        """The threshold that gives probabilities (n, k) the highest micro-F1 on labels y (n, k).

        One for all labels: a threshold for each would be chosen by the few nodes that have it, and
        was worse on others.
        """
        return best_cut(P.ravel(), y.ravel())

    def log_odds(self, weights: Floats) -> Floats:
        negative, positive = np.log(weights)
        return np.asarray(positive - negative)

    def weighed(self, P: Floats, weights: Floats) -> Floats:
        """It is the odds of each label that were divided."""
        W = P * weights
        return W / (W + 1 - P)

    def shown(self, ids: Ints | Bools) -> list[str]:
        """Joined by `;`, a name that holds `;` or `"` in quotes, as in CSV."""
        quoted = [_quoted(name) for name in self.names]
        return [";".join(quoted[j] for j in np.flatnonzero(row == 1)) for row in ids]

    def link(self, scores: Floats) -> Floats:
        return np.asarray(expit(scores))

    def best_temperature(self, scores: Floats, y: Ints) -> float:
        """T that makes labels y (n, k) likeliest under sigmoid(scores / T), as Guo et al. have it.

        The loss is convex in 1 / T, so its slope has one zero.
        """
        if np.ptp(scores) == 0:
            return 1.0
        trusted = self._trusted(y)
        return bisected(lambda T: float(((self.link(scores / T) - trusted) * scores).sum()) > 0)

    def tempered(self, P: Floats, T: float) -> Floats:
        """The probabilities sigmoid(scores / T) of scores whose sigmoid is P."""
        return np.asarray(expit(logit(P) / T))

    def _likelihood(self, z: Floats, trusted: Floats) -> Floats:
        return np.asarray(np.logaddexp(0, z) - trusted * z)

    def forecasts(self, P: Floats, y: Ints) -> tuple[Floats, Bools]:
        """Of each node and label, that it has it."""
        return P.ravel(), y.ravel() == 1

    def indicators(self, y: Ints) -> Floats:
        return y.astype(np.float64)

    def counts(self, y: Ints, guess: Ints, weights: Floats | None = None) -> ClassCounts:
        found = (y * guess, y, guess)
        if weights is None:
            return ClassCounts(*(one.sum(0, dtype=np.float64) for one in found))
        return ClassCounts(*(weights.T @ one for one in found))

    def log_losses(self, P: Floats, y: Ints) -> Floats:
        """The mean over the labels."""
        return np.asarray(-np.where(y == 1, np.log(P), np.log1p(-P)).mean(1))


def _quoted(name: str) -> str:
    """The name as a cell of a CSV row whose cells are separated by semicolons."""
    plain = name and not any(sign in name for sign in ';"\r\n')
    return name if plain else '"' + name.replace('"', '""') + '"'


# Conformal prediction: sets of classes that hold the true one with a chosen probability.
#
# Split conformal prediction: how badly do the true classes of held-out nodes fit their
# probabilities?  A class is in a node's set if it fits no worse than all but a share 1 - coverage
# of those.  The promise is on average over nodes that are drawn as the held-out ones were, and
# rests on nothing else: a bad model has large sets.


def refuse_coverage(coverage: float, kind: Sets) -> None:
    """Raise InputError if no set can have such a coverage, or be of this kind."""
    number = isinstance(coverage, int | float)
    if not number or not 0 < coverage < 1:
        raise InputError(f"coverage must be a number between 0 and 1, such as 0.9, got {coverage}")
    if kind not in get_args(Sets):
        raise InputError(f"kind must be lac or aps, got {kind!r}")


def misfit(P: Floats, kind: Sets, seed: int = 0) -> Floats:
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


def largest_misfit(misfits: Floats, coverage: float) -> float:
    """The ⌈(n + 1) coverage⌉-th smallest of n misfits of true classes; infinite if n is too small.

    The 1 is the next node: it is as likely to fall into any of the n + 1 places between them.
    """
    # A product such as 1000 · 0.9 = 900.0000000000001 must not ask for one place more.
    place = ceil((len(misfits) + 1) * coverage - 1e-9)
    return inf if place > len(misfits) else float(np.sort(misfits)[place - 1])


def conformal_sets(
    P: Floats, held_out: Floats, y: Ints, coverage: float, kind: Sets = "lac", seed: int = 0
) -> Bools:
    """(n, k) whether a class is in a node's set.

    held_out, y  probabilities (m, k) and true classes (m,) of the nodes that set the bound
    seed         of the random parts of aps, which are not those of the held-out nodes
    """
    true = misfit(held_out, kind, 2 * seed + 1)[np.arange(len(y)), y]
    return misfit(P, kind, 2 * seed) <= largest_misfit(true, coverage)
