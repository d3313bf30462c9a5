"""A worker: takes trials and trains them batch by batch, until the study is at its limits.

Successive halving is the one rule by which a setting is given up before its training ends.  At
epochs e, 2e, 4e, …, where e = patience + 1, a setting stays if its validation score so far, that of
the weights that would be kept, is at least the median of all settings of the study that got there.
Settings are compared seed by seed, because seeds have splits of their own, and judged by the mean
of the differences.  No setting is given up earlier: e is the first epoch after which patience
itself can end a training.  The default and the baselines stay: the winner will be compared with
them.  Where each of several splits chooses for itself, each run is judged alone.

With a deadline, a trial that would not end in time is not begun, as far as the trials so far tell
how long an epoch of its model takes.  The default alone is always begun: its first run is what a
search returns if there is time for nothing else.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import inf
from statistics import fmean, median
from typing import TypeAlias

from optuna.exceptions import UpdateFinishedTrialError
from optuna.study import Study as OptunaStudy
from optuna.trial import Trial as OptunaTrial
from optuna.trial import TrialState

from gcnii.files import Document
from gcnii.results.fit import SILENT, Session
from gcnii.results.result import Result
from gcnii.targets.scores import sign_of
from gcnii.train.group import Interrupt, interruptible
from gcnii.train.hardware import choose_device
from gcnii.train.plan import batch_key
from gcnii.train.stopping import Run
from gcnii.tuning.closing import reserve
from gcnii.tuning.proposals import Proposal, Proposer, SpaceProposer
from gcnii.tuning.question import BASELINES, Question
from gcnii.tuning.storage import Held
from gcnii.tuning.trials import (
    DEFAULT,
    FINISHED,
    fitted,
    place_of,
    size_of,
    told_of,
    trials_of,
    value_of,
)

FEWEST = 4  # settings at a rung, below which a median says nothing

# rung → seed → setting → validation score of the weights kept up to that epoch
Standings: TypeAlias = dict[int, dict[int, dict[Hashable, float]]]


class Halving:
    """Which runs leave: asked by `fit` after some epochs.

    names    what each setting of the fit is called in `standings`
    over     whether there is no time left; then all runs leave
    stay     the places of settings that are never given up
    by_score whether weights are kept by their score; else by their loss
    apart    whether runs are judged each alone, because no split may know of another
    sign     1, or -1 where a lower score is better
    seen     all runs so far: those that have ended leave the fit's own list
    behind   the places of the settings that were given up
    gone     the runs that were, if each is judged alone
    cut      the places of the settings that lacked time
    """

    def __init__(
        self,
        names: Sequence[Hashable],
        patience: int,
        standings: Standings | None = None,
        over: Callable[[], bool] = lambda: False,
        stay: Collection[int] = (),
        by_score: bool = True,
        apart: bool = False,
        sign: int = 1,
    ):
        self.names, self.first, self.over, self.stay = names, patience + 1, over, stay
        self.by_score, self.apart, self.sign = by_score, apart, sign
        self.standings: Standings = standings if standings is not None else {}
        self.judged: dict[tuple[int, int], int] = defaultdict(int)  # run → its last rung
        self.seen: dict[tuple[int, int], Run] = {}
        self.behind: set[int] = set()
        self.gone: set[tuple[int, int]] = set()
        self.cut: set[int] = set()

    def __call__(self, runs: Sequence[Run]) -> list[Run]:
        """The runs in training that end now."""
        self.seen |= {run.key: run for run in runs}
        for run in sorted(self.seen.values(), key=lambda run: run.stopped):
            self._note(run)
        running = [run for run in runs if not run.stopped]
        if self.over():
            self.cut |= {run.setting for run in running} - self.behind
            return running
        if self.apart:
            self.gone |= {run.key for run in running if self._is_behind(run.setting, [run])}
            return [run for run in running if run.key in self.gone]
        for setting in sorted({run.setting for run in running}):
            if self._is_behind(setting, [run for run in running if run.setting == setting]):
                self.behind.add(setting)
        return [run for run in running if run.setting in self.behind]

    def noted(self, setting: int) -> Mapping[int, Mapping[int, float]]:
        """rung → seed → the setting's standing, to be kept for other batches."""
        name = self.names[setting]
        return {
            rung: {seed: scores[name] for seed, scores in seeds.items() if name in scores}
            for rung, seeds in self.standings.items()
        }

    def _note(self, run: Run) -> None:
        """Write down where the run stood at each rung that it has reached or will not reach."""
        rung, name = self.first, self.names[run.setting]
        left = run.setting in self.behind | self.cut or run.key in self.gone
        last = self._furthest(run) if run.stopped and not left else 0
        while run.curve and rung <= max(run.epochs, last):
            seen = self.standings.setdefault(rung, {}).setdefault(run.seed, {})
            if name not in seen:
                seen[name] = self._score(run, rung)
            rung *= 2

    def _score(self, run: Run, rung: int) -> float:
        """The score of the weights kept up to this epoch: what a finished run is compared by."""
        scores = ((self.sign * val, loss) for _, loss, val in run.curve[:rung])
        points = ((val if self.by_score else -loss, val) for val, loss in scores)
        return max(points, key=lambda point: point[0])[1]

    def _furthest(self, run: Run) -> int:
        """The last rung that others have reached: a run that has stopped stays as good there."""
        return max((rung for rung, seeds in self.standings.items() if run.seed in seeds), default=0)

    def _is_behind(self, setting: int, running: Sequence[Run]) -> bool:
        """Judge a setting when the last of its runs in training gets to another rung."""
        rung = self._rung(min(run.epochs for run in running))
        if setting in self.stay or all(rung <= self.judged[run.key] for run in running):
            return False
        self.judged |= {run.key: rung for run in running}
        name, gaps = self.names[setting], []
        seeds = {run.seed for run in running} if self.apart else self.standings.get(rung, {}).keys()
        for scores in (self.standings.get(rung, {}).get(seed, {}) for seed in seeds):
            if name in scores and len(scores) >= FEWEST:
                gaps.append(scores[name] - median(scores.values()))
        return bool(gaps) and fmean(gaps) < 0

    def _rung(self, epochs: int) -> int:
        """The last rung at or before this epoch; 0 before the first."""
        if epochs < self.first:
            return 0
        rung = self.first
        while 2 * rung <= epochs:
            rung *= 2
        return rung


