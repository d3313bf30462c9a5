"""fit: the one training loop; it stops by validation and returns to the best epoch."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import torch

from gcnii.errors import GraphError, InputError
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.train.batches import cutter
from gcnii.train.checkpoint import Checkpoint, interruptible
from gcnii.train.hardware import choose_device, device_name, threads_for, tuned_cpu
from gcnii.train.plan import Plan, make_plan
from gcnii.train.recipe import in_force
from gcnii.train.replicas.group import ReplicaGroup
from gcnii.train.replicas.packing import Stack
from gcnii.train.result import Result
from gcnii.train.run import Measures, Run
from gcnii.train.task import Task

SAVE_EVERY = 20.0  # seconds between checkpoints, at least
SAVE_SHARE = 0.05  # of the time may go into writing them: those of a hundred replicas are large


class EpochReport(NamedTuple):
    """What `on_epoch` is told: how far the fit is, and means over the replicas now in training."""

    epoch: int
    runs_done: int
    runs_now: int
    runs: int
    train_loss: float
    val_loss: float
    val: float


OnEpoch = Callable[[EpochReport], None]


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
    on_epoch: OnEpoch | None = None,
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
    on_epoch    called with an EpochReport after each epoch
    settings    of the model and of the Recipe; what is not given comes from the graph's preset,
                then from the defaults
    """
    plan = make_plan(model, settings, graph)
    return fit_plan(
        graph,
        plan,
        seeds=seeds,
        split=split,
        device=device,
        batch=batch,
        threads=threads,
        checkpoint=checkpoint,
        on_epoch=on_epoch,
    )


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
    on_epoch: OnEpoch | None = None,
) -> Result:
    """`fit` for a plan that has been made already."""
    task = Task.of(graph, plan, choose_device(device))
    runs = _make_runs(graph, seeds, split)
    training = Training(task, runs, Path(checkpoint) if checkpoint else None)
    with tuned_cpu(threads_for(task, threads)), interruptible() as interrupt:
        for group in training.groups(batch):
            while group.running and not interrupt:
                training.advance(group, on_epoch)
            if interrupt:
                training.interrupt(group)
                break
    return training.result()


class Training:
    """Which runs are done, which are not, and what a checkpoint must hold to resume."""

    def __init__(self, task: Task, runs: list[Run], path: Path | None):
        self.task, self.runs, self.path = task, runs, path
        self.done: dict[int, Stack] = {}
        self.interrupted = False
        self.told: set[str] = set()  # warnings, each once
        self.saved, self.pause = time.monotonic(), SAVE_EVERY
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

    def advance(self, group: ReplicaGroup, on_epoch: OnEpoch | None) -> None:
        """Train a group for some epochs, save, warn and report."""
        first, epochs = group.epoch, group.advance()
        self._collect(group)
        group.compact()
        if self.path and time.monotonic() - self.saved > self.pause:
            self.save(group)
        if group.captured.refused:
            self._warn(f"trains without a CUDA graph: {group.captured.why_not}")
        if on_epoch:
            running = [*map(len, epochs[1:]), group.running]  # after each of the epochs
            for i, measures in enumerate(epochs):
                done = len(self.done) + group.running - running[i]
                on_epoch(self._report(first + i, done, measures))

    def _collect(self, group: ReplicaGroup) -> None:
        """Take the best weights of the runs that have stopped."""
        for i, run in enumerate(group.runs):
            if run.stopped and run.seed not in self.done:
                self.done[run.seed] = group.best_of(i)

    def _report(self, epoch: int, done: int, measures: list[Measures]) -> EpochReport:
        names = ("train_loss", "val_loss", "val")
        means = (fmean(getattr(now, name) for now in measures) for name in names)
        return EpochReport(epoch, done, len(measures), len(self.runs), *means)

    def _warn(self, sentence: str) -> None:
        if sentence not in self.told:
            self.told.add(sentence)
            warnings.warn(sentence, stacklevel=4)

    def interrupt(self, group: ReplicaGroup) -> None:
        """Save, and take the best weights so far of the runs that have not stopped."""
        self.save(group)
        self.interrupted = len(self.done) < len(self.runs)
        self.done |= {run.seed: group.best_of(i) for i, run in enumerate(group.runs) if run.epochs}

    def save(self, group: ReplicaGroup) -> None:
        """Write a checkpoint, if one is wanted."""
        if not self.path or not any(run.epochs for run in self.runs):
            return
        seeds = [run.seed for run in group.runs if run.epochs]
        stacks = group.stacks() if seeds else {}
        order = sorted(set(self.done) - set(seeds))
        if order:
            stacks["done"] = self._stacked(order)
        start = time.monotonic()
        Checkpoint(self.identity, self.runs, seeds, stacks).save(self.path)
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
        if saved.active:
            group = ReplicaGroup(self.task, [run for run in self.runs if run.seed in saved.active])
            group.restore(saved.stacks)
            self._collect(group)
            yield group

    def _saved(self) -> Checkpoint | None:
        """The checkpoint, if there is one of this very training."""
        if not self.path or not self.path.exists():
            return None
        saved = Checkpoint.load(self.path, self.task.device)
        if saved and _deciding(saved.identity) != _deciding(self.identity):
            warnings.warn(f"{self.path} is of another training; starting over", stacklevel=5)
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
        return Result.of(task.graph, task.plan, runs, weights, *about)


def _deciding(identity: Document) -> Document:
    """What no run can differ in: a checkpoint from before a setting existed is still of its run."""
    return identity | {"settings": in_force(identity["settings"])}


def _make_runs(graph: Graph, seeds: Sequence[int] | None, split: int | None) -> list[Run]:
    if not graph.labelled.any():
        raise GraphError(f"no node of {graph.name} has a label; label some nodes")
    if graph.k == 1 and not graph.multilabel:
        raise GraphError(
            f"all labels of {graph.name} are the same; a classifier needs two classes or more"
        )
    if not graph.splits:
        raise GraphError(f"{graph.name} has no split; give it train, val and test masks")
    splits = len(graph.splits)
    if split is not None and not 0 <= split < splits:
        raise GraphError(f"{graph.name} has splits 0 to {splits - 1}, got split {split}")
    seeds = list(range(splits) if seeds is None else seeds)
    if not seeds or len(set(seeds)) != len(seeds) or min(seeds) < 0:
        raise InputError(f"seeds must be one or more different integers ≥ 0, got {seeds}")
    return [Run(seed, seed % splits if split is None else split) for seed in seeds]
