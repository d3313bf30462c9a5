"""SeveralLabels: a node has any of k labels.  Binary cross-entropy, sigmoid, thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from scipy.special import expit, logit
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from gcnii.targets.scores import LABEL_SCORES, Counts
from gcnii.targets.target import HALF, Bools, Floats, Ints, Target, Total, alone, bisected, log_mean

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

    def counts(self, y: Ints, guess: Ints, weights: Floats | None = None) -> Counts:
        found = (y * guess, y, guess)
        if weights is None:
            return Counts(*(one.sum(0, dtype=np.float64) for one in found))
        return Counts(*(weights.T @ one for one in found))

    def log_losses(self, P: Floats, y: Ints) -> Floats:
        """The mean over the labels."""
        return np.asarray(-np.where(y == 1, np.log(P), np.log1p(-P)).mean(1))


def _quoted(name: str) -> str:
    """The name as a cell of a CSV row whose cells are separated by semicolons."""
    plain = name and not any(sign in name for sign in ';"\r\n')
    return name if plain else '"' + name.replace('"', '""') + '"'
