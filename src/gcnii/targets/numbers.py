"""Numbers: what is predicted is an amount, in the units in which it was given.

Scores are standardised: a network learns (y - mean) / deviation by column, of the training nodes of
its split alone, and its answers are turned back into units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import huber_loss

from gcnii.targets.scores import NUMBER_SCORES, number_shown
from gcnii.targets.target import HALF, Floats, Target, Total, alone

Loss: TypeAlias = Literal["squared", "huber"]


@final
@dataclass(frozen=True)
class Numbers(Target):
    """Labels are numbers (n, q), NaN where unknown; each is predicted by a score of its own.

    names  of the columns
    loss   of standardised numbers: squared, or Huber's, which is linear beyond one deviation
    """

    names: tuple[str, ...] = ()
    loss: Loss = "squared"

    scores = NUMBER_SCORES
    words = ("number", "numbers")
    described = "numbers"

    def learnt(self, y: Floats, class_weight: str = "none", total: Total = alone) -> Floats:
        """(2, q) the mean and the deviation of each column; of equal numbers, it is 1."""
        mean, deviation = y.mean(0), y.std(0)
        # Of equal numbers, rounding leaves a deviation that is not 0.
        return np.stack([mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0)])

    def losses(
        self, scores: Tensor, y: Tensor, learnt: Tensor | None, focal: float = 0.0
    ) -> Tensor:
        z = standardised(y, learnt).to(scores.dtype)
        if self.loss == "squared":
            return (scores - z).square().mean(-1)
        return 2 * huber_loss(scores, z, reduction="none").mean(-1)

    def answers(self, scores: Tensor) -> Floats:
        """Scores that have been turned back into units are the answers."""
        return np.asarray(scores.double())

    def decided(self, P: Floats, threshold: float = HALF) -> Floats:
        """The values themselves."""
        return P

    def named(self, ids: Floats) -> Floats:
        """(n,) a single column, or (n, q)."""
        return ids[:, 0] if self.k == 1 else ids

    def badness(self, answers: Floats, y: Floats) -> Floats:
        """The squared error in variances of each column of y, so that its mean is 1 - R²."""
        variance = y.var(0)
        return np.asarray(((answers - y) ** 2 / np.where(variance > 0, variance, 1.0)).mean(1))

    def shown(self, ids: NDArray[np.float64] | NDArray[np.bool_]) -> list[str]:
        """The numbers of each node, joined by `;`."""
        return [";".join(map(number_shown, row)) for row in ids.tolist()]


def standardised(y: Tensor, learnt: Tensor | None) -> Tensor:
    """(r, n, q) numbers y (n, q) by the means and deviations (r, 2, q); 0 where one is unknown."""
    assert learnt is not None
    mean, deviation = learnt[:, :, None].unbind(1)
    return ((y - mean) / deviation).nan_to_num(0.0)


def in_units(scores: Tensor, units: Floats) -> Tensor:
    """Standardised scores (…, q) back in the units of means and deviations (2, q)."""
    own = torch.tensor(units, dtype=scores.dtype, device=scores.device)
    return scores * own[1] + own[0]
