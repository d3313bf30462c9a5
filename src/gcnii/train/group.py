"""An epoch as one CUDA graph: hundreds of small kernels launched at once, not one by one.

Groups of replicas, trained epoch by epoch, each until its own patience ends.  At Ctrl-C, SIGTERM or
SIGHUP a training ends after its epoch, and nothing is lost.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from functools import partial
from math import inf, nan
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from gcnii.errors import GcniiError, InputError, notice
from gcnii.files import document_key
from gcnii.kernels import Beside
from gcnii.targets.objective import Objective
from gcnii.train.batches import Batch
from gcnii.train.callbacks import Callback, EpochMeasures, EpochReport, StopTraining
from gcnii.train.checkpoint import Checkpoint, remove, training_identity
from gcnii.train.hardware import arithmetic, epochs_per_sync, held_how, is_gpu
from gcnii.train.replicas import MOMENTS, Replicas, Stack
from gcnii.train.stopping import Measures, Run, StoppingState
from gcnii.train.task import Task

Work = Callable[[], object]
Pool: TypeAlias = Any  # torch's handle has no public type
FILLING = 1 << 25  # numbers of a layer's state that keep a GPU busy for 0.1 ms
WARM = 3  # epochs run kernel by kernel first: torch allocates, Triton compiles, caches fill


class CapturedEpoch:
    """Calls an epoch; after a few times, as a CUDA graph.

    The epoch may change tensors in place only.  Capturing computes nothing, so nothing in it may
    depend on values that the host has read.

    why_not  a sentence on why there is no graph, if there is none
    refused  whether that was found out by trying
    """

    def __init__(
        self,
        device: torch.device,
        why_not: str = "",
        stream: torch.cuda.Stream | None = None,
        pool: Pool | None = None,
    ):
        self.device = device
        self.capture = CAPTURES.get(device.type)
        self.why_not = why_not or ("" if self.capture else f"there are none on a {device.type}")
        self.refused = False
        self.stream = torch.cuda.Stream(device) if is_gpu(device) and not stream else stream
        self.pool = torch.cuda.graph_pool_handle() if is_gpu(device) and not pool else pool
        self.warm = 0
        self.replay: Work | None = None

    def another(self) -> CapturedEpoch:
        """For another epoch, in the same memory: graphs that take turns can share it."""
        return CapturedEpoch(self.device, self.why_not, self.stream, self.pool)

    def __call__(self, epoch: Work) -> None:
        """One epoch; the stream of the caller waits for it, the host does not."""
        with _aside(self.stream):
            if not self.replay and not self.why_not and self.warm == WARM:
                self._try(epoch)
            if self.replay:
                self.replay()
            else:
                epoch()
                self.warm += 1

    def _try(self, epoch: Work) -> None:
        assert self.capture
        try:
            self.replay = self.capture(epoch, self.pool)
        except torch.OutOfMemoryError:
            raise  # without a graph it would not fit either; the caller may try fewer replicas
        except RuntimeError as error:
            # The error that broke the capture, not the one that ending it raised in turn.
            first = error.__context__ if isinstance(error.__context__, RuntimeError) else error
            self.refused, self.why_not = True, str(first).splitlines()[0]


@contextmanager
def _aside(stream: torch.cuda.Stream | None) -> Iterator[None]:
    """Use this stream: the default one cannot be captured, and warm-up belongs on it too."""
    if stream is None:
        yield
        return
    before = torch.cuda.current_stream(stream.device)
    stream.wait_stream(before)
    with torch.cuda.stream(stream):
        yield
    before.wait_stream(stream)


def cuda_graph(epoch: Work, pool: Pool | None) -> Work:
    """Capture on the current stream, into memory of this pool."""
    graph = torch.cuda.CUDAGraph()
    # Other threads use streams of their own meanwhile, and do not break the capture.  What collects
    # an earlier training might: memory that was pinned for it waits for the device.
    stream = torch.cuda.current_stream()
    with _without_collecting(), torch.cuda.graph(graph, pool, stream, "thread_local"):
        epoch()
    return graph.replay


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Put Python's garbage collection off."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


CAPTURES: dict[str, Callable[[Work, Pool | None], Work]] = {"cuda": cuda_graph}


# Seconds after which the host reads what the device measured, at least: Ctrl-C waits for it.
PAUSE = 0.15


class Diverged(GcniiError, FloatingPointError):
    """A loss became infinite or not a number, in the runs of `lost`."""

    def __init__(self, words: str, lost: Sequence[Run] = ()):
        super().__init__(words)
        self.lost = lost


class View(NamedTuple):
    """What a batch is graded by.

    size    (r,) the number of its training nodes
    trains  whether there are any
    """

    objective: Objective
    size: Tensor
    trains: bool


class ReplicaGroup:
    """Replicas trained together; those that have stopped stay until they are half of the group.

    runs   runs[i] is the record of replica i
    epoch  epochs done; replicas that have stopped are behind
    """

    def __init__(self, task: Task, runs: list[Run]):
        self.task, self.recipe, self.runs = task, task.plan.recipe, list(runs)
        self.epoch = max(run.epochs for run in runs)
        graph, device, splits = task.graph, task.device, [run.split for run in runs]
        plans = [task.plans[run.setting] for run in runs]
        self.replicas = Replicas(plans, graph.d, graph.k, [run.seed for run in runs], device)
        offloads = self._holds_less()
        self.objective = self._objective()
        self.batches, self.evaluated = task.batches(runs[0].split), task.evaluation(splits)
        self.validated = task.validation(splits)
        self.views: WeakKeyDictionary[Batch, View] = WeakKeyDictionary()
        # Several processes must read after the same epochs, however fast each of them is.
        self.most = 1 if task.shard else epochs_per_sync(device)
        recipes = [plan.recipe for plan in plans]
        self.stopping = StoppingState(recipes, runs, device, self.most)
        # The sum of the losses of training nodes, and their number.
        self.losses = torch.zeros(2, len(runs), dtype=torch.float64, device=device)
        self.step = torch.zeros((), dtype=torch.int32, device=device)
        # Where states go to the host, launches take no time; and a graph's memory would be its own.
        why_not = "activations go to the host" if offloads else ""
        self.captured = CapturedEpoch(device, "several processes train" if task.shard else why_not)
        self._capture_again()
        self.overlaps = self._may_overlap()
        self.steps: WeakKeyDictionary[Batch, CapturedEpoch] = WeakKeyDictionary()
        self.transient = CapturedEpoch(device, "each epoch draws batches of its own")
        self.pace = float("inf")  # seconds per epoch

    def _objective(self) -> Objective:
        """What the runs are graded by."""
        recipe, splits = self.recipe, [run.split for run in self.runs]
        about = (self.task.graph, splits, self.task.device)
        weigh, share = recipe.class_weight, self.task.share
        by = recipe.scored_by, weigh, share
        own = recipe.positive, recipe.focal, recipe.loss
        return Objective.of(*about, *by, *own)

    def _holds_less(self) -> bool:
        """Recompute or offload activations if memory is short; return whether they are offloaded.

        What one process needs, all do: their segments must be the same.
        """
        how, shard = held_how(self.task, len(self.runs)), self.task.shard
        recomputes, offloads, model = how != "keep", how == "offload", self.replicas.model
        if shard:
            recomputes, offloads = shard.world.any(recomputes), shard.world.any(offloads)
        model.recomputes = recomputes
        if offloads:
            from gcnii.nn.engine.recompute import Stash  # few trainings need it

            model.stash = Stash(self.task.device)
        return offloads

    def _may_overlap(self) -> bool:
        """Whether an evaluation may run beside the next step.

        It must not need the step's own scores; and one that fills the GPU would only take memory.
        """
        plan, n = self.task.plan, self.task.X.shape[0]
        numbers = len(self.runs) * n * plan.model_settings.get("width", 1)
        apart = plan.recipe.batches != "full" or plan.recipe.rule.noisy
        return not (apart or self.captured.why_not) and numbers <= FILLING

    def _capture_again(self) -> None:
        """The old graphs hold the old tensors."""
        self.captured = self.captured.another()
        self.first, self.last = self.captured.another(), self.captured.another()

    @property
    def refused(self) -> str:
        """Why an epoch could not be captured; empty unless that was tried."""
        tried = (self.captured, self.first, self.last)
        return next((one.why_not for one in tried if one.refused), "")

    @property
    def running(self) -> int:
        """The number of replicas that have not stopped."""
        return sum(not run.stopped for run in self.runs)

    def advance(self) -> None:
        """Train for some epochs, and bring the runs' records up to date."""
        start, epochs = time.perf_counter(), self._epochs_to_sync()
        if self.overlaps:
            with arithmetic(self.recipe, self.task.device):
                self.first(self._step)
                for _ in range(epochs - 1):
                    self.captured(self._evaluate_beside_step)
                self.last(self._evaluate)
            self.epoch += epochs
        else:
            for _ in range(epochs):
                self._one_epoch()
                self.epoch += 1
        measures, standings = self.stopping.fetch(epochs)
        self.pace = (time.perf_counter() - start) / epochs
        pairs = list(zip(self.runs, standings, strict=True))
        taken = [int(now.epochs) - run.epochs for run, now in pairs]
        lost = self._lost(measures, taken)
        for i, each in enumerate(measures):
            there = self._took_part(each, taken, i)
            for run, measured in there:
                run.curve.append((measured.train_loss, measured.val_loss, measured.val))
                run.seconds += self.pace / len(there)
        for run, now in pairs:
            run.stand(now)
        self._give_up(lost)

    def _epochs_to_sync(self) -> int:
        # Every multiple of `most` is read: there the group may shrink, at the same epochs however
        # fast it is.
        recipes = (self.task.plans[run.setting].recipe for run in self.runs)
        running = zip(recipes, self.runs, strict=True)
        most = (recipe.allowed(run.epochs) - run.epochs for recipe, run in running)
        left = min(max(most), self.most - self.epoch % self.most)
        return max(1, min(left, int(PAUSE / self.pace)))

    def _took_part(
        self, measures: list[Measures], taken: list[int], i: int
    ) -> list[tuple[Run, Measures]]:
        """The runs that were trained in the i-th of some epochs, and what it measured."""
        return [
            (run, now)
            for run, now, epochs in zip(self.runs, measures, taken, strict=True)
            if i < epochs
        ]

    def _one_epoch(self) -> None:
        if self.recipe.batches == "full":
            with arithmetic(self.recipe, self.task.device):
                self.captured(self._epoch)
        else:
            self._epoch_in_batches()

    def _epoch_in_batches(self) -> None:
        """A step for each batch, then an evaluation: a CUDA graph each, if they can be captured."""
        for step, batch in enumerate(self.batches.epoch(self.runs[0].seed, self.epoch)):
            if self._view(batch).trains:
                self.step.fill_(step)
                with arithmetic(self.recipe, self.task.device):
                    self._captured_step(batch)(partial(self._step_on, batch, self.step))
        self.stopping.clock.add_(1)
        with arithmetic(self.recipe, self.task.device):
            self.captured(self._evaluate)

    def _captured_step(self, batch: Batch) -> CapturedEpoch:
        """A CUDA graph for each batch that returns in every epoch; none for the others."""
        if not self.batches.static:
            return self.transient
        if batch not in self.steps:
            self.steps[batch] = self.captured.another()
        return self.steps[batch]

    # What follows may be captured: nothing in it may wait for the device.

    def _epoch(self) -> None:
        """A step on the full graph, then an evaluation."""
        self._evaluate(self._step())

    def _step(self, beside: Work | None = None) -> Tensor:
        """A step on the full graph; its scores."""
        (batch,) = self.batches.epoch(self.runs[0].seed, self.epoch)
        scores = self._step_on(batch, 0, beside)
        self.stopping.clock.add_(1)
        return scores

    def _evaluate_beside_step(self) -> None:
        """What an evaluation and then a step do: both begin with the same weights.

        A GPU does them at once.  The step's own forward and backward pass changes nothing that the
        evaluation reads.
        """
        self._step(self._evaluate)

    def _step_on(self, batch: Batch, step: Tensor | int = 0, beside: Work | None = None) -> Tensor:
        """A step on this batch; its scores.

        beside  to be done before weights change, on a stream of its own
        """
        objective, size, _ = self._view(batch)
        with Beside(self.task.device) as branch:
            if beside:
                branch.launch(beside)
            scores, loss = self.replicas.differentiate(batch, objective, self.stopping.clock, step)
        self.replicas.descend(self.stopping.scales)
        self.losses[0].add_(loss * size)
        self.losses[1].add_(size)
        return scores

    def _evaluate(self, noisy: Tensor | None = None) -> None:
        """Measure what was learnt in this epoch, and keep the weights that are the best so far."""
        self.replicas.keep(self.stopping.update(self._measure(noisy)))
        self.losses.zero_()

    def _view(self, batch: Batch) -> View:
        """Made once for each batch, because counting its training nodes waits for the device."""
        if batch not in self.views:
            objective = self.objective.at(batch.nodes)
            size = objective.count("train").double()
            # Neighbours are sampled of training nodes, so that nothing is to be counted.
            sampled = batch.adjacency is None
            trains = sampled or batch.nodes is None or bool(size.all())
            self.views[batch] = View(objective, size, trains)
        return self.views[batch]

    @torch.no_grad()
    def _measure(self, noisy: Tensor | None) -> Tensor:
        """(measures, r) float64, as in `Measures`; `noisy` are the training pass's scores."""
        objective = self._view(self.evaluated).objective
        scores = self.replicas.scores(self.evaluated)
        monitored = noisy if noisy is not None and self.recipe.rule.noisy else scores
        total, count = self.losses
        test = objective.score(scores, "test")
        if self.validated:
            objective = self._view(self.validated).objective
            monitored = scores = self.replicas.scores(self.validated)
        val_loss = objective.loss(monitored, "val")
        val = objective.score(scores, "val")
        return torch.stack([row.double() for row in (total / count, val_loss, val, test)])

    def _lost(self, measures: list[list[Measures]], taken: list[int]) -> list[Run]:
        """The runs that have diverged; `taken` is shortened to their epochs before.

        Diverged is raised where all runs have the same settings: the others are then no better.
        """
        for i, each in enumerate(measures):
            lost = [run for run, now in self._took_part(each, taken, i) if not now.finite]
            if lost and len(self.task.plans) == 1:
                self._refuse(lost, self.epoch - len(measures) + i + 1, self.pace * (i + 1))
        lost = []
        for j, run in enumerate(self.runs):
            finite = [each[j].finite for each in measures[: taken[j]]]
            if not all(finite):
                taken[j] = finite.index(False)
                lost.append(run)
        return lost

    def _refuse(self, lost: list[Run], epochs: int, seconds: float) -> None:
        for run in lost:
            run.epochs = epochs
            run.seconds += seconds / len(self.runs)
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        raise Diverged(
            f"the loss of seed {lost[0].seed}{more} was infinite or not a number in epoch "
            f"{lost[0].epochs}; try a smaller lr (now {self.recipe.lr:g}), or look for "
            "extreme values in the features",
            lost,
        )

    def _give_up(self, lost: Sequence[Run]) -> None:
        """End runs that have diverged: they lose against all others."""
        for run in lost:
            run.val, run.test, run.val_loss = nan, nan, inf
            run.best_epoch, run.epochs = -1, len(run.curve)
        self.end(lost)

    def end(self, runs: Sequence[Run]) -> None:
        """Stop these runs now, as if their patience had run out."""
        for run in runs:
            run.stopped = True
        if rows := [i for i, run in enumerate(self.runs) if run.stopped]:
            self.stopping.stop(rows)

    def compact(self) -> bool:
        """Drop the replicas that have stopped, once they are half of the group; whether it did.

        Sums over a smaller group may round differently, so the clock must not decide when.
        """
        stay = [i for i, run in enumerate(self.runs) if not run.stopped]
        if not stay or 2 * len(stay) > len(self.runs) or self.epoch % self.most:
            return False
        rows = torch.tensor(stay, device=self.task.device)
        self._capture_again()
        self.replicas.narrow(rows)
        self.objective = self.objective.narrow(rows)
        self.views.clear()
        self.stopping.narrow(rows)
        self.losses = self.losses[:, rows].contiguous()
        self.runs = [self.runs[i] for i in stay]
        return True

    def join(self, runs: list[Run]) -> None:
        """Train these runs with the group from now on, in the place of those that have left."""
        plans = [self.task.plans[run.setting] for run in runs]
        self._capture_again()
        self.replicas.join(plans, [run.seed for run in runs])
        self.runs += runs
        device, recipes = self.task.device, [plan.recipe for plan in plans]
        self.stopping.join(StoppingState(recipes, runs, device, self.most))
        self.objective = self._objective()
        self.views.clear()
        self.losses = self.losses.new_zeros(2, len(self.runs))

    def best_of(self, i: int) -> Stack:
        """The best weights so far of replica i, on the CPU."""
        return {name: weight[i].cpu().clone() for name, weight in self.replicas.best.items()}

    def stacks(self) -> dict[str, Stack]:
        """What a checkpoint must keep beside the runs' records."""
        replicas = self.replicas
        stacks = {"now": replicas.weights, **replicas.moments, "best": replicas.best}
        copies = {
            role: {name: weight.clone() for name, weight in stack.items()}
            for role, stack in stacks.items()
        }
        adam = {"steps": torch.tensor(replicas.adam.steps)}
        return copies | {"adam": adam, "batches": self.batches.state()}

    def restore(self, stacks: dict[str, Stack]) -> None:
        """Continue from what `stacks` returned."""
        moments, steps = [stacks[name] for name in MOMENTS], stacks["adam"]["steps"].tolist()
        # Version 0.1 wrote one number for all.
        every = steps if len(steps) == len(self.runs) else steps * len(self.runs)
        self.replicas.load(stacks["now"], stacks["best"], moments, every)
        self.batches.restore(stacks.get("batches", {}))


