"""A worker: takes trials, trains them batch by batch, and tells the study, until it is enough.

Successive halving is the one rule by which a setting is given up before its training ends.  At
epochs e, 2e, 4e, …, where e = patience + 1, a setting stays if its validation score so far, that of
the weights that would be kept, is at least the median of all settings of the study that got there.
Settings are compared seed by seed, because seeds have splits of their own, and judged by the mean
of the differences.  No setting is given up earlier: e is the first epoch after which patience
itself can end a training.  The baselines stay: the winner will be compared with them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import inf, isfinite
from statistics import fmean, median
from typing import TypeAlias

from optuna.exceptions import UpdateFinishedTrialError
from optuna.study import Study as OptunaStudy
from optuna.trial import TrialState

from gcnii.results.fit import Session
from gcnii.train.checkpoint import Interrupt, interruptible
from gcnii.train.hardware import choose_device
from gcnii.train.plan import batch_key
from gcnii.train.run import Run
from gcnii.tuning.closing import reserve
from gcnii.tuning.proposals import Proposal, Proposer, SpaceProposer
from gcnii.tuning.question import BASELINES, Question
from gcnii.tuning.storage import Held, sealed
from gcnii.tuning.trials import first_number, fitted, trials_of

FEWEST = 4  # settings at a rung, below which a median says nothing

# rung → seed → setting → validation score of the weights kept up to that epoch
Standings: TypeAlias = dict[int, dict[int, dict[Hashable, float]]]


class Halving:
    """Which runs leave: asked by `fit` after some epochs.

    names    what each setting of the fit is called in `standings`
    over     whether there is no time left; then all runs leave
    stay     the places of settings that are never given up
    by_score whether weights are kept by their score; else by their loss
    seen     all runs so far: those that have ended leave the fit's own list
    behind   the places of the settings that were given up
    cut      the places of those that lacked time
    """

    def __init__(
        self,
        names: Sequence[Hashable],
        patience: int,
        standings: Standings | None = None,
        over: Callable[[], bool] = lambda: False,
        stay: Collection[int] = (),
        by_score: bool = True,
    ):
        self.names, self.first, self.over, self.stay = names, patience + 1, over, stay
        self.by_score = by_score
        self.standings: Standings = standings if standings is not None else {}
        self.judged: dict[tuple[int, int], int] = defaultdict(int)  # run → its last rung
        self.seen: dict[tuple[int, int], Run] = {}
        self.behind: set[int] = set()
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
        left = run.setting in self.behind | self.cut
        last = self._furthest(run) if run.stopped and not left else 0
        while run.curve and rung <= max(run.epochs, last):
            seen = self.standings.setdefault(rung, {}).setdefault(run.seed, {})
            if name not in seen:
                seen[name] = self._score(run, rung)
            rung *= 2

    def _score(self, run: Run, rung: int) -> float:
        """The score of the weights kept up to this epoch: what a finished run is compared by."""
        points = ((val if self.by_score else -loss, val) for _, loss, val in run.curve[:rung])
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
        for scores in self.standings.get(rung, {}).values():
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


FILLED = 1 << 24  # numbers of all replicas' states in one layer: a GPU gains little from more
MOST = 16  # settings at once, and as many that take the places of those that leave
PAUSE = 0.5  # seconds between two looks at what others are doing
LOOK = 3.0  # seconds between two estimates of the final trainings
DONE = (TrialState.COMPLETE, TrialState.PRUNED)


@dataclass(frozen=True)
class Limits:
    """When a search is enough.

    trials    settings in all, those of other workers among them; None: any number
    deadline  when all is to be done, the final training too, by `time.time`; None: any time
    """

    trials: int | None = None
    deadline: float | None = None


class Clock:
    """Whether there is time for another epoch, if the final trainings are to end in time.

    interrupt  becomes true when someone stops the search
    """

    def __init__(self, study: OptunaStudy, deadline: float | None, interrupt: Interrupt):
        self.study, self.deadline, self.interrupt = study, deadline, interrupt
        self.reserve, self.looked = 0.0, -inf

    def refuse_interrupted(self) -> None:
        """Raise KeyboardInterrupt if the search is to stop."""
        if self.interrupt:
            raise KeyboardInterrupt

    @property
    def over(self) -> bool:
        """Whether time has run out."""
        if self.deadline is None or self.interrupt:
            return bool(self.interrupt)
        if time.time() - self.looked > LOOK:
            self.looked, self.reserve = time.time(), reserve(trials_of(self.study))
        return time.time() + self.reserve >= self.deadline


def search(
    question: Question,
    study: OptunaStudy,
    limits: Limits,
    device: str = "auto",
    threads: int | None = None,
    after_batch: Callable[[], object] = lambda: None,
    proposer: Proposer | None = None,
) -> None:
    """Train trials until the limits are reached and no trial of any worker is left.

    Ctrl-C and SIGTERM raise KeyboardInterrupt after the epoch; unfinished trials are given back.
    """
    proposer = proposer or SpaceProposer(question)
    study.sampler = proposer.sampler
    with interruptible() as interrupt, Held(study) as held:
        clock = Clock(study, limits.deadline, interrupt)
        while not clock.over:
            held.give_back_lost()
            batch = list(_proposals(question, proposer, held, clock, limits.trials, device))
            if not batch:
                if not _others_train(study):
                    return
                time.sleep(PAUSE)  # if they die, their trials come back
            # Those that are not begun in time are given back.
            for some in takewhile(lambda _: not clock.over, _by_shape(batch)):
                train(question, held, some, clock, device, threads)
                clock.looked = -inf  # there is more to judge by
                after_batch()
        clock.refuse_interrupted()


def _others_train(study: OptunaStudy) -> bool:
    return bool(study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)))


def _proposals(
    question: Question,
    proposer: Proposer,
    held: Held,
    clock: Clock,
    most: int | None,
    device: str,
) -> Iterator[Proposal]:
    """Trials for this worker, as many as fill the device."""
    study, wanted, count = held.study, 1, 0
    first: Proposal | None = None
    while count < wanted and _slots(study, most):
        clock.refuse_interrupted()
        trial = held.claim()
        if most is not None and trial.number - _failed(study, trial.number) >= most:
            study.tell(trial, state=TrialState.FAIL)  # another worker was faster
            held.release(trial)
            return
        proposal = proposer.propose(trial, first)
        if first is None:
            wanted, first = room(proposal, question, device), proposal
        count += 1
        yield proposal


def _slots(study: OptunaStudy, most: int | None) -> bool:
    """Whether there may be another trial."""
    trials = study.get_trials(deepcopy=False)
    waiting = any(trial.state == TrialState.WAITING for trial in trials)
    return most is None or waiting or sum(trial.state != TrialState.FAIL for trial in trials) < most


def _failed(study: OptunaStudy, before: int) -> int:
    failed = study.get_trials(deepcopy=False, states=(TrialState.FAIL,))
    return sum(trial.number < before for trial in failed)


def room(proposal: Proposal, question: Question, device: str) -> int:
    """How many settings of this shape to ask for at once: one on a CPU."""
    at_once = _at_once(proposal, question, device)
    return 1 if at_once == 1 and choose_device(device).type == "cpu" else 2 * at_once


def _at_once(proposal: Proposal, question: Question, device: str) -> int:
    """How many settings are trained at once."""
    replicas = _capacity(proposal, question, device)
    return int(min(max(replicas // question.seeds, 1), MOST))


def _capacity(proposal: Proposal, question: Question, device: str) -> int:
    """How many replicas of this shape, with all their views, fill the device: one a CPU."""
    if choose_device(device).type == "cpu":
        return 1
    settings = proposal.plan.settings
    width = settings.get("width", 64) * settings.get("heads", 1)
    state = question.graph.n * width * settings["views"]
    return int(max(FILLED // state, 1))


def _by_shape(batch: Sequence[Proposal]) -> list[list[Proposal]]:
    """Those that can be trained as one batch together."""
    found: dict[str, list[Proposal]] = {}
    for proposal in batch:
        found.setdefault(batch_key(proposal.plan), []).append(proposal)
    return list(found.values())


def train(
    question: Question,
    held: Held,
    batch: Sequence[Proposal],
    clock: Clock,
    device: str,
    threads: int | None,
) -> None:
    """Train proposals of one shape and tell the study."""
    study, frozen = held.study, [proposal.trial._cached_frozen_trial for proposal in batch]
    names = [trial.number for trial in frozen]
    patience = batch[0].plan.recipe.patience
    baselines = {i for i, trial in enumerate(frozen) if first_number(trial) < len(BASELINES)}
    by_score = batch[0].plan.recipe.rule.by_score
    rule = (patience, _standings(study), lambda: clock.over, baselines, by_score)
    halving = Halving(names, *rule)
    start = time.perf_counter()
    runs = _runs(question, batch, halving, device, threads)
    clock.refuse_interrupted()
    seconds = time.perf_counter() - start
    for i, proposal in enumerate(batch):
        own = [run for run in runs if run.setting == i]
        final = _final_seconds(question, proposal, len(runs), seconds, device)
        _tell(study, proposal, own, halving, i, final)
        held.release(proposal.trial)


def _runs(
    question: Question,
    batch: Sequence[Proposal],
    halving: Halving,
    device: str,
    threads: int | None,
) -> list[Run]:
    """The runs of all settings: on a GPU at once, on a CPU seed by seed, while it is worth it."""
    on_cpu = choose_device(device).type == "cpu"
    seeds = range(question.seeds)
    at_once = _at_once(batch[0], question, device) * question.seeds
    plans = [proposal.plan for proposal in batch]
    session = Session(device=device, threads=threads, leave=halving)
    runs: list[Run] = []
    for some in [[seed] for seed in seeds] if on_cpu else [list(seeds)]:
        if len(halving.behind | halving.cut) == len(batch):
            break
        result = fitted(question.hidden, plans, at_once, session, some)
        if result is None:
            return []
        if result.interrupted:
            raise KeyboardInterrupt
        runs += result.runs
    return runs


def _tell(
    study: OptunaStudy,
    proposal: Proposal,
    runs: Sequence[Run],
    halving: Halving,
    setting: int,
    final: float,
) -> None:
    """Keep a trial's scores: complete, given up, or lost."""
    trial, good = proposal.trial, bool(runs) and all(isfinite(run.val) for run in runs)
    partial = setting in halving.behind | halving.cut
    about = {
        "model": proposal.plan.model,
        "settings": proposal.plan.settings,
        "val": [run.val if isfinite(run.val) else None for run in runs],
        "val_loss": [run.val_loss if isfinite(run.val_loss) else None for run in runs],
        "epochs": [run.epochs for run in runs],
        "seconds": round(sum(run.seconds for run in runs), 3),
        "final_seconds": round(final, 3),
        "lost": not good,
        "rungs": {str(rung): seeds for rung, seeds in halving.noted(setting).items()},
    }
    score = fmean(run.val for run in runs) if good else 0.0
    try:
        trial.set_user_attr("told", sealed(about))
        if partial and good:
            trial.report(score, max(run.epochs for run in runs))
            study.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)
        else:
            study.tell(trial, score, skip_if_finished=True)
    except UpdateFinishedTrialError:
        pass  # it was given back: this worker had not been heard of for too long


def _final_seconds(
    question: Question, proposal: Proposal, runs: int, seconds: float, device: str
) -> float:
    """How long this setting's final training may take, if so many runs took these seconds.

    A GPU takes as long for one run as for all that fill it.
    """
    capacity = _capacity(proposal, question, device)
    ours, final = (max(1.0, count / capacity) for count in (runs, len(question.final_seeds)))
    return seconds * final / ours


def _standings(study: OptunaStudy) -> Standings:
    """What all trials so far have noted at the rungs."""
    standings: Standings = {}
    for trial in study.get_trials(deepcopy=False, states=DONE):
        for rung, seeds in trial.user_attrs.get("told", {}).get("rungs", {}).items():
            for seed, score in seeds.items():
                standings.setdefault(int(rung), {}).setdefault(int(seed), {})[trial.number] = score
    return standings
