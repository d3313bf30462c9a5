"""Proposals: which settings a worker trains next, those of one shape together.

Optuna's TPE proposes, jointly in all settings; trials that others are training count as bad ones
(constant liar), so that a batch spreads.  The settings that change shapes or rules are proposed
once per batch, the numbers for each of its trials.  Where each of several splits chooses for
itself, settings are drawn at random: a score that is learnt from is of nodes that another split
tests.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from zlib import crc32

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial, Trial

from gcnii.nn.settings import Choice, Range, Settings
from gcnii.train.plan import Plan, batched
from gcnii.tuning.question import (
    BASELINES,
    Question,
    first_points,
    parameter,
    parameters_of,
    settings_of,
)
from gcnii.tuning.trials import DEFAULT, place_of, ranked, trials_of
from gcnii.tuning.trials import Trial as TriedSetting

STARTUP = 10  # trials before TPE has something to learn from
# Shares of batches whose shape is drawn at random, and whose shape is the best one with a choice
# changed: a batch has many trials of one shape, by which that shape would soon be all that TPE
# proposes.
DRAWN, CHANGED = 1 / 6, 1 / 3


@dataclass(frozen=True)
class Proposal:
    """A trial of the study, and what it trains."""

    trial: Trial
    plan: Plan


class Proposer(Protocol):
    """Where a worker's trials come from."""

    @property
    def sampler(self) -> BaseSampler: ...

    def propose(self, trial: Trial, first: Proposal | None) -> Proposal:
        """Settle a trial's settings; `first` is the first of its batch, if that is another."""


class SpaceProposer:
    """From the declared spaces of a question's models, one shape per batch."""

    def __init__(self, question: Question):
        self.question, self.sampler = question, sampler_of(question)

    def propose(self, trial: Trial, first: Proposal | None) -> Proposal:
        """Settle a trial's settings; those of a batch agree in shape."""
        if DEFAULT in trial.user_attrs:
            return Proposal(trial, self.question.default)
        question, sampler = self.question, self.sampler
        sampler.shape = shape_of(first, question) if first else new_shape(question, sampler, trial)
        return propose(question, trial)


class PointsFirst(BaseSampler):
    """The points in the order of the trials' numbers; then TPE, or chance, with `shape` held fixed.

    Draws depend on the trial's number alone: workers that begin together propose different
    settings, and a study that was interrupted goes on as it would have.

    learns whether proposals depend on the scores so far
    shape  parameters that all trials of a batch have in common
    place  of the latest trial among those that are not another's second attempt
    """

    def __init__(self, points: Sequence[Settings], seed: int, learns: bool = True):
        self.points, self.seed, self.shape, self.place = points, seed, Settings(), 0
        self.learns = learns
        self.base = self._base(0)

    def _base(self, number: int) -> BaseSampler:
        how: dict[str, Any] = {"multivariate": True, "group": True, "constant_liar": True}
        seed = (self.seed + number) % 2**32
        if not self.learns:
            return RandomSampler(seed)
        how |= {"seed": seed, "n_startup_trials": max(STARTUP, len(self.points))}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)  # of `group`
            return TPESampler(**how)

    def random(self, number: int) -> np.random.Generator:
        """What the trial of this number draws from, beside TPE."""
        return np.random.default_rng((self.seed, number))

    @property
    def _known(self) -> Settings:
        """What is settled for a trial: its point; a trial that was given back has its old one."""
        return self.points[self.place] if self.place < len(self.points) else self.shape

    def infer_relative_search_space(
        self, study: OptunaStudy, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters that are proposed jointly."""
        known = self._known
        if known is not self.shape:
            return {}
        space = self.base.infer_relative_search_space(study, trial)
        return {name: one for name, one in space.items() if name not in known}

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """TPE's proposal."""
        return self.base.sample_relative(study, trial, search_space) if search_space else {}

    def sample_independent(
        self,
        study: OptunaStudy,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """What is settled, else TPE's proposal for one parameter."""
        known = self._known
        if param_name in known:
            return known[param_name]
        return self.base.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: OptunaStudy, trial: FrozenTrial) -> None:
        self.place = place_of(trial, study.get_trials(deepcopy=False))
        self.base = self._base(trial.number)


def sampler_of(question: Question) -> PointsFirst:
    """A sampler for a worker."""
    seed = crc32(question.name.encode())
    return PointsFirst(first_points(question), seed, learns=not question.nested)


def propose(question: Question, trial: Trial) -> Proposal:
    """Settle a trial's settings."""
    model = str(trial.suggest_categorical("model", question.models))
    space = question.space(model)
    values = {
        name: trial._suggest(name, distribution(search))
        for name, search in ((parameter(model, one), space[one]) for one in space)
    }
    settings = settings_of(model, space, values)
    return Proposal(trial, question.plan(model, settings))


def new_shape(question: Question, sampler: PointsFirst, trial: Trial) -> Settings:
    """What the first trial of a batch begins with: nothing, or sometimes another shape."""
    random = sampler.random(trial.number)
    kind = random.random()
    if kind < DRAWN or not sampler.learns:
        return _drawn_shape(question, random)
    best = ranked(trials_of(trial.study)) if kind < DRAWN + CHANGED else []
    best = [one for one in best if one.model in question.models]  # the default's may not be
    return _changed_shape(question, best[0], random) if best else {}


def _choices(question: Question, model: str) -> dict[str, Choice]:
    """The settings of a model that are words, switches or sizes."""
    space = question.space(model).items()
    return {name: search for name, search in space if isinstance(search, Choice)}


def _drawn_shape(question: Question, random: np.random.Generator) -> Settings:
    """A shape at random, of any model but the baselines, which are not what is searched for."""
    models = [name for name in question.models if name not in BASELINES] or question.models
    model = models[random.integers(len(models))]
    choices = {
        parameter(model, name): search.values[random.integers(len(search.values))]
        for name, search in _choices(question, model).items()
    }
    return {"model": model, **choices}


def _changed_shape(question: Question, best: TriedSetting, random: np.random.Generator) -> Settings:
    """The shape of the best trial with one of its choices changed, if it has any."""
    model, choices = best.model, _choices(question, best.model)
    shape = {name: best.settings[name] for name in choices}
    if choices:  # not all are given
        name = list(choices)[random.integers(len(choices))]
        others = [value for value in choices[name].values if value != shape[name]]
        shape[name] = others[random.integers(len(others))]
    return {"model": model, **parameters_of(model, choices, shape)}


def shape_of(proposal: Proposal, question: Question) -> Settings:
    """The parameters in which the other trials of its batch must agree with it."""
    model, numbers = proposal.plan.model, batched(proposal.plan.model)
    apart = {parameter(model, name) for name in question.space(model) if name in numbers}
    return {name: one for name, one in proposal.trial.params.items() if name not in apart}


def distribution(search: Range | Choice) -> BaseDistribution:
    """As Optuna has it."""
    if isinstance(search, Choice):
        return CategoricalDistribution(search.values)
    return FloatDistribution(search.low, search.high, log=search.log, step=search.step)


def quiet() -> None:
    """Silence Optuna but for errors: what it warns of as experimental is tested here."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
