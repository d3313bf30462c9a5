"""Proposals: which settings a worker trains next, those of one shape together.

Optuna's TPE proposes, jointly in all settings; trials that others are training count as bad ones
(constant liar), so that a batch spreads.  The settings that change shapes or rules are proposed
once per batch, the numbers for each of its trials.
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
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial, Trial, TrialState

from gcnii.nn.settings import Choice, Range, Settings
from gcnii.train.plan import Plan, batched
from gcnii.tuning.points import first_points
from gcnii.tuning.question import Question
from gcnii.tuning.space import parameter, settings_of

STARTUP = 10  # trials before TPE has something to learn from
# Share of batches whose shape is drawn at random: a batch has many trials of one shape, by which
# that shape would soon be all that TPE proposes.
EXPLORED = 1 / 3


@dataclass(frozen=True)
class Proposal:
    """A trial of the study, and what it trains."""

    trial: Trial
    plan: Plan


class Proposer(Protocol):
    """Where a worker's trials come from."""

    @property
    def sampler(self) -> BaseSampler:
        """What the study proposes by."""

    def start_batch(self) -> None:
        """Called before the first trial of a batch."""

    def propose(self, trial: Trial) -> Proposal:
        """Settle a trial's settings."""

    def keep_shape(self, first: Proposal) -> None:
        """Called with the first trial of a batch, before the others are proposed."""


class SpaceProposer:
    """From the declared spaces of a question's models, one shape per batch."""

    def __init__(self, question: Question, done: int):
        self.question, self.sampler = question, sampler_of(question, done)

    def start_batch(self) -> None:
        """Begin with a shape at random, now and then."""
        self.sampler.shape = new_shape(self.question, self.sampler)

    def propose(self, trial: Trial) -> Proposal:
        """Settle a trial's settings."""
        return propose(self.question, trial)

    def keep_shape(self, first: Proposal) -> None:
        """Let the others agree with the first trial in shape."""
        self.sampler.shape = shape_of(first, self.question)


class PointsFirst(BaseSampler):
    """The points in the order of the trials' numbers; then TPE, with `shape` held fixed.

    shape  parameters that all trials of a batch have in common
    """

    def __init__(self, points: Sequence[Settings], seed: int):
        self.points, self.shape = points, Settings()
        self.random = np.random.default_rng(seed)
        how: dict[str, Any] = {"multivariate": True, "group": True, "constant_liar": True}
        startup = max(STARTUP, len(points))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)  # of `group`
            self.base = TPESampler(n_startup_trials=startup, seed=seed, **how)

    def _known(self, trial: FrozenTrial) -> Settings:
        """What is settled for a trial: its point; a trial that was given back has its old one."""
        first = trial.system_attrs.get("failed_trial", trial.number)
        return self.points[first] if first < len(self.points) else self.shape

    def infer_relative_search_space(
        self, study: OptunaStudy, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The parameters that are proposed jointly."""
        known = self._known(trial)
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
        known = self._known(trial)
        if param_name in known:
            return known[param_name]
        return self.base.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: OptunaStudy, trial: FrozenTrial) -> None:
        """Passed on."""
        self.base.before_trial(study, trial)

    def after_trial(
        self,
        study: OptunaStudy,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Passed on."""
        self.base.after_trial(study, trial, state, values)


def sampler_of(question: Question, done: int) -> PointsFirst:
    """A sampler for a worker that begins when so many trials are there."""
    return PointsFirst(first_points(question), crc32(question.name.encode()) + done)


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


def new_shape(question: Question, sampler: PointsFirst) -> Settings:
    """What the first trial of a batch begins with: nothing, or sometimes a shape at random."""
    random = sampler.random
    if random.random() >= EXPLORED:
        return {}
    model = question.models[random.integers(len(question.models))]
    choices = {
        parameter(model, name): search.values[random.integers(len(search.values))]
        for name, search in question.space(model).items()
        if isinstance(search, Choice)
    }
    return {"model": model, **choices}


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
    """Let Optuna say nothing but errors: what it warns of as experimental is tested here."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
