"""fit: the one training loop; it stops by validation and returns to the best epoch."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import torch
from rich.console import Console

from gcnii.errors import InputError, is_one_of, notice
from gcnii.files import user_path
from gcnii.graph import Graph
from gcnii.nn.settings import whole, whole_seeds
from gcnii.results.result import Result
from gcnii.results.trained import Trained
from gcnii.targets.objective import positive_class
from gcnii.train.callbacks import Callback, EpochReport, training_bar
from gcnii.train.group import Leave, Training
from gcnii.train.hardware import (
    ROUNDED,
    can_keep_large_blocks,
    choose_device,
    device_name,
    is_gpu,
    large_blocks_kept,
    ordinary_autograd,
    threads_for,
    tuned_cpu,
)
from gcnii.train.plan import Plan, Preset, chosen_model, combines, make_plans, warn_about
from gcnii.train.stopping import make_runs
from gcnii.train.task import Task

if TYPE_CHECKING:
    from gcnii.train.distributed.world import World


Calibrate: TypeAlias = Literal["temperature", "none"]

LOG_EVERY = 10  # epochs between two lines of the log at level DEBUG

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Session:
    """Where a fit runs, how it is watched and where it is saved; what it trains is not in here.

    batch       number of runs trained at once; default: one on a CPU, all on a GPU
    checkpoint  the file from which it can be resumed
    callbacks   called with an EpochReport after each epoch
    leave       called after some epochs with the runs in training; those that it returns end
    verbose     whether to draw a bar, of this `title`; None: in terminals and notebooks
    world       the processes that share the nodes of the graph, each of which has the same session
    offline     whether the neighbours of a geometry may not be fetched
    """

    device: str = "auto"
    batch: int | None = None
    threads: int | None = None
    checkpoint: Path | str | None = None
    callbacks: Sequence[Callback] = ()
    leave: Leave | None = None
    verbose: bool | None = False
    title: str = ""
    world: World | None = None
    offline: bool = False


SILENT = Session()  # on the best device, without callbacks


def fit(
    graph: Graph,
    model: str | None = None,
    *,
    seeds: Sequence[int] | None = None,
    split: int | None = None,
    device: str = "auto",
    batch: int | None = None,
    threads: int | None = None,
    checkpoint: Path | str | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool | None = None,
    calibrate: Calibrate = "temperature",
    settings: Sequence[Mapping[str, Any]] | None = None,
    preset: Preset = "published",
    effort: str | None = None,
    budget: str | float | None = None,
    refit: str | None = None,
    **given: Any,
) -> Trained:
    """Train a model once per seed, and keep the weights of each run that were best on validation.

    Without a model, a graph that nobody published settings for gets a portfolio: several models,
    combined by weights that validation chooses.

    Parameters
    ----------
    graph : Graph
        The graph to train on.
    model : str, optional
        A name of `gcnii models`, or "auto" for the portfolio; default: auto on a graph without
        published settings, unless settings are given that one model has, else gcnii, or the model
        of the record.
    seeds : list of int, optional
        The seeds, one run each; default: one for each split of the graph.  Seed s trains on split s
        modulo the number of splits.
    split : int, optional
        Train every seed on this split instead.
    device : {"auto", "cpu", "cuda"}
        Where to train.
    batch : int, optional
        Number of runs trained at once; default: one on a CPU, all on a GPU.
    threads : int, optional
        Number of CPU threads; default: one for small graphs, else torch's own number.
    checkpoint : path, optional
        A file in which the state is saved regularly.  If it contains this very training, the
        training is resumed.
    callbacks : list of functions
        Called with an EpochReport after each epoch, such as CsvLog and TensorBoard; they may raise
        StopTraining.  A resumed training reports its earlier epochs first.  If a callback has a
        method `close`, it is called at the end.
    verbose : bool, optional
        Whether to show a progress bar and the result on stderr; default: in terminals and
        notebooks.
    calibrate : {"temperature", "none"}
        Whether to calibrate the probabilities of each run by a temperature, on its validation
        nodes.  Labels do not change.
    settings : list of dict, optional
        Several settings to try, each of which is trained with every seed.
    preset : {"published", "record"}
        Where settings that are not given come from: those published for the graph, or else the
        default; or the model and the settings that our searches found best for it.
    effort : {"quick", "standard", "best"}
        How much is trained for the portfolio; default: standard.
    budget : str or float, optional
        How long the portfolio may take in all, such as "5m", or seconds.
    refit : {"all"}, optional
        Train the members of the portfolio once more on every label, those of the test nodes among
        them, after they were weighed and measured; `test` is what was measured before.
    **given
        Settings of the model and of the Recipe, which override the preset and the defaults.

    Returns
    -------
    Result, or Ensemble of a portfolio

    Notes
    -----
    Numbers such as alpha, dropout and lr may be lists, of which the first values are one setting,
    the second another: alpha=[0.1, 0.2], dropout=[0.5, 0.7] are two settings.  `run.setting` is the
    number of a run's setting, and `result.at(setting)` its result.  A GPU trains all at once.

    Training runs are logged under the name `gcnii`, epochs at level DEBUG.  Ctrl-C, SIGTERM and
    SIGHUP stop after the epoch, and the result is `interrupted`.  Start processes by "spawn": in a
    process forked after a fit, torch has one thread.  Dropout masks depend on the order of the
    nodes.

    Examples
    --------
    >>> import gcnii
    >>> graph = gcnii.load("csbm", n=60)
    >>> result = gcnii.fit(graph, "gcnii", layers=4, epochs=5, seeds=range(2))
    >>> result.test.shape
    (2,)
    """
    watched = not isinstance(callbacks, Sequence) or len(callbacks) > 0
    one = watched or settings is not None or checkpoint is not None
    session = Session(
        device=device,
        batch=batch,
        threads=threads,
        checkpoint=checkpoint,
        callbacks=callbacks,
        verbose=verbose,
    )
    result: Trained
    if combines(graph, model, preset, given, one_training=one):
        how = {"effort": effort or "standard", "seeds": seeds, "split": split}
        result = _combined(graph, given, session, budget, refit, how)
    else:
        if effort is not None or budget is not None or refit is not None:
            raise InputError(
                "effort, budget and refit are for a portfolio; leave them out, or the model"
            )
        plans = make_plans(chosen_model(model, graph, preset), given, graph, settings, preset)
        warn_about(graph, plans[0], given)
        result = fit_plans(graph, plans, session, seeds=seeds, split=split, calibrate=calibrate)
        notice_limit(result)
    if draws(verbose):
        print(result, file=Console(stderr=True).file)
    return result


def _combined(
    graph: Graph,
    given: Mapping[str, Any],
    session: Session,
    budget: str | float | None,
    refit: str | None,
    how: Mapping[str, Any],
) -> Trained:
    """`fit` of a portfolio, refitted if that is asked for."""
    from gcnii.tuning.portfolio import prepared  # later rooms
    from gcnii.tuning.refit import budget_before, refitted

    before = budget_before(refit, budget)
    ensemble = prepared(graph, dict(given), session, budget=before, **how).run()
    return refitted(ensemble, graph, session) if refit and not ensemble.interrupted else ensemble


def notice_limit(result: Result) -> None:
    """Warn of runs on a user's own graph that ended at their limit while still improving."""
    recipes = [plan.recipe for plan in result.plans]
    short = [run for run in result.runs if recipes[run.setting].cut_short(run)]
    if short and result.trained_on is not None and not result.trained_on.catalog_name:
        run, more = short[0], f" (and {len(short) - 1} more)" if len(short) > 1 else ""
        notice(
            f"the run of seed {run.seed}{more} ended at its limit of {run.epochs} epochs, and was "
            f"best in epoch {run.best_epoch}, counted from 0; it may get better with more epochs"
        )


