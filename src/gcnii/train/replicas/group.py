"""Replicas trained together, epoch by epoch, each until its own patience ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from math import inf, nan
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from gcnii.errors import GcniiError
from gcnii.targets.objective import Objective
from gcnii.train.batches import Batch
from gcnii.train.hardware import arithmetic, held_how
from gcnii.train.replicas.cuda_graph import CapturedEpoch
from gcnii.train.replicas.packing import Stack
from gcnii.train.replicas.replicas import Replicas
from gcnii.train.results.run import Measures, Run
from gcnii.train.stopping import StoppingState
from gcnii.train.task import Task

# The host reads what the device measured after at most this many epochs, because that waits for the
# device; and at least every PAUSE seconds, because Ctrl-C waits for it.
SYNC_EVERY = {"cpu": 1, "cuda": 64}
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
        self.views: WeakKeyDictionary[Batch, View] = WeakKeyDictionary()
        # Several processes must read after the same epochs, whatever their clocks say.
        self.most = 1 if task.shard else SYNC_EVERY[device.type]
        recipes = [plan.recipe for plan in plans]
        self.stopping = StoppingState(recipes, runs, device, self.most)
        # The sum of the losses of training nodes, and their number.
        self.losses = torch.zeros(2, len(runs), dtype=torch.float64, device=device)
        self.step = torch.zeros((), dtype=torch.int32, device=device)
        # Where states go to the host, launches take no time; and a graph's memory would be its own.
        why_not = "activations go to the host" if offloads else ""
        self.captured = CapturedEpoch(device, "several processes train" if task.shard else why_not)
        self.steps: WeakKeyDictionary[Batch, CapturedEpoch] = WeakKeyDictionary()
        self.transient = CapturedEpoch(device, "each epoch draws batches of its own")
        self.pace = float("inf")  # seconds per epoch

    def _objective(self) -> Objective:
        """What the runs are graded by."""
        recipe, splits = self.recipe, [run.split for run in self.runs]
        about = (self.task.graph, splits, self.task.device)
        weigh, share = recipe.class_weight, self.task.share
        return Objective.of(*about, recipe.scored_by, weigh, share, recipe.positive)

    def _holds_less(self) -> bool:
        """Let activations be computed again, and go to the host, if need be; whether they go there.

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

    @property
    def running(self) -> int:
        """The number of replicas that have not stopped."""
        return sum(not run.stopped for run in self.runs)

    def advance(self) -> list[list[Measures]]:
        """Train for some epochs; for each, the measures of the replicas that had not stopped."""
        start, epochs = time.perf_counter(), self._epochs_to_sync()
        for _ in range(epochs):
            self._one_epoch()
            self.epoch += 1
        measures, records = self.stopping.fetch(epochs)
        self.pace = (time.perf_counter() - start) / epochs
        taken = [
            int(new["epochs"]) - run.epochs for run, new in zip(self.runs, records, strict=True)
        ]
        lost = self._lost(measures, taken)
        seen = [self._record(each, taken, i) for i, each in enumerate(measures)]
        for run, new in zip(self.runs, records, strict=True):
            vars(run).update(new)
        self._give_up(lost)
        return [each for each in seen if each]

    def _epochs_to_sync(self) -> int:
        # Every multiple of `most` is read: there the group may shrink, at the same epochs however
        # fast it is.
        recipes = (self.task.plans[run.setting].recipe for run in self.runs)
        running = zip(recipes, self.runs, strict=True)
        most = (recipe.allowed(run.epochs) - run.epochs for recipe, run in running)
        left = min(max(most), self.most - self.epoch % self.most)
        return max(1, min(left, int(PAUSE / self.pace)))

    def _record(self, measures: list[Measures], taken: list[int], i: int) -> list[Measures]:
        """Add the i-th of these epochs to the curves of the runs that took part in it."""
        there = self._took_part(measures, taken, i)
        for run, now in there:
            run.curve.append((now.train_loss, now.val_loss, now.val))
            run.seconds += self.pace / len(there)
        return [now for _, now in there]

    def _took_part(
        self, measures: list[Measures], taken: list[int], i: int
    ) -> list[tuple[Run, Measures]]:
        return [
            (run, now)
            for run, now, epochs in zip(self.runs, measures, taken, strict=True)
            if i < epochs
        ]

    def _one_epoch(self) -> None:
        """A step for each batch, an evaluation, and the best weights kept."""
        if self.recipe.batches == "full":
            self.captured(self._epoch)
            return
        for step, batch in enumerate(self.batches.epoch(self.runs[0].seed, self.epoch)):
            if self._view(batch).trains:
                self.step.fill_(step)
                self._captured_step(batch)(partial(self._learn, batch, self.step))
        self.captured(self._judge)

    def _captured_step(self, batch: Batch) -> CapturedEpoch:
        """A CUDA graph for each batch that returns in every epoch; none for the others."""
        if not self.batches.static:
            return self.transient
        if batch not in self.steps:
            self.steps[batch] = self.captured.another()
        return self.steps[batch]

    # What follows may be captured: nothing in it may wait for the device.

    def _epoch(self) -> None:
        (batch,) = self.batches.epoch(self.runs[0].seed, self.epoch)
        self._judge(self._learn(batch))

    def _learn(self, batch: Batch, step: Tensor | int = 0) -> Tensor:
        """A step on this batch; its scores."""
        with arithmetic(self.recipe, self.task.device):
            objective, size, _ = self._view(batch)
            clock, scales = self.stopping.clock, self.stopping.scales
            scores, loss = self.replicas.step(batch, objective, clock, step, scales)
            self.losses.add_(torch.stack([loss.double() * size, size.double()]))
        return scores

    def _judge(self, noisy: Tensor | None = None) -> None:
        """Measure what was learnt in this epoch, and keep the weights that are the best so far."""
        with arithmetic(self.recipe, self.task.device):
            self.replicas.keep(self.stopping.update(self._measure(noisy)))
            self.losses.zero_()

    def _view(self, batch: Batch) -> View:
        """Made once for each batch, because asking whether it has training nodes waits."""
        if batch not in self.views:
            objective = self.objective.at(batch.nodes)
            size = objective.count("train")
            trains = batch.nodes is None or bool(size.all())
            self.views[batch] = View(objective, size, trains)
        return self.views[batch]

    @torch.no_grad()
    def _measure(self, noisy: Tensor | None) -> Tensor:
        """(measures, r) float64, as in `Measures`; `noisy` are the training pass's scores."""
        objective = self._view(self.evaluated).objective
        scores = self.replicas.scores(self.evaluated)
        monitored = noisy if noisy is not None and self.recipe.rule.noisy else scores
        total, count = self.losses
        val_loss = objective.loss(monitored, "val")
        val, test = objective.score(scores, "val"), objective.score(scores, "test")
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
        self.captured = self.captured.another()  # the old one holds the old tensors
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
        self.captured = self.captured.another()
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
        first, second = self.replicas.moments
        now, best = self.replicas.weights, self.replicas.best
        stacks = {"now": now, "first": first, "second": second, "best": best}
        copies = {
            role: {name: weight.clone() for name, weight in stack.items()}
            for role, stack in stacks.items()
        }
        adam = {"steps": torch.tensor(self.replicas.steps)}
        return copies | {"adam": adam, "batches": self.batches.state()}

    def restore(self, stacks: dict[str, Stack]) -> None:
        """Go on from what `stacks` gave."""
        moments, steps = (stacks["first"], stacks["second"]), stacks["adam"]["steps"].tolist()
        # Version 0.1 wrote one number for all.
        every = steps if len(steps) == len(self.runs) else steps * len(self.runs)
        self.replicas.load(stacks["now"], stacks["best"], moments, every)
        self.batches.restore(stacks.get("batches", {}))
