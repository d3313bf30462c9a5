"""The first proposals: the two baselines, the default, and settings that were good on many graphs.

With them small budgets already pay; what follows is proposed by what they taught.
"""

from __future__ import annotations

from gcnii.nn.settings import Settings
from gcnii.tuning.question import BASELINES, Question

Point = tuple[str, Settings]


def _gcnii(
    layers: int, width: int, alpha: float, lam: float, dropout: float, decays: tuple[float, float]
) -> Settings:
    conv, dense = decays
    model = {"layers": layers, "width": width, "alpha": alpha, "lam": lam, "dropout": dropout}
    return {**model, "decay_conv": conv, "decay_dense": dense, "lr": 0.01}


WEAK, STRONG = (1e-4, 1e-4), (1e-2, 5e-4)
NORMED: Settings = {"self_weight": True, "batch_norm": True, "lr": 0.01}
WIDE: Settings = {"width": 256, "lr": 0.01, "decay_conv": 1e-5, "decay_dense": 1e-5}
# Structures that repeat are trained as one batch.
GOOD: tuple[Point, ...] = (
    ("gcnii", _gcnii(8, 64, 0.1, 0.5, 0.5, WEAK)),
    ("gcnii", _gcnii(8, 64, 0.5, 1.0, 0.5, WEAK)),
    ("gcnii", _gcnii(8, 64, 0.1, 0.5, 0.6, STRONG)),
    ("gcnii", _gcnii(8, 64, 0.2, 1.5, 0.2, (1e-6, 1e-6))),
    ("gcn", {**WIDE, "layers": 2, "dropout": 0.5}),
    ("gcn", {**WIDE, "layers": 3, "dropout": 0.2}),
    ("graphsage-mean", {**WIDE, "layers": 3, "dropout": 0.2}),
    ("graphsage-mean", {**WIDE, "layers": 5, "dropout": 0.2}),
    ("dropedge-gcn", {**WIDE, **NORMED, "layers": 4, "dropout": 0.2, "width": 128}),
    ("gcnii-star", _gcnii(4, 256, 0.5, 1.5, 0.5, WEAK)),
    ("gcnii", _gcnii(2, 256, 0.3, 1.0, 0.5, WEAK)),
    ("gcnii", _gcnii(32, 64, 0.1, 0.5, 0.6, STRONG)),
)
SCALES = ("standard", "length")  # each good point is tried with


def first_points(question: Question) -> list[Settings]:
    """Optuna's parameters of the first trials, `model` among them."""
    from gcnii.tuning.space import parameters_of

    points: list[Point] = [(model, {}) for model in (*BASELINES, question.models[0])]
    good = [(model, settings) for model, settings in GOOD if model in question.models]
    points += [(model, settings | {"scale": scale}) for scale in SCALES for model, settings in good]
    found: list[Settings] = []
    for model, settings in points:
        plan = question.plan(model, settings)
        own = parameters_of(model, question.space(model), plan.settings)
        if (point := {"model": model, **own}) not in found:
            found.append(point)
    return found
