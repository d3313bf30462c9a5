"""The first proposals: the two baselines, the default, and settings that were good on many graphs.

With them small budgets already pay; what follows is proposed by what they taught.
"""

from __future__ import annotations

from gcnii.nn.settings import Settings
from gcnii.train.own import CHOSEN
from gcnii.tuning.question import BASELINES, Question
from gcnii.tuning.space import few_labels, parameters_of

Point = tuple[str, Settings]


def _plus(settings: Settings, layers: int, width: int, **more: object) -> Point:
    same = {"input_dropout": settings["dropout"]}
    return "gcnii-plus", {**same, **settings, "layers": layers, "width": width, **more}


def _deep(chosen: Settings, layers: int, width: int) -> list[Point]:
    """GCNII, under its own name for a search that asks for it."""
    point = _plus(chosen, layers, width)
    return [point, ("gcnii", {**chosen, "layers": layers, "width": width})]


# Hardly held back at all, beside what the study of defaults chose.
FREE: Settings = {
    **{"alpha": 0.2, "lam": 1.5, "dropout": 0.1},
    **{"lr": 0.01, "decay_conv": 1e-5, "decay_dense": 1e-5},
}
FEW, SOME, MANY = CHOSEN
WIDE: Settings = {"width": 256, "lr": 0.01, "decay_conv": 1e-5, "decay_dense": 1e-5}
NORMED: Settings = {"self_weight": True, "batch_norm": True}
# Where a node's neighbours tell its class, but not by being like it: Chameleon, Squirrel.
LINKS: Settings = {"product_first": True, "loops": "none", "row_norm": "layer"}
# Where a node's own features tell most: web pages of universities.
FEATURES: Settings = {
    **{"head": "features", "loops": "none", "direction": "both", "scale": "length"},
    **{"alpha": 0.8, "lam": 1.0, "lr": 0.01, "input_dropout": 0.0},
}
# With a norm and a linear residual, as Luo et al. (2024) tuned GCN.
TUNED: Settings = {"row_norm": "layer", "residual": True}
# With few labels: views that are pulled together (GRAND).
VIEWS: Settings = {
    **{"views": 4, "drop_node": 0.3, "consistency": 1.0, "sharpen": 0.3, "warm_up": 300},
    **{"alpha": 0.2, "lam": 1.0, "dropout": 0.5, "input_dropout": 0.6},
    **{"lr": 0.01, "decay_conv": 0.01, "decay_dense": 5e-4},
}
MILD: Settings = VIEWS | {
    "warm_up": 100,
    "sharpen": 0.5,
    "drop_node": 0.5,
    "alpha": 0.1,
    "lam": 0.5,
}
LOOSE: Settings = VIEWS | {
    "warm_up": 100,
    "sharpen": 0.1,
    "alpha": 0.1,
    "decay_conv": 5e-4,
    "decay_dense": 1e-3,
}
# Those of one shape stand together and are trained as one batch.
GOOD: tuple[Point, ...] = (
    *(point for one in (*CHOSEN, FREE) for point in _deep(one, 8, 64)),
    *(_plus(one, 16, 64) for one in (VIEWS, MILD, LOOSE)),
    *(_plus(one, 4, 128, **LINKS, input_dropout=0.0) for one in (SOME, MANY, FREE)),
    *(
        _plus(FEATURES | {"dropout": 0.6, "decay_conv": one, "decay_dense": one}, 2, 64)
        for one in (1e-3, 1e-4)
    ),
    *(_plus(one, 4, 256, **TUNED) for one in (SOME, MANY, FREE)),
    *(("gcn", {**WIDE, "layers": 2, "dropout": dropout}) for dropout in (0.5, 0.2)),
    *(point for one in (SOME, FREE) for point in _deep(one, 4, 256)),
    *(("graphsage-mean", {**WIDE, "layers": 3, "dropout": dropout}) for dropout in (0.5, 0.2)),
    *(("dropedge-gcn", {**WIDE, **NORMED, "layers": 4, "dropout": one}) for one in (0.5, 0.2)),
    *_deep(FEW, 32, 64),
)
SCALES = ("none", "standard", "length")  # with each of which GCNII is tried


def first_points(question: Question) -> list[Settings]:
    """Optuna's parameters of the first trials, `model` among them."""
    points: list[Point] = [(model, {}) for model in (*BASELINES, question.models[0])]
    points += GOOD
    points += [
        (model, settings | {"scale": scale}) for scale in SCALES for model, settings in GOOD[:8]
    ]
    found: list[Settings] = []
    for model, settings in points:
        if model in question.models and ("views" not in settings or few_labels(question.graph)):
            plan = question.plan(model, settings)
            own = parameters_of(model, question.space(model), plan.settings)
            if (point := {"model": model, **own}) not in found:
                found.append(point)
    return found