# numbers of the default's states in all epochs, after which its other seeds wait for the end, where
# the default is confirmed if it is among the best: about 10 s on a CPU
HEAVY = 5e8
FILLED = 1 << 24  # numbers of all replicas' states in one layer: a GPU gains little from more
MOST = 16  # settings at once, and as many that take the places of those that leave
PAUSE = 0.5  # seconds between two checks of what others are doing
LOOK = 3.0  # seconds between two estimates of the final trainings
MOST_TOO_LONG = 10  # proposals in a row for which there is no time: the search is over


@dataclass(frozen=True)
class Limits:
    """When a search ends.

    trials    settings in all, those of other workers among them; None: any number
    deadline  when all is to be done, the final training too, by `time.time`; None: any time
    closing   seconds of these for the final training, if it would take longer than that
    joined    numbers of those that are trained to the end already, where the best are combined
    splits    of the graph, each of which chooses for itself if there are several
    """

    trials: int | None = None
    deadline: float | None = None
    closing: float = inf
    joined: frozenset[int] | None = None
    splits: int = 1


class Clock:
    """Whether there is time for another epoch, if the final trainings are to end in time.

    interrupt  becomes true when someone stops the search
    """

    def __init__(self, study: OptunaStudy, limits: Limits, interrupt: Interrupt):
        self.study, self.limits, self.interrupt = study, limits, interrupt
        self.reserve, self.looked = 0.0, -inf

    def refuse_interrupted(self) -> None:
        """Raise KeyboardInterrupt if the search is to stop."""
        if self.interrupt:
            raise KeyboardInterrupt

    @property
    def left(self) -> float:
        """Seconds for the search."""
        if self.limits.deadline is None:
            return inf
        if time.time() - self.looked > LOOK:
            trials = trials_of(self.study)
            self.looked = time.time()
            limits = self.limits
            self.reserve = reserve(trials, limits.closing, limits.joined, limits.splits)
        return self.limits.deadline - self.reserve - time.time()

    @property
    def over(self) -> bool:
        """Whether time has run out."""
        return bool(self.interrupt) or self.left <= 0


