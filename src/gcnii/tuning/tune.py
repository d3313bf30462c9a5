"""tune: find the settings that are best for a graph, by validation."""

from __future__ import annotations

import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnii.errors import InputError, some_of
from gcnii.files import document_key, user_path
from gcnii.graph import Graph
from gcnii.nn.settings import Settings, whole
from gcnii.targets.scores import Metric
from gcnii.train.checkpoint import STOPPED_BY, remove
from gcnii.train.hardware import choose_device
from gcnii.tuning.winner import STUDY, asked_in

if TYPE_CHECKING:
    from optuna.study import Study as OptunaStudy

    from gcnii.tuning.closing import Tuned
    from gcnii.tuning.question import Question
    from gcnii.tuning.trials import Trial
    from gcnii.tuning.workers.worker import Limits

BUDGET = "10m"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
CHECKPOINT = "checkpoint.safetensors"
ANOTHER = "choose another folder (out)"
# What a folder of a study may hold: its own files, and those of a bundle.
OWN = re.compile(
    r"\..*|study\.(json|db(-.*)?)|search\.png|slurm|run\.json|model\.safetensors|curves\.csv|card\.md"
    r"|checkpoint(\.previous)?\.safetensors"
)


def tune(
    graph: Graph,
    *,
    budget: str | float | None = None,
    trials: int | None = None,
    models: Sequence[str] | None = None,
    seeds: int | None = None,
    metric: Metric = "auto",
    storage: str | None = None,
    jobs: int = 1,
    slurm: Mapping[str, str] | None = None,
    out: Path | str | None = None,
    device: str = "auto",
    threads: int | None = None,
    verbose: bool | None = None,
    **fixed: object,
) -> Tuned:
    """Search for the best settings for a graph by validation, then train and test with them.

    Test labels are not read until the search is over.

    Parameters
    ----------
    graph : Graph
        The graph.
    budget : str or float, optional
        The time limit of the whole call: "90s", "10m", "2h", or seconds; default: 10m, or none if
        `trials` is given.
    trials : int, optional
        The number of settings to try, including the baselines.
    models : list of str, optional
        Names from `gcnii models`; mlp and gcn are always included, as baselines.
    seeds : int, optional
        Runs per setting; default: 3, or more if there are few labels.
    metric : {"auto", "accuracy", "f1", "auc", "ap"}
        The metric to maximise.
    storage : str, optional
        The address of a database that several machines share, such as
        postgresql+psycopg://user@host/name; default: SQLite in `out`, or memory.
    jobs : int
        Number of processes that search in parallel.
    slurm : dict, optional
        Options of Slurm; the jobs are then started as a job array.
    out : path, optional
        A folder for the study and the winner's bundle; the same call continues the study there.
    device : {"auto", "cpu", "cuda"}
        The device to train on.
    threads : int, optional
        Number of threads on a CPU.
    verbose : bool, optional
        Whether to show a progress bar; default: in terminals and notebooks.
    **fixed
        Settings of the models and of the Recipe that are not searched.

    Returns
    -------
    Tuned
        `best.result` is the winner, trained again with new seeds on every split; `best.settings`
        are its settings, and `best.trials` all settings that were tried, the best first.

    Notes
    -----
    If several workers share a database, each of them ends with the final training, with the same
    numbers.

    Examples
    --------
    >>> import gcnii
    >>> graph = gcnii.load("csbm", n=60)
    >>> best = gcnii.tune(graph, trials=3, models=["gcnii"], seeds=1, epochs=4, patience=2)
    >>> len(best.trials)
    3
    """
    began = time.time()
    require_optuna()
    limits = limits_of(budget, trials)
    with ExitStack() as stack:
        writes = out is not None
        if not writes and (jobs != 1 or slurm is not None):
            out = stack.enter_context(tempfile.TemporaryDirectory())
        about: dict[str, Any] = {"models": models, "seeds": seeds, "metric": metric, "fixed": fixed}
        where: dict[str, Any] = {"storage": storage, "jobs": jobs, "slurm": slurm, "out": out}
        how: dict[str, Any] = {"device": device, "threads": threads, "writes": writes}
        tuner = Tuner.of(graph, **about, **where, **how)
        return tuner.run(*limits, verbose=verbose, began=began)


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
    device: str
    threads: int | None
    command: str

    @classmethod
    def of(
        cls,
        graph: Graph,
        *,
        models: Sequence[str] | None,
        seeds: int | None,
        metric: Metric,
        fixed: Settings,
        storage: str | None,
        jobs: int,
        slurm: Mapping[str, str] | None,
        out: Path | str | None,
        device: str,
        threads: int | None,
        writes: bool = True,
        command: str = "",
    ) -> Tuner:
        """Refuses, before anything is written, what cannot be searched or kept."""
        from gcnii.tuning.question import Question
        from gcnii.tuning.workers.slurm import refuse_options
        from gcnii.tuning.workers.storage import sqlite_url

        whole("jobs", jobs, 1)
        choose_device(device)
        names = (models,) if isinstance(models, str) else models
        about = (None if names is None else tuple(names), whole("seeds", seeds, 1), metric, fixed)
        question = Question.of(graph, *about)
        if slurm is not None:
            refuse_options(slurm)
        key = document_key(question.identity | {"graph": graph.fingerprint})[:8]
        folder = user_path(out or Path("runs") / f"{graph.name}-tune-{key}")
        refuse_foreign(folder, question)
        url = storage or (sqlite_url(folder) if writes or out is not None else "")
        return cls(question, folder, writes, url, jobs, slurm, device, threads, command)

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
        from optuna.exceptions import StorageInternalError

        from gcnii.tuning.workers.storage import StorageLost

        try:
            start = time.time() if began is None else began
            tuned = self._tuned(budget, trials, verbose, start, lines)
        except StorageInternalError as error:
            raise StorageLost.of(self.url, error) from None
        if self.writes:
            refuse_foreign(self.folder, self.question)  # again: it took a while
            tuned.save(self.folder)
            remove(self.folder / CHECKPOINT)
        return tuned

    def _tuned(
        self,
        budget: float | None,
        trials: int | None,
        verbose: bool | None,
        began: float,
        lines: bool,
    ) -> Tuned:
        from gcnii.tuning.closing import close
        from gcnii.tuning.progress import study_bar
        from gcnii.tuning.trials import trials_of
        from gcnii.tuning.workers.storage import sqlite_url
        from gcnii.tuning.workers.worker import Limits

        if self.url == sqlite_url(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        with self.study() as study:
            spent = Spent(study, began)
            limits = Limits(trials, None if budget is None else spent.start + budget)
            _refuse_spent(study, budget, spent.seconds)
            about = (self.question.graph.name, study, lambda: spent.seconds)
            with study_bar(*about, budget, trials, verbose, lines) as show:
                try:
                    self._search(study, limits, spent)
                    path = self.folder / CHECKPOINT if self.writes else None
                    how = (self.device, self.threads, path, show)
                    tuned = close(self.question, trials_of(study), *how)
                finally:
                    spent.keep()
        return replace(tuned, seconds=spent.seconds, command=self.command)

    @contextmanager
    def study(self) -> Iterator[OptunaStudy]:
        """Optuna's study, checked."""
        from gcnii.tuning.damage import refuse_damaged
        from gcnii.tuning.proposals import sampler_of
        from gcnii.tuning.workers.storage import open_study, sqlite_url

        sampler, alone = sampler_of(self.question), self.url == sqlite_url(self.folder)
        with open_study(self.question.name, self.url, sampler, alone) as study:
            if self.url:
                refuse_damaged(study, self.question, self.url)
            yield study

    def so_far(self) -> tuple[int, Trial | None]:
        """The number of settings tried, and the best."""
        from gcnii.tuning.trials import ranked, trials_of

        with self.study() as study:
            done = trials_of(study)
        return len(done), next(iter(ranked(done)), None)

    def _search(self, study: OptunaStudy, limits: Limits, spent: Spent) -> None:
        """Here, or in several processes, or as jobs of Slurm."""
        from gcnii.tuning.workers.worker import search

        if self.slurm is not None:
            from gcnii.tuning.workers.slurm import search_by_slurm

            with ended_as_by_ctrl_c():
                search_by_slurm(self, limits)
        elif self.jobs > 1:
            from gcnii.tuning.parallel import run_parallel

            one = partial(one_job, self, limits)
            with ended_as_by_ctrl_c():
                for _ in run_parallel(one, range(self.jobs), self.jobs):
                    spent.keep()
        else:
            hardware = (self.device, self.threads)
            search(self.question, study, limits, *hardware, lambda: spent.keep())


def one_job(tuner: Tuner, limits: Limits, job: int) -> int:
    """What one of several processes does."""
    from gcnii.tuning.proposals import quiet
    from gcnii.tuning.workers.worker import search

    quiet()
    with tuner.study() as study:
        search(tuner.question, study, limits, tuner.device, tuner.threads)
    return job


def _refuse_spent(study: OptunaStudy, budget: float | None, seconds: float) -> None:
    """Raise InputError if the time is over before anything was tried."""
    if budget is not None and seconds >= budget and not study.get_trials(deepcopy=False):
        raise InputError(
            f"the budget of {budget:g} s was over before the search began: {seconds:.0f} s went "
            "into reading the graph; give more time (budget=, --budget)"
        )


class Spent:
    """The time that a study has taken, over all commands: what a budget is held against.

    start  when this command would have begun, had it done all of it
    """

    def __init__(self, study: OptunaStudy, began: float):
        self.study = study
        self.start = began - float(study.user_attrs.get("seconds", 0.0))

    @property
    def seconds(self) -> float:
        """Until now."""
        return time.time() - self.start

    def keep(self) -> None:
        """Write it down, for the command that goes on."""
        self.study.set_user_attr("seconds", round(self.seconds, 1))


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Within, SIGTERM and SIGHUP raise KeyboardInterrupt, so that workers are told to stop."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [one for one in STOPPED_BY if signal.getsignal(one) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def refuse_foreign(folder: Path, question: Question) -> None:
    """Raise InputError if the folder holds what is not this study's."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if foreign := sorted(name for name in names if not OWN.fullmatch(name)):
        raise InputError(f"{folder} holds {some_of(foreign)}, which gcnii did not write; {ANOTHER}")
    if "run.json" in names and not {STUDY, "study.db"} & names:
        raise InputError(f"{folder} holds the bundle of a training, not of a study; {ANOTHER}")
    if STUDY in names and asked_in(folder) != question.asked:
        raise InputError(
            f"{folder} holds another study: of another graph, or with other models, seeds, metric "
            f"or settings; {ANOTHER}"
        )


def limits_of(budget: str | float | None, trials: int | None) -> tuple[float | None, int | None]:
    """Seconds and number of trials; one of them is given, or the default budget is."""
    if whole("trials", trials, 1) == 1:
        raise InputError("trials must be at least 2, for the two baselines are among them, got 1")
    if budget is None and trials is not None:
        return None, trials
    return seconds_of(BUDGET if budget is None else budget), trials


def seconds_of(budget: str | float) -> float:
    """ "90s", "10m", "1.5h" or a number of seconds; InputError for anything else."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+) ?([smhd]?)", str(budget).strip())
    seconds = float(found[1]) * UNITS[found[2] or "s"] if found else 0.0
    if not 0 < seconds < sys.maxsize:
        raise InputError(
            f"budget must be a time such as 90s, 10m or 2h, got {str(budget)!r}; to count settings "
            "instead, give trials"
        )
    return seconds


def require_optuna(command: str = "tune") -> None:
    """Raise InputError if Optuna is not installed."""
    if find_spec("optuna") is None:
        raise InputError(f"{command} needs Optuna; install it: pip install 'gcnii[tune]'")
    from gcnii.tuning.proposals import quiet

    quiet()
