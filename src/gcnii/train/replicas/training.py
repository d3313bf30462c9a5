"""A training under way: groups of runs, one after the other, and what can be resumed."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from gcnii.errors import InputError, notice
from gcnii.files import Document, document_key
from gcnii.targets.objective import positive_class
from gcnii.train.batches import cutter
from gcnii.train.callbacks.report import Callback, EpochMeasures, EpochReport, StopTraining
from gcnii.train.checkpoint import Checkpoint, remove
from gcnii.train.hardware import device_name
from gcnii.train.replicas.group import ReplicaGroup
from gcnii.train.replicas.packing import Stack
from gcnii.train.results.result import Result
from gcnii.train.results.run import Run
from gcnii.train.task import Task

SAVE_EVERY = 20.0  # seconds between checkpoints, at least
SAVE_SHARE = 0.05  # of the time may go into writing them: those of a hundred replicas are large

Leave = Callable[[Sequence[Run]], Iterable[Run]]

log = logging.getLogger("gcnii.train.fit")


class Training:
    """Which runs are done, which are not, and what a checkpoint must hold to resume.

    leave  asked after some epochs with the runs in training; those that it returns end
    stop   what a callback raised to end the training
    """

    def __init__(
        self,
        task: Task,
        runs: list[Run],
        path: Path | None,
        callbacks: Sequence[Callback],
        leave: Leave | None = None,
    ):
        self.task, self.runs, self.path, self.callbacks = task, runs, path, callbacks
        self.leave, self.size, self.waiting = leave, 1, list[Run]()
        self.done: dict[tuple[int, int], Stack] = {}
        self.interrupted = False
        self.stop: StopTraining | None = None
        self.told: set[str] = set()  # warnings, each once
        self.start = self.saved = time.monotonic()
        self.pause = SAVE_EVERY
        identity: Document = {
            "model": task.plan.model,
            "settings": task.plan.settings,
            "graph": task.graph.fingerprint,
            "runs": [(run.seed, run.split) for run in runs if run.setting == 0],
            "cutter": cutter() if task.plan.recipe.batches == "clusters" else None,
        }
        if task.others:
            identity["others"] = [plan.settings for plan in task.others]
        self.identity = json.loads(json.dumps(identity))  # as it comes back from a file

    def groups(self, batch: int | None) -> Iterator[ReplicaGroup]:
        """The group that a checkpoint left unfinished, then groups of runs that have not begun."""
        resumed = self._resume()
        self._line_up(batch)
        yield from resumed
        while self.waiting:
            yield ReplicaGroup(self.task, self._next(self.size))

    def _line_up(self, batch: int | None) -> None:
        """Put the runs that have not begun in a line, and say how many are trained at once."""
        self.waiting = [run for run in self.runs if run.epochs == 0 and run.key not in self.done]
        size = batch or (1 if self.task.device.type == "cpu" else len(self.waiting))
        # Where a step does not see the full graph, each seed draws batches of its own.
        self.size = max(size, 1) if self.task.plan.recipe.batches == "full" else 1

    def _next(self, count: int) -> list[Run]:
        """The next runs in the line, which leave it."""
        runs, self.waiting = self.waiting[:count], self.waiting[count:]
        return runs

    def advance(self, group: ReplicaGroup) -> None:
        """Train a group for some epochs, save, warn and report."""
        runs, first = list(group.runs), [run.epochs for run in group.runs]
        group.advance()
        if self.leave:
            group.end([run for run in self.leave(group.runs) if not run.stopped])
        self._collect(group)
        shrunk = group.compact()
        # Seeds of one setting stop at about the same time, and begin together for speed.
        if shrunk and self.waiting and self.task.others:
            group.join(self._next(self.size - len(group.runs)))
        if self.path and time.monotonic() - self.saved > self.pause:
            self.save(group)
        if group.captured.refused:
            self._warn(f"trains without a CUDA graph: {group.captured.why_not}")
        try:
            # Runs that joined later are at earlier epochs.
            for epoch in sorted(set(first)):
                there = [run for run, begun in zip(runs, first, strict=True) if begun == epoch]
                self._report(there, epoch)
        except Exception:
            self.save(group)  # the mistake of a callback costs no epochs
            raise

    def _collect(self, group: ReplicaGroup) -> None:
        """Take the best weights of the runs that have stopped."""
        for i, run in enumerate(group.runs):
            if run.stopped and run.key not in self.done:
                self.done[run.key] = group.best_of(i)

    def _report(self, runs: Sequence[Run], first: int = 0) -> None:
        """Tell the callbacks of the epochs of these runs, from the first one on."""
        if not self.callbacks:
            return
        elsewhere = len(self.done.keys() - {run.key for run in runs})
        for epoch in range(first, max(run.epochs for run in runs)):
            there = [run for run in runs if epoch < len(run.curve)]
            done = elsewhere + sum(run.stopped and run.epochs <= epoch + 1 for run in runs)
            for setting in sorted({run.setting for run in there}):
                own = (run for run in there if run.setting == setting)
                measures = {run.seed: EpochMeasures(*run.curve[epoch]) for run in own}
                self._tell(EpochReport(epoch, done, len(self.runs), measures, setting))

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
        self.done |= {run.key: group.best_of(i) for i, run in enumerate(group.runs) if run.epochs}

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
        if self.task.shard and self.task.shard.world.rank:
            return  # all processes have the same weights, and rank 0 writes them
        active = [run.key for run in group.runs if run.epochs]
        stacks = group.stacks() if active else {}
        begun = {run.key for run in self.runs if run.epochs}
        order = sorted(begun & set(self.done) - set(active))
        if order:
            stacks["done"] = self._stacked(order)
        start = time.monotonic()
        try:
            Checkpoint(self.identity, self.runs, active, stacks).save(self.path)
            log.info("saved a checkpoint at epoch %d: %s", group.epoch, self.path)
        except OSError as error:
            self._warn(f"cannot save {self.path}: {error.strerror}; going on without it")
        self.saved = time.monotonic()
        self.pause = max(SAVE_EVERY, (self.saved - start) / SAVE_SHARE)

    def _resume(self) -> list[ReplicaGroup]:
        """The group that a checkpoint left unfinished, if there is one."""
        saved = self._saved()
        if saved is None:
            return []
        self.runs = saved.runs
        begun = {run.key for run in self.runs if run.epochs}
        for row, key in enumerate(sorted(begun - set(saved.active))):
            done = saved.stacks["done"]
            self.done[key] = {name: stack[row].cpu() for name, stack in done.items()}
        log.info("resumed %d of %d runs: %s", len(begun), len(self.runs), self.path)
        for run in self.runs:
            if run.key in self.done:
                self._report([run])
        if not saved.active:
            return []
        named = {run.key: run for run in self.runs}
        group = ReplicaGroup(self.task, [named[key] for key in saved.active])
        group.restore(saved.stacks)
        self._collect(group)
        self._report(group.runs)
        return [group]

    def _saved(self) -> Checkpoint | None:
        """The checkpoint, if there is one of this very training."""
        saved = self._read(self.path) if self.path else None
        if saved and not saved.is_of(self.identity):
            notice(f"{self.path} is of another training; starting over")
            return None
        return saved

    def _read(self, path: Path) -> Checkpoint | None:
        """The checkpoint; several processes must find the same one."""
        device, shard = self.task.device, self.task.shard
        if shard is None:
            return Checkpoint.load(path, device)
        with shard.world.first_alone():  # rank 0 may put another in the place of a damaged one
            saved = Checkpoint.load(path, device)
        runs = [asdict(run) for run in saved.runs] if saved else []
        if not shard.world.same(int(document_key({"runs": runs})[:15], 16)):  # fits an int64
            raise InputError(
                f"the processes find different checkpoints at {path}; choose a folder that all "
                "machines share"
            )
        return saved

    def _stacked(self, keys: Sequence[tuple[int, int]]) -> Stack:
        """The best weights of these runs, stacked."""
        names = self.done[keys[0]]
        return {name: torch.stack([self.done[key][name] for key in keys]) for name in names}

    def result(self) -> Result:
        """The runs that have weights, in the order of their seeds."""
        runs = [run for run in self.runs if run.key in self.done]
        if not runs:
            raise KeyboardInterrupt("stopped before the first epoch was done")
        task, weights = self.task, self._stacked([run.key for run in runs])
        about = (device_name(task.device), self.interrupted, task.scaling)
        total = (task.share.total,) if task.share else ()
        positive = positive_class(task.graph, task.plan.recipe.positive, *total)
        result = Result.of(task.graph, task.plans, runs, weights, *about)
        result = replace(result, positive=positive)
        result = result.answered(task) if task.shard else result
        if task.plan.recipe.label_threshold == "validation":
            result = result.with_thresholds(task)
        log.info("%r, %.1f s", result, time.monotonic() - self.start)
        return result
