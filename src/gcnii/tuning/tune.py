"""tune: find the settings that are best for a graph, by validation."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gcnii.errors import InputError, some_of
from gcnii.files import document_key
from gcnii.graph import Graph
from gcnii.metrics.objective import Metric
from gcnii.nn.settings import Settings, whole
from gcnii.train.checkpoint import remove
from gcnii.train.hardware import choose_device
from gcnii.tuning.winner import STUDY

if TYPE_CHECKING:
    from optuna.study import Study as OptunaStudy

    from gcnii.tuning.closing import Tuned
    from gcnii.tuning.question import Question
    from gcnii.tuning.trials import Trial
    from gcnii.tuning.worker import Limits

BUDGET = "10m"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
CHECKPOINT = "checkpoint.safetensors"
# What a folder of a study may hold: its own files, and those of a bundle.
OWN = re.compile(
    r"\..*|study\.(json|db(-.*)?)|search\.png|slurm|run\.json|model\.safetensors|curves\.csv"
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
    """Search the settings that are best for a graph by validation; then train and test them anew.

    budget   time for all of it: "90s", "10m", "2h", or seconds; default: 10m, or trials alone
    trials   number of settings to try, the baselines among them
    models   names of the registry; mlp and gcn are always among them, as baselines
    seeds    runs per setting; default: 3, more where there are few labels
    metric   what is maximised: auto, accuracy, f1, auc or ap
    storage  address of a database for workers on several machines, such as
             postgresql+psycopg://user@host/name; default: SQLite in `out`, else memory
    jobs     processes that search at once
    slurm    options of Slurm, by which the jobs are started as an array
    out      a folder for the study and the winner's bundle; the same call goes on with it
    verbose  whether to show a progress bar; default: in terminals and notebooks
    fixed    settings of the models and of the Recipe that are not searched

    Test labels are not read until the search is over: `best.result` is the winner, trained anew
    with fresh seeds on every split, and `best.trials` are all settings, the best first.  With a
    database, every worker's call ends with a final training of its own, of the same numbers.
    """
    require_optuna()
    whole("trials", trials, 1)
    limit = None if trials and budget is None else seconds_of(BUDGET if budget is None else budget)
    with ExitStack() as stack:
        if out is None and (jobs > 1 or slurm):
            out = stack.enter_context(tempfile.TemporaryDirectory())
        tuner = Tuner.of(
            graph,
            models=models,
            seeds=seeds,
            metric=metric,
            fixed=fixed,
            storage=storage,
            jobs=jobs,
            slurm=slurm,
            out=out,
            device=device,
            threads=threads,
            in_memory=out is None,
        )
        return tuner.run(limit, trials, verbose=verbose)


@dataclass(frozen=True, eq=False)
class Tuner:
    """A study, where it is kept, and what it runs on.

    folder     for the study's files and the winner's bundle
    url        address of the storage; "" is memory, and then nothing is written at all
    command    by which it was started, if it was
    """

    question: Question
    folder: Path
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
        command: str = "",
        in_memory: bool = False,
    ) -> Tuner:
        """Refuses, before anything is written, what cannot be searched or kept."""
        from gcnii.tuning.question import Question
        from gcnii.tuning.storage import sqlite_url

        whole("jobs", jobs, 1)
        choose_device(device)
        names = None if models is None else tuple(models)
        question = Question.of(graph, names, whole("seeds", seeds, 1), metric, fixed)
        key = document_key(question.identity)[:8]
        folder = Path(out) if out is not None else Path("runs") / f"{graph.name}-tune-{key}"
        refuse_foreign(folder)
        url = storage or ("" if in_memory else sqlite_url(folder))
        return cls(question, folder, url, jobs, slurm, device, threads, command)

    def run(
        self, budget: float | None, trials: int | None, *, verbose: bool | None = None
    ) -> Tuned:
        """Search, close the study, and save it."""
        from gcnii.tuning.closing import close
        from gcnii.tuning.progress import study_bar
        from gcnii.tuning.trials import trials_of
        from gcnii.tuning.worker import Limits

        study = self.study(make=True)
        spent = Spent(study)
        limits = Limits(trials, None if budget is None else spent.start + budget)
        about = (self.question.graph.name, study, lambda: spent.seconds)
        with study_bar(*about, budget, trials, verbose) as show:
            try:
                self._search(study, limits, spent)
                path = self.folder / CHECKPOINT if self.url else None
                how = (self.device, self.threads, path, show)
                tuned = close(self.question, trials_of(study), *how)
            finally:
                spent.keep()
        tuned = replace(tuned, seconds=spent.seconds, command=self.command)
        if self.url:
            tuned.save(self.folder)
            remove(self.folder / CHECKPOINT)
        return tuned

    def study(self, *, make: bool = False) -> OptunaStudy:
        """Optuna's study."""
        from gcnii.tuning.proposals import sampler_of
        from gcnii.tuning.storage import open_storage, open_study

        if make and self.url:
            self.folder.mkdir(parents=True, exist_ok=True)
        return open_study(self.question.name, open_storage(self.url), sampler_of(self.question, 0))

    def so_far(self) -> tuple[int, Trial | None]:
        """The number of settings tried, and the best."""
        from gcnii.tuning.trials import ranked, trials_of

        done = trials_of(self.study())
        return len(done), next(iter(ranked(done)), None)

    def _search(self, study: OptunaStudy, limits: Limits, spent: Spent) -> None:
        """Here, or in several processes, or as jobs of Slurm."""
        from gcnii.tuning.worker import search

        if self.slurm is not None:
            from gcnii.tuning.slurm import search_by_slurm

            search_by_slurm(self, limits)
        elif self.jobs > 1:
            from gcnii.tuning.parallel import run_parallel

            for _ in run_parallel(partial(one_job, self, limits), range(self.jobs), self.jobs):
                spent.keep()
        else:
            hardware = (self.device, self.threads)
            search(self.question, study, limits, *hardware, lambda: spent.keep())


def one_job(tuner: Tuner, limits: Limits, job: int) -> int:
    """What one of several processes does."""
    from gcnii.tuning.proposals import quiet
    from gcnii.tuning.worker import search

    quiet()
    search(tuner.question, tuner.study(), limits, tuner.device, tuner.threads)
    return job


class Spent:
    """The time that a study has taken, over all commands: what a budget is held against.

    start  when this command would have begun, had it done all of it
    """

    def __init__(self, study: OptunaStudy):
        self.study = study
        self.start = time.time() - float(study.user_attrs.get("seconds", 0.0))

    @property
    def seconds(self) -> float:
        """Until now."""
        return time.time() - self.start

    def keep(self) -> None:
        """Write it down, for the command that goes on."""
        self.study.set_user_attr("seconds", round(self.seconds, 1))


def refuse_foreign(folder: Path) -> None:
    """Raise InputError if the folder holds what is not a study's."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if foreign := sorted(name for name in names if not OWN.fullmatch(name)):
        raise InputError(
            f"{folder} holds {some_of(foreign)}, which gcnii did not write; choose another --out"
        )
    if "run.json" in names and not {STUDY, "study.db"} & names:
        raise InputError(
            f"{folder} holds the bundle of a training, not of a study; choose another --out"
        )


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
