"""What mattered: the share of each setting in the spread of the validation scores, with an error.

Functional ANOVA over the trials of one model (Hutter et al. 2014, as Optuna has it), repeated on
trials drawn with replacement: the spread of the repetitions is the error.
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
REPEATS, TREES = 10, 24
MOST = 300  # trials that are looked at, the latest: more change little and take long


@dataclass(frozen=True)
class Importance:
    """A setting's share in the spread of the scores, and its standard error."""

    name: str
    share: float
    error: float

    def document(self) -> Document:
        """As JSON."""
        return {"name": self.name, "share": round(self.share, 4), "error": round(self.error, 4)}


def importances(question: Question, trials: Sequence[Trial], model: str) -> list[Importance]:
    """Of each setting of a model that was searched, the most important first."""
    own = [trial for trial in trials if trial.model == model and trial.outcome != "lost"]
    own = sorted(own, key=lambda trial: trial.number)[-MOST:]
    space = question.space(model)
    if len(own) < FEWEST or not space:
        return []
    quiet()
    random = np.random.default_rng(0)
    shares: dict[str, list[float]] = {name: [] for name in space}
    for seed in range(REPEATS):
        drawn = [own[i] for i in random.integers(len(own), size=len(own))]
        for name, share in _shares(question, drawn, model, seed).items():
            shares[name].append(share)
    found = (
        Importance(name, float(np.mean(each)), float(np.std(each, ddof=1)))
        for name, each in shares.items()
        if len(each) > 1
    )
    return sorted(found, key=lambda one: one.share, reverse=True)


def _shares(question: Question, trials: Sequence[Trial], model: str, seed: int) -> dict[str, float]:
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances  # slow

    space = question.space(model)
    kinds = {parameter(model, name): distribution(search) for name, search in space.items()}
    study = optuna.create_study(direction="maximize")
    for trial in trials:
        own = parameters_of(model, space, trial.settings)
        study.add_trial(optuna.create_trial(params=own, distributions=kinds, value=trial.score))
    evaluator = FanovaImportanceEvaluator(n_trees=TREES, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            shares = get_param_importances(study, evaluator=evaluator)
        except (RuntimeError, ValueError):  # all drawn trials are alike
            return {}
    return {name: shares.get(parameter(model, name), 0.0) for name in space}