def fit_plans(
    graph: Graph,
    plans: Sequence[Plan],
    session: Session = SILENT,
    seeds: Sequence[int] | None = None,
    split: int | None = None,
    calibrate: Calibrate = "none",
) -> Result:
    """`fit` for plans that have been made already, all of one `batch_key`: each with each seed.

    calibrate  temperature for models that will predict; a search or a table needs none
    """
    if not is_one_of(calibrate, get_args(Calibrate)):
        raise InputError(f"calibrate must be temperature or none, got {calibrate!r}")
    runs = make_runs(graph, whole_seeds(seeds), whole("split", split, 0), len(plans))
    plan, device = plans[0], choose_device(session.device)
    plan.recipe.refuse_labels(graph, [run.split for run in runs])
    if (asked := plan.recipe.precision) in ROUNDED and not is_gpu(device):
        notice(f"precision {asked} is for GPUs; on a CPU this training computes in float32")
    epochs = max(plan.recipe.epochs for plan in plans)
    title = session.title or f"{plan.model} on {graph.name}"
    with ordinary_autograd(), _observers(session, title, epochs) as observers:
        about = (plan.model, graph.name, graph.n, graph.m, device, [run.seed for run in runs])
        log.info("training %s on %s (n %d, m %d), device %s, seeds %s", *about)
        task = replace(_task(graph, plan, device, session), others=tuple(plans[1:]))
        path = None if session.checkpoint in (None, "") else user_path(session.checkpoint)
        training = Training(task, runs, path, observers, session.leave)
        batch = whole("batch", session.batch, 1)
        keeps = large_blocks_kept(can_keep_large_blocks(task, batch or 1))
        with tuned_cpu(threads_for(task, session.threads, batch)), keeps:
            training.run(batch)
            return _result(training, calibrate)


