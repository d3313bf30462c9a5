"""Metrics of an order: does a class's score put its nodes before the others?

All replicas and classes at once, and without a question to the host: a CUDA graph can hold them.

margins  (r, m, c) float64: the higher, the more likely the class
truth    (r, m, c) whether the node is of the class
there    (r, m) whether there is a node in this place
"""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor


def roc_auc(margins: Tensor, truth: Tensor, there: Tensor) -> Tensor:
    """(r,) the probability that a node of the class is before one that is not; a tie counts half.

    The mean over the classes that have both kinds of nodes; NaN where there are none.
    """
    margins, truth, there = _by_class(margins, truth, there)
    positives, negatives = truth.sum(-1), (there & ~truth).sum(-1)
    ordered = _ordered(margins, there)
    below = torch.searchsorted(ordered, margins)
    not_above = torch.searchsorted(ordered, margins, right=True)
    # Each pair of positives counts 2 in this sum, and each positive with itself 1.
    wins = torch.where(truth, below + not_above, 0).sum(-1) - positives**2
    area = wins.double() / (2 * positives * negatives).clamp(min=1)
    return _mean(area, positives, negatives)


def average_precision(margins: Tensor, truth: Tensor, there: Tensor) -> Tensor:
    """(r,) the mean precision at the nodes of the class: of those as high or higher, how many are.

    The mean over the classes that have both kinds of nodes; NaN where there are none.
    """
    margins, truth, there = _by_class(margins, truth, there)
    positives, count = truth.sum(-1), there.sum(-1)
    right = positives[..., None] - torch.searchsorted(_ordered(margins, truth), margins)
    called = count[..., None] - torch.searchsorted(_ordered(margins, there), margins)
    precision = torch.where(truth, right.double() / called.clamp(min=1), 0)
    return _mean(precision.sum(-1) / positives.clamp(min=1), positives, count - positives)


def _by_class(margins: Tensor, truth: Tensor, there: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each (r, c, m), nothing true where there is no node."""
    truth = (truth & there[..., None]).mT.contiguous()
    return margins.mT.contiguous(), truth, there[:, None].expand_as(truth)


def _ordered(margins: Tensor, among: Tensor) -> Tensor:
    """(r, c, m) the margins of these nodes, lowest first; infinity fills the rest."""
    return torch.where(among, margins, inf).sort(-1).values


def _mean(values: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """The mean over the classes that have both kinds of nodes."""
    graded = (positives > 0) & (negatives > 0)
    return torch.where(graded, values, 0).sum(-1) / graded.sum(-1)