STOPPED_BY = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Interrupt:
    """Becomes true at the first signal to stop; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.asked = False

    def __bool__(self) -> bool:
        return self.asked

    def ask(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signals."""
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not self.asked:
            self.asked = True
            self._acknowledge(number)

    def _acknowledge(self, number: int) -> None:
        if multiprocessing.parent_process() or not sys.stderr:
            return  # the process that started this one got the signal, too
        again = "; press Ctrl-C again to stop now" if number == signal.SIGINT else ""
        # A signal may come while the same stream is being written to, which then refuses.
        with suppress(RuntimeError, OSError, ValueError):
            print(f"gcnii: stopping after this epoch{again}", file=sys.stderr, flush=True)


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Let the first Ctrl-C, SIGTERM or SIGHUP ask to stop instead of ending the process.

    Nothing changes in other threads, which get no signals, for a signal that is ignored, as SIGHUP
    is under nohup, and for a SIGTERM or SIGHUP for which the program has a handler of its own.
    Nested contexts share one Interrupt, which then knows of a signal that came in the last epoch of
    a training.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    if outer := _outer():
        yield outer
        return
    with handled_by(interrupt.ask, filter(_is_ours, STOPPED_BY)):
        yield interrupt


@contextmanager
def handled_by(handler: Callable[..., object], numbers: Iterable[int]) -> Iterator[None]:
    """Let this handle these signals in this context."""
    earlier = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in earlier.items():
            signal.signal(number, before)


