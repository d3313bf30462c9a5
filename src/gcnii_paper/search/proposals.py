"""Proposals of a search: `fixed` alone, then points of its axes, none of them twice."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from math import prod
from statistics import fmean
from typing import Any
from zlib import crc32

import numpy as np
from optuna import create_trial
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial, Trial, TrialState

from gcnii.data import load
from gcnii.files import Document
from gcnii.train.plan import make_plan
from gcnii.tuning.proposals import STARTUP, Proposal
from gcnii.tuning.question import Question
from gcnii_paper.search.record import GIVEN_UP, SEEDS
from gcnii_paper.search.search import Search

AGAIN = 100  # times that TPE is asked for a point that has not been tried
SETTINGS = "search_settings"  # of a trial: those of its try, as the document has them


class PointProposer:
    """The trials of a search.  Those of a batch may differ in shape: there are few."""

    def __init__(self, search: Search):
        self.search = search
        self.space = space_of(search)
        self.sampler = UntriedPoints(self.space, crc32(search.name.encode()))

    @cached_property
    def question(self) -> Question:
        """What its trials are trained for."""
        return Question(load(self.search.graph), (self.search.model,), SEEDS)

    def propose(self, trial: Trial, first: Proposal | None) -> Proposal:
        """`fixed` alone, if it has not been tried; else a point."""
        others = trial.study.get_trials(deepcopy=False)
        settings = self.search.fixed
        if any(other.user_attrs.get(SETTINGS) == settings for other in others):
            settings = self.search.at(
                {name: trial._suggest(name, axis) for name, axis in self.space.items()}
            )
        trial.set_user_attr(SETTINGS, settings)
        return Proposal(trial, make_plan(self.search.model, settings, self.question.graph))


class UntriedPoints(BaseSampler):
    """What TPE proposes, jointly in all axes, and has not been tried; else any such point."""

    def __init__(self, space: dict[str, CategoricalDistribution], seed: int):
        self.space, self.seed = space, seed
        self.base = self._tpe(0)

    def _tpe(self, number: int) -> TPESampler:
        how: dict[str, Any] = {"multivariate": True, "constant_liar": True}
        return TPESampler(seed=(self.seed + number) % 2**32, n_startup_trials=STARTUP, **how)

    def reseed_rng(self) -> None:
        """Propose other points than a process that began alike."""
        self.seed = secrets.randbits(32)

    def before_trial(self, study: OptunaStudy, trial: FrozenTrial) -> None:
        """Draw by the trial's number: a search that was interrupted goes on as it would have."""
        self.base = self._tpe(trial.number)

    def infer_relative_search_space(
        self, study: OptunaStudy, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All axes."""
        return dict(self.space)

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """A point that no trial of the study has; any point if there is none left."""
        tried = [other.params for other in study.get_trials(deepcopy=False)]
        points = chain(self._proposed(study, trial), self._shuffled(trial.number))
        return next((point for point in points if point not in tried), {})

    def _proposed(self, study: OptunaStudy, trial: FrozenTrial) -> Iterator[dict[str, int]]:
        """TPE likes what was good, and so proposes it again."""
        for _ in range(AGAIN):
            if point := self.base.sample_relative(study, trial, dict(self.space)):
                yield point

    def _shuffled(self, number: int) -> Iterator[dict[str, int]]:
        sizes = [len(axis.choices) for axis in self.space.values()]
        for point in np.random.default_rng((self.seed, number)).permutation(prod(sizes)):
            places = map(int, np.unravel_index(point, sizes))
            yield dict(zip(self.space, places, strict=True))

    def sample_independent(
        self,
        study: OptunaStudy,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """As TPE does, when all points have been tried."""
        return self.base.sample_independent(study, trial, param_name, param_distribution)


def space_of(search: Search) -> dict[str, CategoricalDistribution]:
    """Axis → the places of its points, as Optuna has it."""
    axes = search.named_axes.items()
    return {name: CategoricalDistribution(range(len(axis))) for name, axis in axes}


def finished_trial(search: Search, done: Document) -> FrozenTrial:
    """A try of a document as a trial of a study, from which TPE learns."""
    places, space = search.places(done["settings"]), space_of(search)
    value = 0.0 if None in done["val"] else fmean(done["val"])
    given_up = {"state": TrialState.PRUNED, "intermediate_values": {1: value}}
    return create_trial(
        params=places,
        distributions={name: space[name] for name in places},
        user_attrs={SETTINGS: done["settings"]},
        **(given_up if done.get("outcome") == GIVEN_UP else {"value": value}),
    )
