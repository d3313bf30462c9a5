"""Running a search: a study of `tuning` in memory, and a document that lasts and is shared.

Proposed are the fixed settings alone, then points of the axes, none of them twice.  Before the
first batch and after each, a process writes what it has finished, and learns what others have.
There is no lock: of two documents written within the same milliseconds the earlier is lost, and its
tries are written again after the next batch.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain
from math import inf, prod
from pathlib import Path
from statistics import fmean
from typing import Any
from zlib import crc32

import numpy as np
from optuna import create_study, create_trial
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import TPESampler
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial, TrialState
from optuna.trial import Trial as OptunaTrial

from gcnii.data import load
from gcnii.files import Document, write_document
from gcnii.results.fit import Session
from gcnii.results.provenance import commit, versions
from gcnii.train.hardware import choose_device, device_name
from gcnii.train.plan import make_plan
from gcnii.train.presets import Settings
from gcnii.tuning.proposals import STARTUP, Proposal, quiet
from gcnii.tuning.question import Question
from gcnii.tuning.trials import Trial, trials_of
from gcnii.tuning.worker import Limits
from gcnii.tuning.worker import search as train_trials
from gcnii_paper.reproduce import stop_after
from gcnii_paper.search import GIVEN_UP, SEEDS, Search, make_record, read_tries

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

    def propose(self, trial: OptunaTrial, first: Proposal | None) -> Proposal:
        """`fixed` alone, if it has not been tried; else a point."""
        others = trial.study.get_trials(deepcopy=False)
        settings = self.search.fixed
        if any(other.user_attrs.get(SETTINGS) == settings for other in others):
            settings = self.search.at(
                {name: trial._suggest(name, axis) for name, axis in self.space.items()}
            )
        trial.set_user_attr(SETTINGS, settings)
        return Proposal(trial, make_plan(self.search.model, settings, self.question.graph))


class UntriedPoints(TPESampler):
    """What TPE proposes, jointly in all axes, and has not been tried; else any such point."""

    def __init__(self, space: dict[str, CategoricalDistribution], seed: int):
        self.space, self.seed = space, seed
        self._begin(0)

    def _begin(self, number: int) -> None:
        super().__init__(
            seed=(self.seed + number) % 2**32,
            n_startup_trials=STARTUP,
            multivariate=True,
            constant_liar=True,
        )

    def reseed_rng(self) -> None:
        """Propose other points than a process that began alike."""
        self.seed = secrets.randbits(32)

    def before_trial(self, study: OptunaStudy, trial: FrozenTrial) -> None:
        """Draw by the trial's number: a search that was interrupted goes on as it would have."""
        self._begin(trial.number)

    def infer_relative_search_space(
        self, study: OptunaStudy, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
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
            if point := super().sample_relative(study, trial, dict(self.space)):
                yield point

    def _shuffled(self, number: int) -> Iterator[dict[str, int]]:
        sizes = [len(axis.choices) for axis in self.space.values()]
        for point in np.random.default_rng((self.seed, number)).permutation(prod(sizes)):
            places = map(int, np.unravel_index(point, sizes))
            yield dict(zip(self.space, places, strict=True))


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


ROUND = 10  # tries that a GPU is given at once; the next ones are proposed by what they taught


def run_search(
    search: Search,
    folder: Path,
    trials: int,
    device: str = "auto",
    on_try: Callable[[str], None] = lambda words: None,
    deadline: float = inf,
) -> Document:
    """Train until the search's document in the folder has `trials` tries; return the document.

    Tries of earlier calls and of other processes count.  `on_try` is called with the settings of
    each try that is done, also of those that are there already.  After the deadline, by
    `time.monotonic`, it raises OutOfTime; the try that it was at is tried again next time.
    """
    quiet()
    commit()  # recorded with each try; later it might be another one
    proposer = PointProposer(search)
    study = create_study(direction="maximize", sampler=proposer.sampler)
    exchange = Exchange(search, study, folder / search.file, device, on_try)
    tries, most = exchange(), min(trials, search.size)
    for enough in (*range(ROUND, most, ROUND), most):
        if len(tries) < enough:
            limits = Limits(enough)
            where = Session(device=device, callbacks=[lambda epoch: stop_after(deadline)])
            train_trials(proposer.question, study, limits, where, exchange, proposer)
            tries = exchange()
    return make_record(search.about, tries)


class Exchange:
    """Between a study and a document: called before the first batch and after each.

    on_try  called with the settings of each try that is new in the document
    """

    def __init__(
        self,
        search: Search,
        study: OptunaStudy,
        path: Path,
        device: str,
        on_try: Callable[[str], None],
    ):
        self.search, self.study, self.path, self.on_try = search, study, path, on_try
        self.device = device_name(choose_device(device))
        self.own: list[Settings] = []  # of tries that were trained here
        self.shown = 0

    def __call__(self) -> list[Document]:
        """Write what is not in the document, learn what is not in the study; all tries."""
        tries = read_tries(self.path, self.search.about)
        self._write(tries)
        known = [trial.user_attrs.get(SETTINGS) for trial in self.study.get_trials(deepcopy=False)]
        for done in tries:
            if done["settings"] not in known:
                self.study.add_trial(finished_trial(self.search, done))
        for done in tries[self.shown :]:
            self.on_try(", ".join(f"{name} {value}" for name, value in done["settings"].items()))
        self.shown = len(tries)
        return tries

    def _write(self, tries: list[Document]) -> None:
        """Add what was trained here to the tries and to the document."""
        written, before = [done["settings"] for done in tries], len(tries)
        frozen = self.study.get_trials(deepcopy=False)
        for trial in trials_of(self.study):
            settings = frozen[trial.number].user_attrs[SETTINGS]
            if settings not in written:
                tries.append(self._document(trial, settings))
            elif settings not in self.own:
                # Another process has tried the same meanwhile: from now on propose other points.
                self.study.sampler.reseed_rng()
            self.own.append(settings)
        if len(tries) > before:
            write_document(self.path, make_record(self.search.about, tries))

    def _document(self, trial: Trial, settings: Settings) -> Document:
        nothing: list[float | None] = [None] * SEEDS
        lost = trial.outcome == "lost"
        return {
            "settings": settings,
            "val": nothing if lost else list(trial.val),
            "val_loss": nothing if lost else list(trial.val_loss),
            **({"outcome": GIVEN_UP} if trial.outcome == GIVEN_UP else {}),
            "seconds": trial.seconds,
            "device": self.device,
            "versions": versions(),
            "commit": commit(),
        }
