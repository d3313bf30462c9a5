"""A study from its beginning to its end: opened, searched by workers, closed and saved.

The workers are this process, several processes, or an array of Slurm jobs (by submitit).
"""

from __future__ import annotations

import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from math import ceil, inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from optuna.exceptions import StorageInternalError
from optuna.study import Study as OptunaStudy
from optuna.trial import TrialState, create_trial
from rich.console import Console
from rich.progress import MofNCompleteColumn, TaskProgressColumn

from gcnii.errors import GcniiError, InputError, notice, some_of
from gcnii.files import CHECKPOINT, OF_A_BUNDLE, claimed, document_key, user_path
from gcnii.nn.settings import whole
from gcnii.parallel import run_parallel
from gcnii.results.bundle import MEMBERS, open_bundle
from gcnii.results.ensemble import Ensemble
from gcnii.results.fit import SILENT, Session, draws
from gcnii.results.result import Result
from gcnii.train.callbacks import every, lines_without_bar, make_progress
from gcnii.train.checkpoint import remove
from gcnii.train.group import STOPPED_BY, handled_by
from gcnii.train.hardware import choose_device
from gcnii.tuning.closing import Combination, Tuned, close, note_members
from gcnii.tuning.proposals import quiet, sampler_of
from gcnii.tuning.question import STUDY, Question, asked_in
from gcnii.tuning.storage import StorageLost, holds, open_study, refuse_damaged, sqlite_url
from gcnii.tuning.trials import DEFAULT, Trial, ranked, trials_of
from gcnii.tuning.worker import Limits, search

