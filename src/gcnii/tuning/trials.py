"""Trials: what a study knows of each setting that it tried, and which one wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from statistics import fmean, stdev
from typing import Literal

from optuna.study import Study as OptunaStudy
from optuna.trial import TrialState

from gcnii.errors import GcniiError
from gcnii.files import Document
from gcnii.nn.settings import Settings
from gcnii.train.results.result import Result

Outcome = Literal["complete", "given up", "lost"]
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
RULE = "highest mean validation score; of equals, the one with the lowest validation loss"


class NothingFound(GcniiError, RuntimeError):
    """A study has no trial that could win."""


@dataclass(frozen=True)
class Trial:
    """A setting that was tried.

    val, val_loss  of each seed
    outcome        complete; given up, because it fell behind or time ran out; or lost, because it
                   diverged or did not fit in memory
    """

    number: int
    model: str
    settings: Settings
    val: tuple[float, ...]
    val_loss: tuple[float, ...]
    epochs: tuple[int, ...]
    seconds: float
    final_seconds: float
    outcome: Outcome

    @property
    def score(self) -> float:
        """The mean validation score."""
        return fmean(self.val)

    @property
    def error(self) -> float:
        """The standard error of the score over the seeds; 0 of a single one."""
        return stdev(self.val) / sqrt(len(self.val)) if len(self.val) > 1 else 0.0

    @property
    def rank(self) -> tuple[float, float]:
        """What trials are compared by: higher is better."""
        return self.score, -fmean(self.val_loss)

    def more(self, result: Result) -> Trial:
        """The trial with more seeds; those that diverged count as the worst."""
        runs = [run for run in result.runs if isfinite(run.val)]
        val = (*(run.val for run in runs), *[0.0] * (len(result.runs) - len(runs)))
        return replace(
            self,
            val=self.val + val,
            val_loss=self.val_loss + tuple(run.val_loss for run in runs),
            epochs=self.epochs + tuple(run.epochs for run in result.runs),
        )

    def document(self) -> Document:
        """As JSON."""
        lists = {name: list(getattr(self, name)) for name in ("val", "val_loss", "epochs")}
        return {
            "number": self.number,
            "model": self.model,
            "settings": self.settings,
            "outcome": self.outcome,
            "seconds": self.seconds,
            **lists,
        }


def trials_of(study: OptunaStudy) -> list[Trial]:
    """All finished trials, in the order in which they were begun."""
    found = []
    for frozen in study.get_trials(deepcopy=False, states=FINISHED):
        told = frozen.user_attrs.get("told")
        if told is None:
            continue
        outcome: Outcome = "given up" if frozen.state == TrialState.PRUNED else "complete"
        found.append(
            Trial(
                number=frozen.number,
                model=told["model"],
                settings=told["settings"],
                val=tuple(told["val"]),
                val_loss=tuple(told["val_loss"]),
                epochs=tuple(told["epochs"]),
                seconds=told["seconds"],
                final_seconds=told["final_seconds"],
                outcome="lost" if told["lost"] else outcome,
            )
        )
    return sorted(found, key=lambda trial: trial.number)


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Those that could win, the best first: complete, so that all were judged alike."""
    complete = [trial for trial in trials if trial.outcome == "complete"]
    return sorted(complete, key=lambda trial: trial.rank, reverse=True)


def winner_of(trials: Sequence[Trial], model: str | None = None) -> Trial:
    """The best of all trials, or of one model's."""
    best = ranked([trial for trial in trials if model in (None, trial.model)])
    if not best:
        raise NothingFound(
            f"no training of {model or 'any model'} was finished; give the search more time "
            "(--budget), or fewer --models"
        )
    return best[0]
