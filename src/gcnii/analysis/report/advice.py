"""The doctor's advice in lines: what to use, and how deep."""

from __future__ import annotations

from gcnii.analysis.advice import Advice, layers_of
from gcnii.metrics.objective import percent
from gcnii.nn import MODELS
from gcnii.tuning.trials import Trial

GIVEN_UP = "given up"


def use_line(advice: Advice) -> str:
    """`use: gcnii (validation accuracy 95.3 ± 0.4; gcn 94.1, mlp 80.2 without the graph)`."""
    chosen, models = advice.chosen, advice.by_model()
    del models[chosen.model]
    close = {trial.model for trial in advice.close}
    within = [_named(model, one) for model, one in models.items() if model in close]
    others = [_named(model, one) for model, one in models.items() if model not in close]
    words = [
        f"validation {advice.question.measured} {percent(chosen.score)} ± {percent(chosen.error)}",
        f"no better within the error: {', '.join(within)}" if within else "",
        ", ".join(others),
    ]
    why = "" if advice.uses_graph else ", because the graph does not help"
    return f"use: {chosen.model}{why} ({'; '.join(filter(None, words))})"


def depth_line(advice: Advice) -> str:
    """`depth: 8 layers (2: 91.0, 4: 94.1, 32: 94.9)`."""
    chosen, tried = advice.chosen, advice.by_depth()
    layers = layers_of(chosen)
    if not layers:
        return f"depth: {chosen.model} has no layers over the graph"
    others = [f"{depth}: {_score(one)}" for depth, one in tried.items() if depth != layers]
    words = ", ".join(others) or "no other depth was tried"
    within = [str(depth) for depth in _close_depths(advice) if depth > layers]
    if within:
        words += f"; no better within the error: {', '.join(within)}"
    elif layers == max(tried) and others:
        words += "; more layers were not tried"
    return f"depth: {layers} layers ({words})"


def _named(model: str, trial: Trial | None) -> str:
    alone = "" if MODELS[model].card.uses_graph else " without the graph"
    return f"{model} {_score(trial)}{alone}"


def _score(trial: Trial | None) -> str:
    return percent(trial.score) if trial else GIVEN_UP


def _close_depths(advice: Advice) -> list[int]:
    """The depths of the chosen model within the error of the best."""
    own = (trial for trial in advice.close if trial.model == advice.chosen.model)
    return sorted({layers_of(trial) for trial in own})
