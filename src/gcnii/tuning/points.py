"""The first proposals: the two baselines, the default, and settings that were good on many graphs.

With them small budgets already pay; what follows is proposed by what they taught.
"""

from __future__ import annotations

from gcnii.nn.settings import Settings
from gcnii.train.presets.own import CHOSEN
from gcnii.tuning.question import BASELINES, Question
from gcnii.tuning.space import parameters_of

Point = tuple[str, Settings]


def _deep(chosen: Settings, layers: int, width: int) -> Point:
    return "gcnii", {**chosen, "layers": layers, "width": width}


# Hardly held back at all, beside what the study of defaults chose.
FREE: Settings = {
    **{"alpha": 0.2, "lam": 1.5, "dropout": 0.1},
    **{"lr": 0.01, "decay_conv": 1e-5, "decay_dense": 1e-5},
}
FEW, SOME, _ = CHOSEN
WIDE: Settings = {"width": 256, "lr": 0.01, "decay_conv": 1e-5, "decay_dense": 1e-5}
NORMED: Settings = {"self_weight": True, "batch_norm": True}
# Those of one shape stand together and are trained as one batch.
GOOD: tuple[Point, ...] = (
    *(_deep(one, 8, 64) for one in (*CHOSEN, FREE)),
    *(("gcn", {**WIDE, "layers": 2, "dropout": dropout}) for dropout in (0.5, 0.2)),
    *(_deep(one, 4, 256) for one in (SOME, FREE)),
    *(("graphsage-mean", {**WIDE, "layers": 3, "dropout": dropout}) for dropout in (0.5, 0.2)),
    *(("dropedge-gcn", {**WIDE, **NORMED, "layers": 4, "dropout": one}) for one in (0.5, 0.2)),
    _deep(FEW, 32, 64),
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
