"""What mattered: the share of each setting in what sets the best trials apart, with an error.

PED-ANOVA over the trials of one model (Watanabe et al. 2023, as Optuna has it), repeated on trials
drawn with replacement: the spread of the repetitions is the error.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import optuna

from gcnii.files import Document
from gcnii.tuning.proposals import distribution, quiet
from gcnii.tuning.question import Question
from gcnii.tuning.space import parameter, parameters_of

if TYPE_CHECKING:
    from gcnii.tuning.trials import Trial

FEWEST = 10  # trials, below which nothing can be said
REPEATS = 10


@dataclass(frozen=True)
class Importance:
    """A setting's share in what sets the best tenth of the trials apart, and its standard error."""

    name: str
    share: float
    error: float

    def document(self) -> Document:
        """As JSON."""
        return {"name": self.name, "share": round(self.share, 4), "error": round(self.error, 4)}


def importances(question: Question, trials: Sequence[Trial], model: str) -> list[Importance]:
    """Of each setting of a model that was searched, the most important first."""
    own = [trial for trial in trials if trial.model == model and trial.outcome != "lost"]
    space = question.space(model)
    if len(own) < FEWEST or not space:
        return []
    quiet()
    random = np.random.default_rng(0)
    shares: dict[str, list[float]] = {name: [] for name in space}
    for _ in range(REPEATS):
        drawn = [own[i] for i in random.integers(len(own), size=len(own))]
        for name, share in _shares(question, drawn, model).items():
            shares[name].append(share)
    found = (
        Importance(name, float(np.mean(each)), float(np.std(each, ddof=1)))
        for name, each in shares.items()
        if len(each) > 1
    )
    return sorted(found, key=lambda one: one.share, reverse=True)


def _shares(question: Question, trials: Sequence[Trial], model: str) -> dict[str, float]:
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances  # slow

    space = question.space(model)
    kinds = {parameter(model, name): distribution(search) for name, search in space.items()}
    study = optuna.create_study(direction="maximize")
    for trial in trials:
        own = parameters_of(model, space, trial.settings)
        study.add_trial(optuna.create_trial(params=own, distributions=kinds, value=trial.score))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            shares = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
        except (RuntimeError, ValueError):  # all drawn trials are alike
            return {}
    return {name: shares.get(parameter(model, name), 0.0) for name in space}
