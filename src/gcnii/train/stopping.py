"""When training stops, and which weights it keeps.  Every paper has its own rule; here they stand side by side.

Rules speak of all replicas at once, in tensors (r,), and ask the host nothing: a GPU follows them alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Monitor = Literal["val_loss", "val_score", "val_score_ties", "val_score_loss", "val_either", "noisy_loss", "last"]


class Validation(NamedTuple):
    """Validation losses and scores (r,)."""

    loss: Tensor
    score: Tensor


@dataclass(frozen=True)
class Rule:
    """`keep`: whether this epoch's weights are better than those kept; `reset`: whether patience starts anew.

    Both are asked with this epoch's validation, that of the weights kept, and the best ever seen of each.
    """

    keep: Callable[[Validation, Validation, Validation], Tensor]
    reset: Callable[[Validation, Validation, Validation], Tensor]


def _either(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return (now.loss <= best.loss) | (now.score >= best.score)


def _both(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return (now.loss <= best.loss) & (now.score >= best.score)


def _lower(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return now.loss < kept.loss


def _as_low(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return now.loss <= kept.loss


def _higher(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return now.score > kept.score


def _as_high(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return now.score >= kept.score


def _higher_or_lower(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return (now.score > kept.score) | (now.score == kept.score) & (now.loss < kept.loss)


def _always(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return torch.ones_like(now.loss, dtype=torch.bool)


RULES: dict[Monitor, Rule] = {
    # GCNII on citations and web pages
    "val_loss": Rule(_lower, _lower),
    # GCNII on PPI; GaAN
    "val_score": Rule(_higher, _higher),
    # GDC: of equal scores the last one
    "val_score_ties": Rule(_as_high, _as_high),
    # PPNP and APPNP: patience as GAT, but the highest score, and among equals the lowest loss
    "val_score_loss": Rule(_higher_or_lower, _either),
    # GAT: patience starts anew when loss or score is as good as ever; weights are kept when both are
    "val_either": Rule(_both, _either),
    # DropEdge: the validation loss of the training pass, dropout and all
    "noisy_loss": Rule(_as_low, _as_low),
    # SGC, GraphSAGE, Cluster-GCN
    "last": Rule(_always, _always),
}
