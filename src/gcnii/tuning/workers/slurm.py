"""Workers as an array of Slurm jobs, by submitit."""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from gcnii.errors import GcniiError, InputError, notice

if TYPE_CHECKING:
    from gcnii.tuning.tune import Tuner
    from gcnii.tuning.workers.worker import Limits

# What every executor understands; other options are Slurm's own.
COMMON = ("timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "tasks_per_node")
CLUSTER = "cluster"
CLUSTERS = ("slurm", "local")  # local: processes of this machine in the place of Slurm's
LOOK = 1.0  # seconds between two looks at the jobs
PATIENCE = 60.0  # seconds in which jobs that are stopped may give their trials back
LONGEST = 24 * 60  # minutes of a job without a budget; submitit's own default is 5
MARGIN = 10  # minutes that a job may take longer than the search


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
    from gcnii.tuning.tune import one_job

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
