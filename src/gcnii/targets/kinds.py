"""The kinds of target, each a class: what a node can have, and all that follows from it.

Classes: a node is of one of k.  Cross-entropy, softmax, and sets of classes.

SeveralLabels: a node has any of k labels.  Binary cross-entropy, sigmoid, thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import Literal, Protocol, TypeAlias, final, get_args

import numpy as np
import torch
from scipy.special import expit, logit, logsumexp, softmax
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from gcnii.errors import InputError
from gcnii.targets.scores import CLASS_SCORES, LABEL_SCORES, ClassCounts, confusion
from gcnii.targets.target import HALF, Bools, Floats, Ints, Target, Total, alone, bisected, log_mean

TINY = 1e-300  # 0 has no logarithm
Sets: TypeAlias = Literal["lac", "aps"]


@final
@dataclass(frozen=True)
class Classes(Target):
    """Labels are class ids (n,), predicted by the highest of k scores."""

    scores = CLASS_SCORES
    exclusive = True
    words = ("class", "classes")
    described = "classes"

    def losses(self, scores: Tensor, y: Tensor, weights: Tensor | None) -> Tensor:
        y, log_p = y.clamp(min=0), scores.log_softmax(-1)
        each = -log_p.gather(-1, y.expand(len(scores), -1)[..., None])[..., 0]
        return each if weights is None else each * weights.to(scores.dtype)[:, y]

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

    def probabilities(self, scores: Tensor) -> Floats:
        return np.asarray(scores.double().softmax(1))

    def decided(self, P: Floats, threshold: float = HALF) -> Ints:
        """(n,) the most probable class of each node."""
        return np.asarray(P.argmax(1), np.int64)

    def best_threshold(self, P: Floats, y: Ints) -> float:
        return HALF

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


MOST_WEIGHT = 100  # of a rare label's positives beside its negatives


@final
@dataclass(frozen=True)
class SeveralLabels(Target):
    """Labels are zeros and ones (n, k), each predicted by a score of its own."""

    scores = LABEL_SCORES
    exclusive = False
    words = ("label", "labels")
    described = "labels (a node can have several)"

    def losses(self, scores: Tensor, y: Tensor, weights: Tensor | None) -> Tensor:
        y = y.clamp(min=0)
        target = y.to(scores.dtype).expand_as(scores)
        entries = binary_cross_entropy_with_logits(scores, target, reduction="none")
        if weights is not None:
            negative, positive = weights.to(scores.dtype)[:, :, None].unbind(1)
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

    def probabilities(self, scores: Tensor) -> Floats:
        return np.asarray(scores.double().sigmoid())

    def decided(self, P: Floats, threshold: float = HALF) -> Ints:
        """(n, k) 1 for labels above the threshold."""
        return np.asarray(threshold < P, np.int64)

    def best_threshold(self, P: Floats, y: Ints) -> float:
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


class Labelled(Protocol):
    """A graph, or what a bundle remembers of one."""

    @property
    def k(self) -> int:
        """Number of classes, or of labels if a node can have several."""

    @property
    def classes(self) -> tuple[str, ...] | None: ...

    @property
    def multilabel(self) -> bool:
        """Whether a node can have several labels."""


def target_of(graph: Labelled) -> Target:
    """What is predicted of the nodes of a graph."""
    return (SeveralLabels if graph.multilabel else Classes)(graph.k, graph.classes)