ANOTHER = "choose another folder (out)"
# What a folder of a study may hold: its own files, and those of a bundle.
OWN = re.compile(rf"\..*|search\.png|slurm|{MEMBERS}|{OF_A_BUNDLE.pattern}")
REFRESH = 0.5  # seconds
# What every executor understands; other options are Slurm's own.
COMMON = ("timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "tasks_per_node")
CLUSTER = "cluster"
CLUSTERS = ("slurm", "local")  # local: processes of this machine in the place of Slurm's
LOOK = 1.0  # seconds between two checks of the jobs
PATIENCE = 60.0  # seconds in which jobs that are stopped may give their trials back
LONGEST = 24 * 60  # minutes of a job without a budget; submitit's own default is 5
MARGIN = 10  # minutes that a job may take longer than the search
SAVING = 0.05  # share of a budget in which what was found is written and drawn
CLOSING = 1 / 3  # share of a budget that the final trainings may take at most
HALF = 0.5  # share of what the portfolio leaves for the members that a search has found, at most
Show = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Tuner:
    """A study, where it is kept, and what it runs on.

    folder     for the study's files and the winner's bundle
    writes     whether the folder is the user's, so that what is found is written there
    url        address of the storage; "" is memory
    command    by which it was started, if it was
    """

    question: Question
    folder: Path
    writes: bool
    url: str
    jobs: int
    slurm: Mapping[str, str] | None
    session: Session
    command: str

    @classmethod
    def of(
        cls,
        question: Question,
        *,
        storage: str | None = None,
        jobs: int = 1,
        slurm: Mapping[str, str] | None = None,
        out: Path | str | None = None,
        session: Session = SILENT,
        writes: bool = True,
        command: str = "",
    ) -> Tuner:
        """Refuses, before anything is written, what cannot be searched or kept."""
        whole("jobs", jobs, 1)
        choose_device(session.device)
        if slurm is not None:
            refuse_options(slurm)
        graph = question.graph
        for asked in (replace(question, before=True), question):
            key = document_key(asked.identity | {"graph": graph.fingerprint})[:8]
            folder = user_path(out or Path("runs") / f"{graph.name}-tune-{key}")
            url = storage or (sqlite_url(folder) if writes or out is not None else "")
            if question.numeric and holds(url, asked.name):  # a study of an older version goes on
                break
        refuse_foreign(folder, asked)
        return cls(asked, folder, writes, url, jobs, slurm, session, command)

    def run(
        self,
        budget: float | None,
        trials: int | None,
        *,
        verbose: bool | None = None,
        began: float | None = None,
        lines: bool = False,
    ) -> Tuned:
        """Search, close the study, and save it.

        began  when the time of the budget begins
        lines  whether to print plain lines now and then where there is no bar
        """
        if self.url == sqlite_url(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with self.study() as study:
                spent = Spent(study, time.time() if began is None else began)
                spent.refuse_over(budget)
                with study_bar(self.question, spent, budget, trials, verbose, lines) as show:
                    tuned = self._searched(spent, budget, trials, show)
        except StorageInternalError as error:
            raise StorageLost.of(self.url, error) from None
        tuned = replace(tuned, seconds=spent.seconds, command=self.command)
        if self.writes:
            refuse_foreign(self.folder, self.question)  # again: it took a while
            tuned.save(self.folder)
            remove(self.folder / CHECKPOINT)
        return tuned

    def _searched(
        self, spent: Spent, budget: float | None, trials: int | None, show: Show
    ) -> Tuned:
        limits = Limits(trials, splits=len(self.question.graph.splits))
        if budget is not None:
            deadline = spent.start + budget * (1 - SAVING)
            limits = replace(limits, deadline=deadline, closing=budget * CLOSING)
        try:
            end = self._combined if self.question.combines else self._won
            tuned = end(spent, limits, budget, show)
            skipped = [] if budget is None else not_begun(spent.study)
            return replace(tuned, notes=(*skipped, *tuned.notes))
        finally:
            spent.keep()

    def _won(self, spent: Spent, limits: Limits, budget: float | None, show: Show) -> Tuned:
        """Search, and train the winner anew."""
        begin_with_default(spent.study)
        kept = self._search(limits, spent)
        path = self.folder / CHECKPOINT if self.writes else None
        session = replace(self.session, checkpoint=path)
        return close(self.question, trials_of(spent.study), session, show, limits.deadline, kept)

    def _combined(self, spent: Spent, limits: Limits, budget: float | None, show: Show) -> Tuned:
        """Train the portfolio, search on from there, and combine the best of both.

        Closing is measured: while it leaves time for another trial, the search goes on.
        """
        with self._members() as folder:
            combination = self._begun(folder, budget and budget - spent.seconds, show)
            note_members(spent.study, combination.course)
            spent.keep()
            done, before = trials_of(spent.study), -1
            while len(done) > before:
                show("")
                limits = replace(limits, joined=frozenset(combination.joined))
                if limits.deadline is not None:
                    limits = replace(limits, closing=HALF * (limits.deadline - time.time()))
                self._search(limits, spent)
                before, done = len(done), trials_of(spent.study)
                show("training the best as members")
                combination.join(self.question, done, limits.deadline)
                if limits.deadline is None or self.jobs > 1 or self.slurm is not None:
                    break
            show("weighing the members")
            return combination.closed(self.question, done)

    def _begun(self, folder: Path | None, left: float | None, show: Show) -> Combination:
        """What `gcnii train` would train; that of a study that goes on is in the folder."""
        question, began = self.question, time.monotonic()
        course = question.course(self.session)
        if left is not None:
            course.clock.at_most(left)
        there = self.writes and (self.folder / "run.json").exists()
        held = open_bundle(self.folder) if there else None
        if isinstance(held, Ensemble):
            course.go_on(held, folder, show)
        else:
            course.train(folder, lambda name: show(f"training {name}"))
            if question.from_portfolio and not question.trains_portfolio and not course.interrupted:
                spent = time.monotonic() - began
                course.add(question.train_point, inf if left is None else left - spent)
        if course.interrupted:
            raise KeyboardInterrupt
        return Combination.of(course)

    @contextmanager
    def _members(self) -> Iterator[Path | None]:
        """Where members are kept as they are done; None if another process keeps its own there."""
        with ExitStack() as stack:
            free = self.writes
            if free:
                try:
                    stack.enter_context(claimed(self.folder / MEMBERS))
                except InputError:
                    free = False
            yield self.folder if free else None

    @contextmanager
    def study(self) -> Iterator[OptunaStudy]:
        """Optuna's study, checked."""
        sampler, alone = sampler_of(self.question), self.url == sqlite_url(self.folder)
        with open_study(self.question.name, self.url, sampler, alone) as study:
            if self.url:
                refuse_damaged(study, self.question, self.url)
            yield study

    def so_far(self) -> tuple[int, Trial | None]:
        """The number of settings tried, and the best."""
        with self.study() as study:
            done = trials_of(study)
        return len(done), next(iter(ranked(done)), None)

    def _search(self, limits: Limits, spent: Spent) -> list[Result]:
        """Here, or in several processes, or as jobs of Slurm; the default's runs, if here."""
        if self.slurm is not None:
            with ended_as_by_ctrl_c():
                search_by_slurm(self, limits)
        elif self.jobs > 1:
            one = partial(one_job, self, limits)
            with ended_as_by_ctrl_c():
                for _ in run_parallel(one, range(self.jobs), self.jobs):
                    spent.keep()
        else:
            return search(self.question, spent.study, limits, self.session, spent.keep)
        return []


def begin_with_default(study: OptunaStudy) -> None:
    """Let what `gcnii train` would train be the next trial, if the study has not had it."""
    if not any(DEFAULT in trial.user_attrs for trial in study.get_trials(deepcopy=False)):
        study.add_trial(create_trial(state=TrialState.WAITING, user_attrs={DEFAULT: True}))


def not_begun(study: OptunaStudy) -> list[str]:
    """What was proposed and not begun for lack of time, in a sentence."""
    waiting = study.get_trials(deepcopy=False, states=(TrialState.WAITING,))
    models = Counter(str(trial.params.get("model", "a model")) for trial in waiting)
    if not models:
        return []
    which = ", ".join(f"{count} of {model}" for model, count in models.most_common())
    return [f"Not begun for lack of time: {which}; a larger budget goes on with them."]


def one_job(tuner: Tuner, limits: Limits, job: int) -> int:
    """What one of several processes does."""
    quiet()
    with tuner.study() as study:
        search(tuner.question, study, limits, tuner.session)
    return job


class Spent:
    """The time that a study has taken, over all commands: what a budget is held against.

    start  when this command would have begun, had it done all of it
    """

    def __init__(self, study: OptunaStudy, began: float):
        self.study = study
        self.start = began - float(study.user_attrs.get("seconds", 0.0))

    @property
    def seconds(self) -> float:
        return time.time() - self.start

    def refuse_over(self, budget: float | None) -> None:
        """Raise InputError if the time ran out before anything was tried."""
        spent = self.seconds
        if budget is not None and spent >= budget and not self.study.get_trials(deepcopy=False):
            raise InputError(
                f"the budget of {budget:g} s was over before the search began: {spent:.0f} s went "
                "into reading the graph; give more time (budget=, --budget)"
            )

    def keep(self) -> None:
        """Store it, for the command that resumes the study."""
        self.study.set_user_attr("seconds", round(self.seconds, 1))


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt, so that workers are told to stop."""
    main = threading.current_thread() is threading.main_thread()
    ours = [one for one in STOPPED_BY if main and signal.getsignal(one) is signal.SIG_DFL]
    with handled_by(signal.default_int_handler, ours):
        yield


def refuse_foreign(folder: Path, question: Question) -> None:
    """Raise InputError if the folder holds what is not this study's."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; {ANOTHER}")
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if foreign := sorted(name for name in names if not OWN.fullmatch(name)):
        raise InputError(f"{folder} holds {some_of(foreign)}, which gcnii did not write; {ANOTHER}")
    if "run.json" in names and not {STUDY, "study.db"} & names:
        raise InputError(f"{folder} holds the bundle of a training run, not of a study; {ANOTHER}")
    if STUDY in names and asked_in(folder) != question.asked:
        raise InputError(
            f"{folder} holds another study: of another graph, or with other models, seeds, metric "
            f"or settings; {ANOTHER}"
        )


@contextmanager
def study_bar(
    question: Question,
    spent: Spent,
    budget: float | None,
    trials: int | None,
    verbose: bool | None,
    lines: bool = False,
) -> Iterator[Show]:
    """A bar of the trials, or of the seconds; and a function that says what is done now.

    lines  whether to print plain lines now and then where there is no bar
    """
    title, said = f"tuning {question.graph.name}", {"now": ""}

    def found() -> tuple[int, str]:
        done = trials_of(spent.study)
        best = ranked(done)
        leader = f", best {question.score.shown(best[0].score)} ({best[0].model})" if best else ""
        return len(done), f"{len(done)} settings{leader}"

    def line() -> str:
        whole = "" if budget is None else f" of {budget:.0f}"
        return f"{title}: {said['now'] or found()[1]}; {spent.seconds:.0f}{whole} s"

    if not draws(verbose):
        with lines_without_bar(line, hidden=not lines):
            yield lambda words: said.update(now=words)
        return
    count = TaskProgressColumn() if trials is None else MofNCompleteColumn()
    longest = "100%" if trials is None else f"{trials}/{trials}"
    with make_progress(Console(stderr=True), title, count, longest) as progress:
        task = progress.add_task(title, total=trials or budget, now="")

        def look() -> None:
            done, text = found()
            completed = done if trials else min(spent.seconds, budget or 0.0)
            progress.update(task, completed=completed, now=said["now"] or text)

        try:
            with every(REFRESH, look):
                yield lambda words: said.update(now=words)
        finally:
            with suppress(Exception):  # the database may be away
                look()


class JobFailed(GcniiError, RuntimeError):
    """All jobs of an array have failed."""


def refuse_options(options: Mapping[str, str]) -> None:
    """Raise InputError for options with which no job can be started from this machine."""
    if find_spec("submitit") is None:
        raise InputError("slurm needs submitit; install it: pip install 'gcnii[slurm]'")
    if options.get(CLUSTER, CLUSTERS[0]) not in CLUSTERS:
        raise InputError(f"cluster must be one of {', '.join(CLUSTERS)}, got {options[CLUSTER]!r}")
    for name in COMMON:
        if not options.get(name, "1").isdecimal():
            raise InputError(
                f"{name} must be a whole number, got {options[name]!r}; check slurm's options"
            )
    with TemporaryDirectory() as folder:
        _executor(Path(folder), options, 1, None)


def search_by_slurm(tuner: Tuner, limits: Limits) -> None:
    """Start the workers, and wait until they have done all trials."""
    options = tuner.slurm or {}
    if tuner.url.startswith("sqlite") and options.get(CLUSTER) != "local":
        notice(
            "several machines share the SQLite file of this study; on a network file system its "
            "locks may fail: give a database as storage, postgresql+psycopg://…"
        )
    folder = tuner.folder / "slurm"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # what jobs are told has the password
    executor = _executor(folder, options, tuner.jobs, limits.deadline)
    count = tuner.jobs
    jobs = executor.map_array(slurm_job, [tuner] * count, [limits] * count, list(range(count)))
    try:
        _wait(jobs)
    except BaseException:
        for job in jobs:
            job.cancel()
        with suppress(TimeoutError):
            _wait(jobs, PATIENCE)
        raise
    failed = [job for job in jobs if job.exception() is not None]
    if len(failed) == len(jobs):
        last = str(failed[0].exception()).strip().splitlines()
        why = next((line for line in reversed(last) if "Error" in line), "")
        raise JobFailed(f"all {len(jobs)} jobs failed: {why or 'no answer'}; see {folder}")
    if failed:
        notice(f"{len(failed)} of {len(jobs)} jobs failed; see {folder}")


def slurm_job(tuner: Tuner, limits: Limits, job: int) -> int:
    """What one job does; SIGTERM, which submitit would ignore, stops it as anywhere else."""

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    return one_job(tuner, limits, job)


def _wait(jobs: Sequence[Any], seconds: float | None = None) -> None:
    """Until all have ended; TimeoutError if they take too long."""
    until = None if seconds is None else time.monotonic() + seconds
    while not all(job.done() for job in jobs):
        if until is not None and time.monotonic() > until:
            raise TimeoutError
        time.sleep(LOOK)


def _executor(folder: Path, options: Mapping[str, str], jobs: int, deadline: float | None) -> Any:
    import submitit

    cluster = options.get(CLUSTER, CLUSTERS[0])
    try:
        executor = submitit.AutoExecutor(folder=str(folder), cluster=cluster)
        executor.update_parameters(**_parameters(options, cluster, jobs, deadline))
    except (RuntimeError, NameError, ValueError, TypeError, AssertionError) as error:
        why = str(error).partition("\n")[0]
        raise InputError(f"Slurm cannot start the jobs: {why}; check slurm's options") from None
    return executor


def _parameters(
    options: Mapping[str, str], cluster: str, jobs: int, deadline: float | None
) -> dict[str, object]:
    """As submitit names them: numbers as numbers, and Slurm's own with a prefix."""
    named: dict[str, object] = {
        key if key in COMMON else f"slurm_{key}": int(value) if value.isdecimal() else value
        for key, value in options.items()
        if key != CLUSTER
    }
    left = LONGEST if deadline is None else ceil((deadline - time.time()) / 60) + MARGIN
    array = {"slurm_array_parallelism": jobs} if cluster == "slurm" else {}
    return {"timeout_min": max(left, MARGIN), **array, **named}