def _task(graph: Graph, plan: Plan, device: torch.device, session: Session) -> Task:
    """The plan on the graph, or on this process's nodes of it."""
    if session.world is None and graph.times is not None:
        return Task.in_time(graph, plan, device, offline=session.offline)
    if session.world is None:
        return Task.of(graph, plan, device, offline=session.offline)
    from gcnii.train.distributed.shard import spread  # few trainings need it

    return spread(graph, plan, device, session.world)


def _result(training: Training, calibrate: Calibrate) -> Result:
    """What was trained, with thresholds and temperatures where they are wanted."""
    task, (runs, weights) = training.task, training.trained()
    about = (device_name(task.device), training.interrupted, task.scaling)
    total = (task.share.total,) if task.share else ()
    positive = positive_class(task.graph, task.plan.recipe.positive, *total)
    result = Result.of(task.graph, task.plans, runs, weights, *about)
    result = replace(result, positive=positive)
    tuned, calibrated = task.plan.recipe.has_threshold, calibrate != "none"
    if task.shard:
        result = result.gathered(task)
    elif tuned or calibrated:
        result = result.scored(task.graph, inputs=task)
    result = result.tuned(thresholds=tuned, temperatures=calibrated)
    log.info("%r, %.1f s", result, time.monotonic() - training.start)
    return result


@contextmanager
def _observers(session: Session, title: str, epochs: int) -> Iterator[list[Callback]]:
    """The callbacks, and a log and a bar if wanted; all are closed at the end."""
    callbacks = session.callbacks
    if not isinstance(callbacks, Sequence) or not all(map(callable, callbacks)):
        raise InputError(f"callbacks must be a list of functions, got {callbacks!r}")
    for callback in callbacks:
        _refuse_arity(callback)
    with ExitStack() as stack:
        for callback in callbacks:
            if close := getattr(callback, "close", None):
                stack.callback(close)
        observers = [*callbacks]
        if log.isEnabledFor(logging.DEBUG):
            observers.append(_log_epoch)
        if draws(session.verbose):
            observers.append(stack.enter_context(training_bar(title, epochs)))
        yield observers


def _refuse_arity(callback: Callback) -> None:
    """Raise InputError for a callback that cannot be called with a report, before any epoch."""
    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):  # of some that are not written in Python
        return
    try:
        signature.bind(None)
    except TypeError:
        raise InputError(
            "a callback is called with one argument, an EpochReport, got "
            f"{getattr(callback, '__name__', callback)}{signature}"
        ) from None


def _log_epoch(now: EpochReport) -> None:
    if now.epoch % LOG_EVERY == 0:
        numbers = (now.epoch, len(now.measures), now.train_loss, now.val_loss, now.val)
        log.debug("epoch %d of %d runs: train_loss %.4f, val_loss %.4f, val %.4f", *numbers)


def draws(verbose: bool | None) -> bool:
    """Whether to draw a bar; by default, if stderr is a terminal or a notebook."""
    if verbose is not None:
        return verbose
    console = Console(stderr=True)
    # A pipe stays free of control characters, even where $FORCE_COLOR makes rich write colours.
    return console.is_jupyter or (console.is_terminal and console.file.isatty())
