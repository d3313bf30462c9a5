"""What a storage holds of a study is checked when it is opened: a damaged study is refused.

A finished trial is kept in several tables, which must agree: its parameters with the settings that
it was trained with, its state and its value with the scores of its seeds.  What no other table
repeats is under a seal.
"""

from __future__ import annotations

import json
import time
import warnings
from math import isclose, isfinite
from statistics import fmean

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import StorageInternalError
from optuna.study import Study as OptunaStudy
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from gcnii.errors import InputError
from gcnii.files import NOTHING, Document, Maybe, check, document_key
from gcnii.tuning.proposals import distribution
from gcnii.tuning.question import Question
from gcnii.tuning.space import parameter, settings_of
from gcnii.tuning.trials import FINISHED, GIVEN_BACK
from gcnii.tuning.workers.storage import MOST_DEATHS, damaged, heartbeats

LOOKS, PAUSE = 3, 0.3  # at a server, whose tables are not read at one moment
AHEAD = 86400.0  # seconds that a clock may be wrong by
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


def sealed(told: Document) -> Document:
    """What is told of a trial, with a digest of it."""
    return told | {"seal": document_key(json.loads(json.dumps(told)))}


def refuse_damaged(study: OptunaStudy, question: Question, url: str) -> None:
    """Raise DataError if the study is not as workers leave it."""
    looks = 1 if url.startswith("sqlite") else LOOKS
    for look in range(looks):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Optuna's of odd values, which are refused below
                _check(study, question)
            return
        except StorageInternalError as error:
            if not url.startswith("sqlite"):
                raise  # a server that is away
            reason = str(error.__cause__ or error)
        except Exception as error:  # Optuna trusts what it reads, and fails in many ways
            known = isinstance(error, InputError)
            reason = str(error) if known else f"{type(error).__name__}: {error}"
        if look < looks - 1:
            time.sleep(PAUSE)
    raise damaged(url, reason)


def _check(study: OptunaStudy, question: Question) -> None:
    if study.directions != [StudyDirection.MAXIMIZE]:
        raise InputError("it does not maximise one score")
    seconds = study.user_attrs.get("seconds", 0.0)
    if not _is_number(seconds) or seconds < 0:
        raise InputError(f"the time spent must be a number ≥ 0, got {seconds!r}")
    trials = study.get_trials(deepcopy=False)
    if [trial.number for trial in trials] != list(range(len(trials))):
        raise InputError("its settings are not numbered from 0")
    _check_heartbeats(study, trials)
    for trial in trials:
        try:
            _check_trial(trial, question)
        except InputError as error:
            raise InputError(f"setting {trial.number}: {error}") from None


def _check_heartbeats(study: OptunaStudy, trials: list[FrozenTrial]) -> None:
    running = [trial._trial_id for trial in trials if trial.state == TrialState.RUNNING]
    now, beats = heartbeats(study, running)
    if any((beat - now).total_seconds() > AHEAD for beat in beats.values()):
        raise InputError("a worker was heard of in the future")


def _check_trial(trial: FrozenTrial, question: Question) -> None:
    again = trial.system_attrs
    first, deaths = again.get(GIVEN_BACK, 0), again.get("deaths", 0)
    if "deaths" in again and GIVEN_BACK not in again:
        raise InputError("it does not say which setting it repeats")
    if not _is_count(first) or not 0 <= first <= max(trial.number - 1, 0):
        raise InputError(f"it must repeat an earlier setting, got {first!r}")
    if not _is_count(deaths) or not 0 <= deaths <= MOST_DEATHS:
        raise InputError(f"it must have cost 0 to {MOST_DEATHS} workers, got {deaths!r}")
    _check_params(trial, question)
    if trial.state in FINISHED:
        _check_told(trial, question)
    elif trial.values is not None:
        raise InputError(f"it has a score, and is {trial.state.name.lower()}")


def _check_params(trial: FrozenTrial, question: Question) -> None:
    """Raise InputError for parameters that the question does not ask for, or not so."""
    kinds: dict[str, BaseDistribution] = {"model": CategoricalDistribution(question.models)}
    if trial.distributions.get("model") == kinds["model"]:
        model = trial.params["model"]
        space = question.space(model)
        kinds |= {parameter(model, name): distribution(one) for name, one in space.items()}
    for name, kind in trial.distributions.items():
        if kinds.get(name) != kind:
            raise InputError(f"{name} is not searched in this way")
        if not kind._contains(kind.to_internal_repr(trial.params[name])):
            raise InputError(f"{name} cannot be {trial.params[name]!r}")
    if trial.state in FINISHED and trial.params.keys() != kinds.keys():
        raise InputError("some of its parameters are missing")


def _check_told(trial: FrozenTrial, question: Question) -> None:
    told = trial.user_attrs.get("told")
    if not isinstance(told, dict):
        raise InputError("it has ended, and nothing is told of it")
    check(told, TOLD)
    rest = {name: one for name, one in told.items() if name != "seal"}
    if "seal" in told and told["seal"] != document_key(rest):
        raise InputError("what is told of it was changed")
    if not all(_is_rung(*one) for seeds in told["rungs"].values() for one in seeds.items()):
        raise InputError("its scores on the way are not numbers")
    if not all(rung.isdigit() for rung in told["rungs"]):
        raise InputError("its scores on the way are not of epochs")
    _check_settings(trial, told, question)
    _check_scores(trial, told, question.seeds)


def _check_settings(trial: FrozenTrial, told: Document, question: Question) -> None:
    model, settings = trial.params["model"], told["settings"]
    wanted = settings_of(model, question.space(model), trial.params)
    wrong = [name for name, value in wanted.items() if settings.get(name) != value]
    if told["model"] != model or wrong:
        raise InputError(f"it was trained with another {wrong[0] if wrong else 'model'}")
    if "seal" not in told:
        question.plan(model, settings)  # or an error


def _check_scores(trial: FrozenTrial, told: Document, seeds: int) -> None:
    """Raise InputError unless state, value and steps are those that `told` leads to."""
    val, loss, epochs = told["val"], told["val_loss"], told["epochs"]
    good = bool(val) and None not in val and None not in loss
    if told["lost"] == good or not len(val) == len(loss) == len(epochs) <= seeds:
        raise InputError(f"it must have a score and a loss of each of {seeds} seeds")
    if any(not 0 <= one <= 1 for one in val if one is not None) or min(epochs, default=0) < 0:
        raise InputError("its scores must lie in 0…1, and its epochs be counts")
    if told["seconds"] < 0 or told["final_seconds"] < 0:
        raise InputError("its times must be ≥ 0")
    score = fmean(val) if good else 0.0
    pruned = trial.state == TrialState.PRUNED
    if not pruned and good and len(val) < seeds:
        raise InputError(f"it was not given up, and has {len(val)} of {seeds} scores")
    steps = {max(epochs): score} if pruned and epochs else {}
    if trial.intermediate_values.keys() != steps.keys() or (pruned and not good):
        raise InputError(f"it cannot be {'given up' if pruned else 'complete'}")
    noted = [*(trial.values or ()), *trial.intermediate_values.values()]
    if len(trial.values or ()) != 1 or not all(isclose(one, score, abs_tol=1e-9) for one in noted):
        raise InputError(f"its score must be {score:.6g}")


def _is_rung(seed: str, score: object) -> bool:
    """Whether it is a seed and its score, which may be NaN."""
    return seed.isdigit() and isinstance(score, int | float) and not isinstance(score, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
