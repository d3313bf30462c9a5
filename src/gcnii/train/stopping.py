"""When training stops, and which weights it keeps.  Every paper has its own rule; here they stand side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Monitor = Literal["val_loss", "val_score", "val_score_ties", "val_score_loss", "val_either", "noisy_loss", "last"]


class Validation(NamedTuple):
    """A validation loss and score."""

    loss: float
    score: float


@dataclass(frozen=True)
class Rule:
    """`keep`: whether this epoch's weights are better than those kept; `reset`: whether patience starts anew.

    Both are asked with this epoch's validation, that of the weights kept, and the best ever seen of each.
    """

    keep: Callable[[Validation, Validation, Validation], bool]
    reset: Callable[[Validation, Validation, Validation], bool]


def _either(now: Validation, best: Validation) -> bool:
    return now.loss <= best.loss or now.score >= best.score


def _lower(now: Validation, kept: Validation, best: Validation) -> bool:
    return now.loss < kept.loss


def _higher(now: Validation, kept: Validation, best: Validation) -> bool:
    return now.score > kept.score


def _as_high(now: Validation, kept: Validation, best: Validation) -> bool:
    return now.score >= kept.score


RULES: dict[Monitor, Rule] = {
    # GCNII on citations and web pages
    "val_loss": Rule(_lower, _lower),
    # GCNII on PPI; GaAN
    "val_score": Rule(_higher, _higher),
    # GDC: of equal scores the last one
    "val_score_ties": Rule(_as_high, _as_high),
    # PPNP and APPNP: patience as GAT, but the highest score, and among equals the lowest loss
    "val_score_loss": Rule(
        lambda now, kept, best: (now.score, -now.loss) > (kept.score, -kept.loss),
        lambda now, kept, best: _either(now, best),
    ),
    # GAT: patience starts anew when loss or score is as good as ever; weights are kept when both are
    "val_either": Rule(
        lambda now, kept, best: now.loss <= best.loss and now.score >= best.score,
        lambda now, kept, best: _either(now, best),
    ),
    # DropEdge: the validation loss of the training pass, dropout and all
    "noisy_loss": Rule(lambda now, kept, best: now.loss <= kept.loss, lambda now, kept, best: now.loss <= kept.loss),
    # SGC, GraphSAGE, Cluster-GCN
    "last": Rule(lambda now, kept, best: True, lambda now, kept, best: True),
}
