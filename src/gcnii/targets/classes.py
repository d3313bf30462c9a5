"""Classes: a node is of one of k.  Cross-entropy, softmax, and sets of classes."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import Literal, TypeAlias, final, get_args

import numpy as np
import torch
from scipy.special import logsumexp, softmax
from torch import Tensor

from gcnii.errors import InputError
from gcnii.targets.scores import CLASS_SCORES, Counts, confusion
from gcnii.targets.target import HALF, Bools, Floats, Ints, Target, Total, alone, bisected, log_mean

TINY = 1e-300  # the logarithm of 0 is none
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
        where 0.70 are right.  With Laplace's two nodes more, of which one is right: of few nodes
        that are all right, T would else be 0.  Confidence falls as T rises.
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

    def counts(self, y: Ints, guess: Ints, weights: Floats | None = None) -> Counts:
        return Counts.of_confusion(confusion(y, guess, self.k, weights))

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
