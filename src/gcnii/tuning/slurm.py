"""Workers as an array of Slurm jobs, by submitit."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

from gcnii.errors import GcniiError, InputError, notice

if TYPE_CHECKING:
    from gcnii.tuning.tune import Tuner
    from gcnii.tuning.worker import Limits

# What every executor understands; other options are Slurm's own.
COMMON = ("timeout_min", "mem_gb", "nodes", "cpus_per_task", "gpus_per_node", "tasks_per_node")
CLUSTER = "cluster"  # local: processes of this machine in the place of Slurm's
LOOK = 2.0  # seconds between two looks at the jobs


class JobFailed(GcniiError, RuntimeError):
    """All jobs of an array have failed."""


def search_by_slurm(tuner: Tuner, limits: Limits) -> None:
    """Start the workers, and wait until they have done all trials."""
    if find_spec("submitit") is None:
        raise InputError("--slurm needs submitit; install it: pip install 'gcnii[slurm]'")
    import submitit

    from gcnii.tuning.tune import one_job

    options = dict(tuner.slurm or {})
    cluster = options.pop(CLUSTER, "slurm")
    if tuner.url.startswith("sqlite") and cluster == "slurm":
        notice(
            "several machines share the SQLite file of this study; on a network file system its "
            "locks may fail: give a database, --storage postgresql+psycopg://…"
        )
    folder = tuner.folder / "slurm"
    try:
        executor = submitit.AutoExecutor(folder=str(folder), cluster=cluster)
        executor.update_parameters(**_parameters(options, cluster, tuner.jobs))
        jobs = executor.map_array(one_job, *_arguments(tuner, limits))
    except (RuntimeError, NameError, ValueError, TypeError) as error:
        raise InputError(f"Slurm cannot start the jobs: {error}; check --slurm") from None
    try:
        while not all(job.done() for job in jobs):
            time.sleep(LOOK)
    except BaseException:
        for job in jobs:
            job.cancel()
        raise
    failed = [job for job in jobs if job.exception() is not None]
    if len(failed) == len(jobs):
        raise JobFailed(f"all {len(jobs)} jobs failed: {failed[0].exception()}; see {folder}")
    if failed:
        notice(f"{len(failed)} of {len(jobs)} jobs failed; see {folder}")


def _arguments(tuner: Tuner, limits: Limits) -> tuple[list[Tuner], list[Limits], list[int]]:
    return [tuner] * tuner.jobs, [limits] * tuner.jobs, list(range(tuner.jobs))


def _parameters(options: dict[str, str], cluster: str, jobs: int) -> dict[str, object]:
    """As submitit names them: numbers as numbers, and Slurm's own with a prefix."""
    numbers = {key: int(value) if value.isdecimal() else value for key, value in options.items()}
    named: dict[str, object] = {
        key if key in COMMON else f"slurm_{key}": one for key, one in numbers.items()
    }
    return named | ({"slurm_array_parallelism": jobs} if cluster == "slurm" else {})
