"""Trials: how a setting is trained, what a study knows of it, and which one wins."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import isfinite, sqrt
from statistics import fmean, stdev
from typing import Literal

import torch
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial, TrialState

from gcnii.errors import GcniiError
from gcnii.files import NOTHING, Document, Maybe, document_key
from gcnii.graph import Graph
from gcnii.nn.settings import Settings
from gcnii.results.fit import Calibrate, Session, fit_plans
from gcnii.results.result import Result
from gcnii.targets.scores import sign_of
from gcnii.train.group import Diverged
from gcnii.train.hardware import lacks_memory
from gcnii.train.plan import Plan
from gcnii.train.stopping import Run

Outcome = Literal["complete", "given up", "lost"]
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
DEFAULT = "default"  # the attribute of the trial that is what `gcnii train` would train
MEMBER = "member"  # the attribute of one that is a network of the portfolio, by its name there
FINALISTS = 5  # settings that are trained again at the end, for more certainty
PER_SPLIT = 2  # the same, of several splits on each
GIVEN_BACK = "failed_trial"  # the attribute, named as Optuna does, of one that had another number
RULE = "highest mean validation score; of equals, the one with the lowest validation loss"
WORST = -1e30  # of a lost trial where the scores of others are errors with a minus
OF_EACH = ("val", "val_loss", "epochs")  # what a trial keeps of each seed
# What a study keeps of a finished trial, as an attribute of Optuna's.
TOLD = {
    "model": str,
    "settings": dict,
    "val": [(float, NOTHING)],
    "val_loss": [(float, NOTHING)],
    "epochs": [int],
    "seconds": float,
    "final_seconds": float,
    "lost": bool,
    "rungs": {str: dict},
    "seal": Maybe(str),  # a study of version 1.0 has none
}


class NothingFound(GcniiError, RuntimeError):
    """A study has no trial that could win."""


@dataclass(frozen=True)
class Trial:
    """A setting that was tried.

    val, val_loss  of each seed
    outcome        complete; given up, because it fell behind or time ran out; or lost, because it
                   diverged or did not fit in memory
    default        whether it is what `gcnii train` would train
    member         its name, if it is a network of the portfolio that `gcnii train` would train
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
    default: bool = False
    member: str = ""

    @property
    def can_win(self) -> bool:
        """Whether it is complete; the default may have fewer seeds, because time ran out."""
        return self.outcome == "complete" or (self.default and self.outcome == "given up")

    @property
    def score(self) -> float:
        """The mean validation score."""
        return fmean(self.val)

    @property
    def error(self) -> float:
        """The standard error of the score over the seeds; 0 of a single one."""
        return stdev(self.val) / sqrt(len(self.val)) if len(self.val) > 1 else 0.0

    @property
    def work(self) -> float:
        """What one run takes, in epochs of a layer of one column."""
        return fmean(self.epochs) * size_of(self.settings)

    @property
    def rank(self) -> tuple[float, float]:
        """What trials are compared by: higher is better."""
        return sign_of(self.settings.get("metric", "auto")) * self.score, -fmean(self.val_loss)

    def more(self, result: Result | None) -> Trial:
        """The trial with more seeds; lost if they are."""
        if result is None:
            return replace(self, outcome="lost")
        more = _of_each(result.runs)
        return replace(self, **{name: getattr(self, name) + more[name] for name in OF_EACH})

    def judged_by(self, runs: Sequence[Run]) -> Trial:
        """The trial with the scores of these runs in the place of its own."""
        return replace(self, **_of_each(runs))

    def on(self, places: range) -> Trial:
        """The trial with these of its runs alone."""
        own: Document = {name: tuple(getattr(self, name)[i] for i in places) for name in OF_EACH}
        return replace(self, **own)

    def document(self) -> Document:
        names = ("number", "model", "settings", "outcome", "seconds")
        lists = {name: list(getattr(self, name)) for name in OF_EACH}
        return {name: getattr(self, name) for name in names} | lists


def _of_each(runs: Sequence[Run]) -> Document:
    """What a trial keeps of its runs."""
    return {name: tuple(getattr(run, name) for run in runs) for name in OF_EACH}


def size_of(settings: Settings) -> float:
    """By which the time of an epoch grows: that of all layers' states, on the same graph."""
    width = settings.get("width", 64) * settings.get("heads", 1)
    return float((settings.get("layers", 1) + 1) * width * settings.get("views", 1))


def told_of(
    plan: Plan, runs: Sequence[Run], final_seconds: float, rungs: Mapping[int, Mapping[int, float]]
) -> Document:
    """What a study keeps of a trial, with a digest of it.

    final_seconds  how long its final training may take
    rungs          epoch → seed → score on the way, by which others are given up
    """
    good = bool(runs) and all(isfinite(run.val) for run in runs)
    told: Document = {
        "model": plan.model,
        "settings": plan.settings,
        "val": [run.val if isfinite(run.val) else None for run in runs],
        "val_loss": [run.val_loss if isfinite(run.val_loss) else None for run in runs],
        "epochs": [run.epochs for run in runs],
        "seconds": round(sum(run.seconds for run in runs), 3),
        "final_seconds": round(final_seconds, 3),
        "lost": not good,
        "rungs": {str(rung): seeds for rung, seeds in rungs.items()},
    }
    return told | {"seal": seal_of(told)}


