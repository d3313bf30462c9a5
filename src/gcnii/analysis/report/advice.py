"""The doctor's advice in lines: what to use, and how deep."""

from __future__ import annotations

from collections.abc import Sequence

from gcnii.analysis.advice import Advice, layers_of
from gcnii.metrics.objective import percent
from gcnii.nn import MODELS
from gcnii.tuning.trials import Trial


def use_line(advice: Advice) -> str:
    """`use: gcnii (validation accuracy 95.3 ± 0.4; gcn 94.1, mlp 80.2 without the graph)`."""
    chosen, models = advice.chosen, advice.by_model()
    del models[chosen.model]
    close = {trial.model for trial in advice.close}
    scores = {model: _named(model, one) for model, one in models.items() if one}
    words = [
        f"validation {advice.question.measured} {percent(chosen.score)} ± {percent(chosen.error)}",
        _list(
            "no better within the error: ", [scores[model] for model in scores if model in close]
        ),
        _list("", [scores[model] for model in scores if model not in close]),
        _list("given up: ", [model for model in models if model not in scores]),
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
    within = [str(depth) for depth in _close_depths(advice) if depth > layers]
    words = [
        _list("", others) or "no other depth was tried",
        _list("no better within the error: ", within),
        "more layers were not tried" if others and layers == max(tried) else "",
    ]
    return f"depth: {layers} layers ({'; '.join(filter(None, words))})"


def _named(model: str, trial: Trial) -> str:
    alone = "" if MODELS[model].card.uses_graph else " without the graph"
    return f"{model} {percent(trial.score)}{alone}"


def _score(trial: Trial | None) -> str:
    return percent(trial.score) if trial else "given up"


def _list(head: str, words: Sequence[str]) -> str:
    return f"{head}{', '.join(words)}" if words else ""


def _close_depths(advice: Advice) -> list[int]:
    """The depths of the chosen model within the error of the best."""
    own = (trial for trial in advice.close if trial.model == advice.chosen.model)
    return sorted({layers_of(trial) for trial in own})
