"""tune: find the settings that are best for a graph, by validation.

Nothing here loads Optuna until it is known to be installed.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gcnii.errors import InputError
from gcnii.graph import Graph
from gcnii.nn.settings import whole
from gcnii.results.fit import Session
from gcnii.targets.scores import Metric
from gcnii.tuning.portfolio import seconds_of
from gcnii.tuning.question import Question

if TYPE_CHECKING:
    from gcnii.tuning.closing import Tuned

BUDGET = "10m"


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

    Test labels are not read until the search is over.  Of several splits, each chooses by its own
    validation nodes alone (nested selection).

    Parameters
    ----------
    graph : Graph
        The graph.
    budget : str or float, optional
        The time limit of the whole call: "90s", "10m", "2h", or seconds; default: 10m, or none if
        `trials` is given.
    trials : int, optional
        The number of settings to try, including what `fit` would train, which is always tried.
    models : list of str, optional
        Names from `gcnii models`; mlp and gcn are always included, as baselines.
    seeds : int, optional
        Runs per setting; default: 3, or more if there are few labels; at least one on each split.
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
        `best.result` is an Ensemble of the best on a graph of your own, or with several splits;
        else, where models are named or settings were published for the graph, it is the best one,
        trained again with new seeds.  `best.model` and `best.settings` are the best single setting,
        and `best.trials` all settings that were tried, the best first.

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
    from gcnii.tuning.study import Tuner

    limits = limits_of(budget, trials)
    with ExitStack() as stack:
        writes = out is not None
        if not writes and (jobs != 1 or slurm is not None):
            out = stack.enter_context(tempfile.TemporaryDirectory())
        question = Question.of(graph, models, seeds, metric, fixed)
        tuner = Tuner.of(
            question,
            storage=storage,
            jobs=jobs,
            slurm=slurm,
            out=out,
            session=Session(device=device, threads=threads),
            writes=writes,
        )
        return tuner.run(*limits, verbose=verbose, began=began)


def limits_of(budget: str | float | None, trials: int | None) -> tuple[float | None, int | None]:
    """Seconds and number of trials; one of them is given, or the default budget is."""
    if whole("trials", trials, 1) == 1:
        raise InputError("trials must be at least 2, the default and a baseline, got 1")
    if budget is None and trials is not None:
        return None, trials
    instead = "; to count settings instead, give trials"
    return seconds_of(BUDGET if budget is None else budget, instead), trials


def require_optuna(command: str = "tune") -> None:
    """Raise InputError if Optuna is not installed."""
    if find_spec("optuna") is None:
        raise InputError(f"{command} needs Optuna; install it: pip install 'gcnii[tune]'")
    from gcnii.tuning.proposals import quiet

    quiet()