def search(
    question: Question,
    study: OptunaStudy,
    limits: Limits,
    session: Session = SILENT,
    after_batch: Callable[[], object] = lambda: None,
    proposer: Proposer | None = None,
) -> list[Result]:
    """Train trials until the limits are reached and no trial of any worker is left.

    Returns the default's own runs, if it was trained here.

    Ctrl-C and SIGTERM raise KeyboardInterrupt after the epoch; unfinished trials are given back.
    """
    proposer = proposer or SpaceProposer(question)
    study.sampler = proposer.sampler
    with interruptible() as interrupt, Held(study) as held:
        clock = Clock(study, limits, interrupt)
        worker = Worker(question, study, held, clock, proposer, session)
        too_long = 0  # batches in a row
        while not clock.over and too_long < MOST_TOO_LONG:
            held.give_back_lost()
            batch = list(worker.proposals(limits.trials))
            if not batch:
                running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
                if all(trial._trial_id in held.trials for trial in running):
                    break
                time.sleep(PAUSE)  # others train; if they die, their trials come back
            # Those that are not begun in time are given back at the end.
            for some in takewhile(lambda _: not clock.over, _by_shape(batch)):
                too_long += 1
                if worker.expected(some[0]) <= clock.left:
                    worker.train(some)
                    clock.looked, too_long = -inf, 0  # there is more to judge by
                    after_batch()
        clock.refuse_interrupted()
    return worker.kept


def _by_shape(batch: Sequence[Proposal]) -> list[list[Proposal]]:
    """Those that can be trained together as one batch; the default alone, for it is never cut."""
    found: dict[tuple[bool, str], list[Proposal]] = {}
    for proposal in batch:
        key = DEFAULT in proposal.trial.user_attrs, batch_key(proposal.plan)
        found.setdefault(key, []).append(proposal)
    return list(found.values())


