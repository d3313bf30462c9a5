"""The first proposals: the two baselines, the default, and settings that were good on many graphs.

With them small budgets already pay; what follows is proposed by what they taught.
"""

from __future__ import annotations

from gcnii.nn.settings import Settings
from gcnii.tuning.question import BASELINES, Question
from gcnii.tuning.space import parameters_of

Point = tuple[str, Settings]


def _gcnii(
    layers: int, width: int, alpha: float, lam: float, dropout: float, decays: tuple[float, float]
) -> Settings:
    conv, dense = decays
    model = {"layers": layers, "width": width, "alpha": alpha, "lam": lam, "dropout": dropout}
    return {**model, "decay_conv": conv, "decay_dense": dense, "lr": 0.01}


# What the study of defaults chose for graphs with few, some and many training nodes per feature.
FEW = (0.1, 0.5, 0.6, (1e-2, 5e-4))
SOME = (0.5, 1.0, 0.5, (1e-4, 1e-4))
MANY = (0.1, 1.0, 0.2, (1e-4, 1e-4))
FREE = (0.2, 1.5, 0.1, (1e-5, 1e-5))
WIDE: Settings = {"width": 256, "lr": 0.01, "decay_conv": 1e-5, "decay_dense": 1e-5}
NORMED: Settings = {"self_weight": True, "batch_norm": True}
# Those of one shape stand together and are trained as one batch.
GOOD: tuple[Point, ...] = (
    *(("gcnii", _gcnii(8, 64, *numbers)) for numbers in (FEW, SOME, MANY, FREE)),
    *(("gcn", {**WIDE, "layers": 2, "dropout": dropout}) for dropout in (0.5, 0.2)),
    *(("gcnii", _gcnii(4, 256, *numbers)) for numbers in (SOME, FREE)),
    *(("graphsage-mean", {**WIDE, "layers": 3, "dropout": dropout}) for dropout in (0.5, 0.2)),
    *(("dropedge-gcn", {**WIDE, **NORMED, "layers": 4, "dropout": one}) for one in (0.5, 0.2)),
    ("gcnii", _gcnii(32, 64, *FEW)),
)
SCALES = ("none", "standard", "length")  # with each of which GCNII is tried


def first_points(question: Question) -> list[Settings]:
    """Optuna's parameters of the first trials, `model` among them."""
    points: list[Point] = [(model, {}) for model in (*BASELINES, question.models[0])]
    points += GOOD
    points += [
        (model, settings | {"scale": scale}) for scale in SCALES for model, settings in GOOD[:4]
    ]
    found: list[Settings] = []
    for model, settings in points:
        if model in question.models:
            plan = question.plan(model, settings)
            own = parameters_of(model, question.space(model), plan.settings)
            if (point := {"model": model, **own}) not in found:
                found.append(point)
    return found