def _outer() -> Interrupt | None:
    """The Interrupt that handles the signals already, if there is one."""
    asked = (getattr(signal.getsignal(number), "__self__", None) for number in STOPPED_BY)
    return next((one for one in asked if isinstance(one, Interrupt)), None)


def _is_ours(number: int) -> bool:
    """Whether training may handle a signal."""
    handler = signal.getsignal(number)
    if number == signal.SIGINT:
        return handler not in (signal.SIG_IGN, None)  # None: set by another language
    return handler is signal.SIG_DFL


SAVE_EVERY = 20.0  # seconds between checkpoints, at least
SAVE_SHARE = 0.05  # of the time may go into writing them: those of a hundred replicas are large

Leave = Callable[[Sequence[Run]], Iterable[Run]]

log = logging.getLogger("gcnii.results.fit")


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
        self.settings = [plan.settings for plan in task.plans]
        self.interrupted = False
        self.stop: StopTraining | None = None
        self.told: set[str] = set()  # warnings, each once
        self.start = self.saved = time.monotonic()
        self.pause = SAVE_EVERY
        self.identity = training_identity(task.graph, task.plans, runs) if path else {}

    def groups(self, batch: int | None) -> Iterator[ReplicaGroup]:
        """The group that a checkpoint left unfinished, then groups of runs that have not begun."""
        resumed = self._resume()
        self._line_up(batch)
        yield from resumed
        while self.waiting:
            yield ReplicaGroup(self.task, self._next(self.size))

    def _line_up(self, batch: int | None) -> None:
        """Queue the runs that have not begun, and return how many are trained at once."""
        self.waiting = [run for run in self.runs if run.epochs == 0 and run.key not in self.done]
        size = batch or (len(self.waiting) if is_gpu(self.task.device) else 1)
        # Where a step does not see the full graph, each seed draws batches of its own.
        self.size = max(size, 1) if self.task.plan.recipe.batches == "full" else 1

    def _next(self, count: int) -> list[Run]:
        """Take the next runs from the queue."""
        runs, self.waiting = self.waiting[:count], self.waiting[count:]
        return runs

    def run(self, batch: int | None) -> None:
        """Train group after group, until all have stopped or someone stops them."""
        # One of several processes cannot stop between epochs: the others would wait for it.
        with nullcontext(False) if self.task.shard else interruptible() as interrupt:
            for group in self.groups(batch):
                while group.running and not interrupt and not self.stop:
                    before = [(run, run.epochs) for run in group.runs]
                    group.advance()
                    self._follow(group, before)
                if self.stop:
                    self.finish(group)
                    break
                if interrupt:
                    self.interrupt(group)
                    break

    def _follow(self, group: ReplicaGroup, before: Sequence[tuple[Run, int]]) -> None:
        """After some epochs: take runs that have stopped out of the group, save, warn and report.

        before  the runs that were trained, and how many epochs each had done
        """
        if self.leave:
            group.end([run for run in self.leave(group.runs) if not run.stopped])
        self._collect(group)
        shrunk = group.compact()
        # Seeds of one setting stop at about the same time, and begin together for speed.
        if shrunk and self.waiting and self.task.others:
            group.join(self._next(self.size - len(group.runs)))
        if self.path and time.monotonic() - self.saved > self.pause:
            self.save(group)
        if why_not := group.refused:
            self._warn(f"trains without a CUDA graph: {why_not}")
        try:
            # Runs that joined later are at earlier epochs.
            for first in sorted({epochs for _, epochs in before}):
                self._report([run for run, epochs in before if epochs == first], first)
        except Exception:
            self.save(group)  # an error in a callback costs no epochs
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
                about = (measures, setting, self.settings[setting])
                self._tell(EpochReport(epoch, done, len(self.runs), *about))

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
            self._warn(f"cannot save {self.path}: {error.strerror}; continuing without it")
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
        """The checkpoint, if there is one of this training."""
        saved = self._read(self.path) if self.path else None
        if saved and not saved.is_of(self.identity):
            notice(f"{self.path} belongs to another training run; starting over")
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

    def trained(self) -> tuple[list[Run], Stack]:
        """The runs that have weights, in the order of their seeds, and these weights."""
        runs = [run for run in self.runs if run.key in self.done]
        if not runs:
            raise KeyboardInterrupt("stopped before the first epoch was done")
        return runs, self._stacked([run.key for run in runs])