@dataclass(frozen=True)
class Worker:
    """What takes trials from a study, and trains them on one device."""

    question: Question
    study: OptunaStudy
    held: Held
    clock: Clock
    proposer: Proposer
    session: Session
    kept: list[Result] = field(default_factory=list)

    @property
    def on_cpu(self) -> bool:
        """Whether it trains one run at a time."""
        return choose_device(self.session.device).type == "cpu"

    def proposals(self, most: int | None) -> Iterator[Proposal]:
        """Trials for this worker, as many as fill the device, of `most` in the study."""
        wanted, count, first = 1, 0, None
        while count < wanted and _slots(self.study, most):
            self.clock.refuse_interrupted()
            trial = self.held.claim()
            if most is not None and trial.number - _failed(self.study, trial.number) >= most:
                self.study.tell(trial, state=TrialState.FAIL)  # another worker was faster
                self.held.release(trial)
                return
            proposal = self.proposer.propose(trial, first)
            if first is None:
                wanted, first = self.room(proposal), proposal
            count += 1
            yield proposal

    def room(self, proposal: Proposal) -> int:
        """How many settings of this shape to ask for at once: one on a CPU."""
        at_once = self.at_once(proposal)
        return 1 if at_once == 1 and self.on_cpu else 2 * at_once

    def at_once(self, proposal: Proposal) -> int:
        """How many settings are trained at once."""
        return min(max(self.capacity(proposal) // self.question.seeds, 1), MOST)

    def capacity(self, proposal: Proposal) -> int:
        """How many replicas of this shape, with all their views, fill the device: one on a CPU."""
        if self.on_cpu:
            return 1
        settings = proposal.plan.settings
        width = settings.get("width", 64) * settings.get("heads", 1)
        return int(max(FILLED // (self.question.graph.n * width * settings["views"]), 1))

    def train(self, batch: Sequence[Proposal]) -> None:
        """Train proposals of one shape and tell the study."""
        frozen = [proposal.trial._cached_frozen_trial for proposal in batch]
        recipe, others = batch[0].plan.recipe, self.study.get_trials(deepcopy=False)
        default = DEFAULT in frozen[0].user_attrs
        first = 0 if self.question.combines else len(BASELINES)
        stay = {i for i, trial in enumerate(frozen) if place_of(trial, others) < first}
        halving = Halving(
            [trial.number for trial in frozen],
            recipe.patience,
            _standings(self.study),
            (lambda: bool(self.clock.interrupt)) if default else (lambda: self.clock.over),
            {0} if default else stay,
            recipe.rule.by_score,
            self.question.nested,
            sign_of(recipe.scored_by),
        )
        start = time.perf_counter()
        runs = self._runs(batch, halving)
        self.clock.refuse_interrupted()
        seconds = time.perf_counter() - start
        for i, proposal in enumerate(batch):
            own = [run for run in runs if run.setting == i]
            final = self._final_seconds(proposal, runs, own, seconds)
            told = told_of(proposal.plan, own, final, halving.noted(i))
            left = i in halving.behind | halving.cut or all(run.key in halving.gone for run in own)
            self._tell(proposal.trial, told, given_up=left)
            self.held.release(proposal.trial)

    def _runs(self, batch: Sequence[Proposal], halving: Halving) -> list[Run]:
        """The runs of all settings: on a GPU at once; on a CPU seed by seed, while it pays."""
        question, seeds = self.question, range(self.question.seeds)
        at_once = self.at_once(batch[0]) * question.seeds
        plans = [proposal.plan for proposal in batch]
        session = replace(self.session, leave=halving)
        runs: list[Run] = []
        start, default = time.perf_counter(), DEFAULT in batch[0].trial.user_attrs
        for some in [[seed] for seed in seeds] if self.on_cpu else [list(seeds)]:
            spent, left = time.perf_counter() - start, self.clock.left
            # The default leaves half of the time to others, if it has to do with fewer seeds.
            slow = default and left == inf and self._numbers(batch[0], runs) > HEAVY
            if runs and (slow or (spent if default else spent / len(runs)) > left):
                halving.cut |= set(range(len(batch))) - halving.behind
            if len(halving.behind | halving.cut) == len(batch):
                break
            result = fitted(question.hidden, plans, at_once, session, some)
            if result is None:
                return []
            if result.interrupted:
                raise KeyboardInterrupt
            runs += result.runs
            if default:
                self.kept.append(result)
        return runs

    def _numbers(self, proposal: Proposal, runs: Sequence[Run]) -> float:
        """That all layers' states had, in all epochs of these runs."""
        size = size_of(proposal.plan.settings) * self.question.graph.n
        return size * sum(run.epochs for run in runs)

    def expected(self, proposal: Proposal) -> float:
        """Seconds that training this takes, by what an epoch took in the trials so far.

        Those of its model tell; 0 if there are none, for then it is tried, and cut in time.  An
        epoch takes longer the more and the wider layers.
        """
        done = [one for one in trials_of(self.study) if one.final_seconds and sum(one.epochs)]
        own = [one for one in done if one.model == proposal.plan.model]
        if DEFAULT in proposal.trial.user_attrs or not own:
            return 0.0
        epoch = median(one.final_seconds / fmean(one.epochs) / size_of(one.settings) for one in own)
        epochs = median(fmean(one.epochs) for one in own)
        final = epoch * epochs * size_of(proposal.plan.settings)
        return final * self.question.seeds / self.question.final_runs if self.on_cpu else final

    def _final_seconds(
        self, proposal: Proposal, runs: Sequence[Run], own: Sequence[Run], seconds: float
    ) -> float:
        """How long this setting's final training may take, if a batch of runs took these seconds.

        own  those of them that are of this setting

        A GPU takes as long for one run as for all that fill it, until the last of them stops.
        """
        capacity, last = self.capacity(proposal), self.question.final_runs
        ours, final = (max(1.0, count / capacity) for count in (len(runs), last))
        longest = [max((run.epochs for run in some), default=1) for some in (own, runs)]
        share = 1.0 if self.on_cpu else longest[0] / max(longest[1], 1)
        return seconds * share * final / ours

    def _tell(self, trial: OptunaTrial, told: Document, *, given_up: bool) -> None:
        """Keep a trial's scores: complete, given up, or lost."""
        score = value_of(told)
        try:
            trial.set_user_attr("told", told)
            if given_up and not told["lost"]:
                trial.report(score, max(told["epochs"]))
                self.study.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)
            else:
                self.study.tell(trial, score, skip_if_finished=True)
        except UpdateFinishedTrialError:
            pass  # it was given back: this worker's heartbeat was too old


def _slots(study: OptunaStudy, most: int | None) -> bool:
    """Whether there may be another trial."""
    trials = study.get_trials(deepcopy=False)
    waiting = any(trial.state == TrialState.WAITING for trial in trials)
    return most is None or waiting or sum(trial.state != TrialState.FAIL for trial in trials) < most


def _failed(study: OptunaStudy, before: int) -> int:
    failed = study.get_trials(deepcopy=False, states=(TrialState.FAIL,))
    return sum(trial.number < before for trial in failed)


def _standings(study: OptunaStudy) -> Standings:
    """What all trials so far have noted at the rungs."""
    standings: Standings = {}
    for trial in study.get_trials(deepcopy=False, states=FINISHED):
        for rung, seeds in trial.user_attrs.get("told", {}).get("rungs", {}).items():
            for seed, score in seeds.items():
                standings.setdefault(int(rung), {}).setdefault(int(seed), {})[trial.number] = score
    return standings
