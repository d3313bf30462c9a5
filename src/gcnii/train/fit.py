"""fit: the one training loop; it stops by validation and returns to the best epoch."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from gcnii.errors import InputError, notice
from gcnii.graph import Graph
from gcnii.nn.settings import whole, whole_seeds
from gcnii.train.batches import cutter
from gcnii.train.callbacks.progress import training_bar
from gcnii.train.callbacks.report import Callback, EpochMeasures, EpochReport, StopTraining
from gcnii.train.checkpoint import Checkpoint, interruptible, remove
from gcnii.train.hardware import (
    choose_device,
    device_name,
    ordinary_autograd,
    threads_for,
    tuned_cpu,
)
from gcnii.train.plan import Plan, make_plan
from gcnii.train.replicas.group import ReplicaGroup
from gcnii.train.replicas.packing import Stack
from gcnii.train.results.result import Result
from gcnii.train.results.run import Run, make_runs
from gcnii.train.task import Task

SAVE_EVERY = 20.0  # seconds between checkpoints, at least
SAVE_SHARE = 0.05  # of the time may go into writing them: those of a hundred replicas are large

Leave = Callable[[Sequence[Run]], Iterable[Run]]

LOG_EVERY = 10  # epochs between two lines of the log at level DEBUG

log = logging.getLogger(__name__)


def fit(
    graph: Graph,
    model: str = "gcnii",
    *,
    seeds: Sequence[int] | None = None,
    split: int | None = None,
    device: str = "auto",
    batch: int | None = None,
    threads: int | None = None,
    checkpoint: Path | str | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool | None = None,
    **settings: Any,
) -> Result:
    """Train `model` once per seed and return, for each, the weights that were best on validation.

    seeds       one run each; default: one for each split of the graph.  Seed s trains on split
                s modulo the number of splits
    split       train every seed on this split instead
    device      auto, cpu or cuda
    batch       replicas trained at once; default: one on a CPU, whose caches are small, and all on
                a GPU
    threads     on a CPU; default: one for small work, else torch's number of threads
    checkpoint  a file to save the state to now and then; if it holds this very training, resume it
    callbacks   functions that are called with an EpochReport after each epoch, such as CsvLog and
                TensorBoard, and may raise StopTraining; a resumed training reports its earlier
                epochs first.  Where a callback has `close()`, that is called at the end
    verbose     whether to show a progress bar and print the result in a line, on stderr; default:
                in terminals and notebooks
    settings    of the model and of the Recipe; what is not given comes from the graph's preset,
                then from the defaults

    What happens is logged under the name `gcnii`, epochs at level DEBUG.  Ctrl-C, SIGTERM and
    SIGHUP stop after the epoch: the result is `interrupted`.  Start processes by "spawn": in one
    forked after a fit torch has one thread.  Dropout masks follow the order of the nodes.
    """
    plan = make_plan(model, settings, graph)
    result = fit_plan(
        graph,
        plan,
        seeds=seeds,
        split=split,
        device=device,
        batch=batch,
        threads=threads,
        checkpoint=checkpoint,
        callbacks=callbacks,
        verbose=verbose,
    )
    if _draws(verbose):
        print(result, file=Console(stderr=True).file)
    return result


def fit_plan(
    graph: Graph,
    plan: Plan,
    *,
    seeds: Sequence[int] | None = None,
    split: int | None = None,
    device: str = "auto",
    batch: int | None = None,
    threads: int | None = None,
    checkpoint: Path | str | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool | None = False,
    title: str = "",
) -> Result:
    """`fit` for a plan that has been made already; the bar, if wanted, has this title."""
    runs = make_runs(graph, whole_seeds(seeds), whole("split", split, 0))
    plan.recipe.refuse_labels(graph, [run.split for run in runs])
    where, batch = choose_device(device), whole("batch", batch, 1)
    title = title or f"{plan.model} on {graph.name}"
    watched = _observers(callbacks, verbose, title, plan.recipe.epochs)
    with ordinary_autograd(), watched as observers:
        about = (plan.model, graph.name, graph.n, graph.m, where, [run.seed for run in runs])
        log.info("training %s on %s (n %d, m %d), device %s, seeds %s", *about)
        task = Task.of(graph, plan, where)
        training = Training(task, runs, Path(checkpoint) if checkpoint else None, observers)
        with tuned_cpu(threads_for(task, threads)):
            _train(training, batch)
        return training.result()


def fit_plans(
    graph: Graph,
    plans: Sequence[Plan],
    *,
    seeds: Sequence[int] | None = None,
    split: int | None = None,
    device: str = "auto",
    batch: int | None = None,
    threads: int | None = None,
    leave: Leave | None = None,
) -> list[Run]:
    """Train each plan with each seed; the runs of plans[i] have `setting` i.

    leave  asked with the runs in training after some epochs; those that it returns end
    """
    runs: list[Run] = []
    for i, plan in enumerate(plans):
        result = fit_plan(
            graph, plan, seeds=seeds, split=split, device=device, batch=batch, threads=threads
        )
        runs += [replace(run, setting=i) for run in result.runs]
    return runs


def _train(training: Training, batch: int | None) -> None:
    """The loop: group after group, until all have stopped or someone stops them."""
    with interruptible() as interrupt:
        for group in training.groups(batch):
            while group.running and not interrupt and not training.stop:
                training.advance(group)
            if training.stop:
                training.finish(group)
                break
            if interrupt:
                training.interrupt(group)
                break


@contextmanager
def _observers(
    callbacks: Sequence[Callback], verbose: bool | None, title: str, epochs: int
) -> Iterator[list[Callback]]:
    """The callbacks, and a log and a bar if wanted; all are closed at the end."""
    if not isinstance(callbacks, Sequence) or not all(map(callable, callbacks)):
        raise InputError(f"callbacks must be a list of functions, got {callbacks!r}")
    with ExitStack() as stack:
        for callback in callbacks:
            if close := getattr(callback, "close", None):
                stack.callback(close)
        observers = [*callbacks]
        if log.isEnabledFor(logging.DEBUG):
            observers.append(_log_epoch)
        if _draws(verbose):
            observers.append(stack.enter_context(training_bar(title, epochs)))
        yield observers


def _log_epoch(now: EpochReport) -> None:
    if now.epoch % LOG_EVERY == 0:
        numbers = (now.epoch, len(now.measures), now.train_loss, now.val_loss, now.val)
        log.debug("epoch %d of %d runs: train_loss %.4f, val_loss %.4f, val %.4f", *numbers)


def _draws(verbose: bool | None) -> bool:
    """Whether to draw a bar; unless told, where stderr is a terminal or a notebook."""
    if verbose is not None:
        return verbose
    console = Console(stderr=True)
    # A pipe stays free of control characters, even where $FORCE_COLOR makes rich write colours.
    return console.is_jupyter or (console.is_terminal and console.file.isatty())


class Training:
    """Which runs are done, which are not, and what a checkpoint must hold to resume.

    stop  what a callback raised to end the training
    """

    def __init__(
        self, task: Task, runs: list[Run], path: Path | None, callbacks: Sequence[Callback]
    ):
        self.task, self.runs, self.path, self.callbacks = task, runs, path, callbacks
        self.done: dict[int, Stack] = {}
        self.interrupted = False
        self.stop: StopTraining | None = None
        self.told: set[str] = set()  # warnings, each once
        self.start = self.saved = time.monotonic()
        self.pause = SAVE_EVERY
        identity = {
            "model": task.plan.model,
            "settings": task.plan.settings,
            "graph": task.graph.fingerprint,
            "runs": [(run.seed, run.split) for run in runs],
            "cutter": cutter() if task.plan.recipe.batches == "clusters" else None,
        }
        self.identity = json.loads(json.dumps(identity))  # as it comes back from a file

    def groups(self, batch: int | None) -> Iterator[ReplicaGroup]:
        """The group that a checkpoint left unfinished, then groups of runs that have not begun."""
        yield from self._resume()
        waiting = [run for run in self.runs if run.epochs == 0]
        size = batch or (1 if self.task.device.type == "cpu" else len(waiting))
        if self.task.plan.recipe.batches != "full":
            size = 1  # each seed draws batches of its own
        for start in range(0, len(waiting), max(size, 1)):
            yield ReplicaGroup(self.task, waiting[start : start + size])

    def advance(self, group: ReplicaGroup) -> None:
        """Train a group for some epochs, save, warn and report."""
        first, runs = group.epoch, group.runs
        group.advance()
        self._collect(group)
        group.compact()
        if self.path and time.monotonic() - self.saved > self.pause:
            self.save(group)
        if group.captured.refused:
            self._warn(f"trains without a CUDA graph: {group.captured.why_not}")
        try:
            self._report(runs, first)
        except Exception:
            self.save(group)  # the mistake of a callback costs no epochs
            raise

    def _collect(self, group: ReplicaGroup) -> None:
        """Take the best weights of the runs that have stopped."""
        for i, run in enumerate(group.runs):
            if run.stopped and run.seed not in self.done:
                self.done[run.seed] = group.best_of(i)

    def _report(self, runs: Sequence[Run], first: int = 0) -> None:
        """Tell the callbacks of the epochs of these runs, from the first one on."""
        if not self.callbacks:
            return
        elsewhere = len(self.done.keys() - {run.seed for run in runs})
        for epoch in range(first, max(run.epochs for run in runs)):
            there = [run for run in runs if epoch < len(run.curve)]
            done = elsewhere + sum(run.stopped and run.epochs <= epoch + 1 for run in runs)
            measures = {run.seed: EpochMeasures(*run.curve[epoch]) for run in there}
            self._tell(EpochReport(epoch, done, len(self.runs), measures))

    def _tell(self, report: EpochReport) -> None:
        for callback in self.callbacks:
            try:
                callback(report)
            except StopTraining as stop:  # the other callbacks are told all the same
                if not self.stop:
                    log.info("stopped by a callback after epoch %d: %r", report.epoch, stop)
                self.stop = self.stop or stop

    def _warn(self, sentence: str) -> None:
        if sentence not in self.told:
            self.told.add(sentence)
            notice(sentence)

    def interrupt(self, group: ReplicaGroup) -> None:
        """Save, and take the best weights so far of the runs that have not stopped."""
        self.save(group)
        self.interrupted = len(self.done) < len(self.runs)
        self.done |= {run.seed: group.best_of(i) for i, run in enumerate(group.runs) if run.epochs}

    def finish(self, group: ReplicaGroup) -> None:
        """End the runs of a group as if their patience had run out; nothing is left to resume."""
        for run in group.runs:
            run.stopped = run.epochs > 0
        self._collect(group)
        if self.path:
            remove(self.path)

    def save(self, group: ReplicaGroup) -> None:
        """Write a checkpoint, if one is wanted; without room for it, training goes on."""
        if not self.path or not any(run.epochs for run in self.runs):
            return
        seeds = [run.seed for run in group.runs if run.epochs]
        stacks = group.stacks() if seeds else {}
        order = sorted(set(self.done) - set(seeds))
        if order:
            stacks["done"] = self._stacked(order)
        start = time.monotonic()
        try:
            Checkpoint(self.identity, self.runs, seeds, stacks).save(self.path)
            log.info("saved a checkpoint at epoch %d: %s", group.epoch, self.path)
        except OSError as error:
            self._warn(f"cannot save {self.path}: {error.strerror}; going on without it")
        self.saved = time.monotonic()
        self.pause = max(SAVE_EVERY, (self.saved - start) / SAVE_SHARE)

    def _resume(self) -> Iterator[ReplicaGroup]:
        saved = self._saved()
        if saved is None:
            return
        self.runs = saved.runs
        begun = {run.seed for run in self.runs if run.epochs}
        for row, seed in enumerate(sorted(begun - set(saved.active))):
            done = saved.stacks["done"]
            self.done[seed] = {name: stack[row].cpu() for name, stack in done.items()}
        log.info("resumed %d of %d runs: %s", len(begun), len(self.runs), self.path)
        for run in self.runs:
            if run.seed in self.done:
                self._report([run])
        if saved.active:
            group = ReplicaGroup(self.task, [run for run in self.runs if run.seed in saved.active])
            group.restore(saved.stacks)
            self._collect(group)
            self._report(group.runs)
            yield group

    def _saved(self) -> Checkpoint | None:
        """The checkpoint, if there is one of this very training."""
        saved = Checkpoint.load(self.path, self.task.device) if self.path else None
        if saved and not saved.is_of(self.identity):
            notice(f"{self.path} is of another training; starting over")
            return None
        return saved

    def _stacked(self, seeds: Sequence[int]) -> Stack:
        """The best weights of these seeds, stacked."""
        names = self.done[seeds[0]]
        return {name: torch.stack([self.done[seed][name] for seed in seeds]) for name in names}

    def result(self) -> Result:
        """The runs that have weights, in the order of their seeds."""
        runs = [run for run in self.runs if run.seed in self.done]
        if not runs:
            raise KeyboardInterrupt("stopped before the first epoch was done")
        task, weights = self.task, self._stacked([run.seed for run in runs])
        where = device_name(task.device)
        about = (where, self.interrupted, task.scaling)
        result = Result.of(task.graph, task.plan, runs, weights, *about)
        if task.plan.recipe.thresholds == "validation":
            result = result.with_thresholds(task)
        log.info("%r, %.1f s", result, time.monotonic() - self.start)
        return result