def value_of(told: Document) -> float:
    """What Optuna compares a trial by: the score, or an error with a minus; higher is better."""
    sign = sign_of(told["settings"].get("metric", "auto"))
    if told["lost"]:
        return 0.0 if sign > 0 else WORST
    return sign * fmean(told["val"])


def seal_of(told: Document) -> str:
    """The digest of all that is told of a trial, as JSON has it."""
    rest = {name: one for name, one in told.items() if name != "seal"}
    return document_key(json.loads(json.dumps(rest)))


def trials_of(study: OptunaStudy) -> list[Trial]:
    """All finished trials, in the order in which they were begun."""
    found = []
    for frozen in study.get_trials(deepcopy=False, states=FINISHED):
        told = frozen.user_attrs.get("told")
        if told is None:
            continue
        outcome: Outcome = "given up" if frozen.state == TrialState.PRUNED else "complete"
        each: Document = {name: tuple(told[name]) for name in OF_EACH}
        found.append(
            Trial(
                number=frozen.number,
                **{name: told[name] for name in ("model", "settings", "seconds", "final_seconds")},
                **each,
                outcome="lost" if told["lost"] else outcome,
                default=DEFAULT in frozen.user_attrs,
                member=frozen.user_attrs.get(MEMBER, ""),
            )
        )
    return sorted(found, key=lambda trial: trial.number)


def first_number(trial: FrozenTrial) -> int:
    """The number that a trial had before it was given back, the first time."""
    return int(trial.system_attrs.get(GIVEN_BACK, trial.number))


def place_of(trial: FrozenTrial, others: Sequence[FrozenTrial]) -> int:
    """Its place among those that are neither what `train` trains nor another's second attempt."""
    first = first_number(trial)
    apart = (other.system_attrs.keys() | other.user_attrs.keys() for other in others[:first])
    return first - sum(bool({GIVEN_BACK, DEFAULT, MEMBER} & names) for names in apart)


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Those that could win, the best first: complete, so that all were judged alike."""
    return sorted(
        filter(lambda trial: trial.can_win, trials), key=lambda trial: trial.rank, reverse=True
    )


def best_on(trials: Sequence[Trial], split: int, splits: int) -> list[Trial]:
    """The best few by the validation nodes of one of several splits alone.

    Seed s is on split s modulo their number.
    """
    tried = [trial for trial in trials if trial.outcome != "lost" and not trial.member]
    own = [one for trial in tried if (one := trial.on(range(split, len(trial.val), splits))).val]
    return sorted(own, key=lambda trial: trial.rank, reverse=True)[:PER_SPLIT]


def joining(trials: Sequence[Trial], joined: Collection[int], splits: int = 1) -> list[Trial]:
    """Settings to become members, the best first: of a model, depth and width the best alone.

    Of several splits, what is best on each of them, and then what is the second best.
    """
    if splits > 1:
        best = [best_on(trials, split, splits) for split in range(splits)]
        numbers = [one.number for rank in zip_longest(*best) for one in rank if one]
        known = {trial.number: trial for trial in trials}
        return [known[one] for one in dict.fromkeys(numbers) if one not in joined]
    found: dict[tuple[object, ...], Trial] = {}
    for trial in ranked([trial for trial in trials if not trial.member]):
        shape = trial.model, trial.settings.get("layers"), trial.settings.get("width")
        found.setdefault(shape, trial)
    return [one for one in [*found.values()][:FINALISTS] if one.number not in joined]


def winner_of(trials: Sequence[Trial]) -> Trial:
    """The best of all trials."""
    if best := ranked(trials):
        return best[0]
    if trials and all(trial.outcome == "lost" for trial in trials):
        raise NothingFound(
            f"every training run of any model diverged or did not fit in memory ({len(trials)} "
            "settings); look for extreme values in the features, or give a smaller lr or width"
        )
    raise NothingFound(
        "no training run of any model was finished; give the search more time (a larger budget), "
        "or fewer models"
    )


def fitted(
    graph: Graph,
    plans: Sequence[Plan],
    at_once: int,
    session: Session,
    seeds: Sequence[int],
    calibrate: Calibrate = "none",
) -> Result | None:
    """The result of training `at_once` replicas at a time, or fewer where memory is short.

    None for settings that lose: they diverged, or not even one run fits.
    """
    for size in dict.fromkeys((at_once, max(at_once // 4, 1), 1)):
        try:
            smaller = replace(session, batch=size)
            return fit_plans(graph, plans, smaller, seeds=seeds, calibrate=calibrate)
        except Diverged:
            return None
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
        torch.cuda.empty_cache()  # does nothing without a GPU
    return None
