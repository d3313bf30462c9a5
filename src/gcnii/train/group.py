"""A group of replicas in training together, epoch by epoch, each until its own patience ends."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from gcnii.batches import Batch
from gcnii.train.memory import forgets
from gcnii.train.objective import Objective
from gcnii.train.replicas import Replicas, Stack
from gcnii.train.run import Measures, Run
from gcnii.train.task import Task


class Diverged(FloatingPointError):
    """A loss became infinite or not a number."""


class Group:
    """`runs[i]` is the record of replica i; `best` holds the replicas' weights at their best epochs."""

    def __init__(self, task: Task, runs: list[Run]):
        self.task, self.runs = task, list(runs)
        graph = task.graph
        self.replicas = Replicas(task.plan, graph.d, graph.k, [run.seed for run in runs], task.device)
        self.replicas.model.forgets = forgets(task, len(runs))
        self.objective = Objective.of(graph, [run.split for run in runs], task.device)
        self.batches = task.batches(runs[0].split)
        self.best = {name: weight.detach().clone() for name, weight in self.replicas.weights.items()}

    @property
    def epoch(self) -> int:
        """Number of epochs done; the same for all."""
        return self.runs[0].epochs

    def advance(self) -> list[Measures]:
        """One epoch: a step for each batch, an evaluation, and the best weights kept."""
        start = time.perf_counter()
        scores, train_loss = self._train()
        measures = self._evaluate(scores, train_loss)
        self._refuse_divergence(measures)
        better = [i for i, run in enumerate(self.runs) if run.record(measures[i], self.task.plan.recipe)]
        if better:
            rows = torch.tensor(better, device=self.task.device)
            for name, weight in self.replicas.weights.items():
                self.best[name][rows] = weight.detach()[rows]
        for run in self.runs:
            run.seconds += (time.perf_counter() - start) / len(self.runs)
        return measures

    def _train(self) -> tuple[Tensor, Tensor]:
        """The last step's scores, and the mean over the training nodes of the steps' losses (r,)."""
        scale = [run.lr_scale for run in self.runs]
        like = self.task.plan.recipe.dtype
        scales = None if set(scale) == {1.0} else torch.tensor(scale, device=self.task.device, dtype=like)
        losses, counts = [], []
        for step, batch in enumerate(self.batches.epoch(self.runs[0].seed, self.epoch)):
            objective = self.objective.at(batch.nodes)
            count = objective.masks["train"].sum(-1)
            if batch.nodes is not None and not count.all():
                continue  # nobody to learn from
            scores, loss = self.replicas.step(batch, objective, self.epoch, step, scales)
            losses.append(loss)
            counts.append(count)
        weights = torch.stack(counts)
        return scores, (torch.stack(losses) * weights).sum(0) / weights.sum(0)

    @torch.no_grad()
    def _evaluate(self, noisy: Tensor, train_loss: Tensor) -> list[Measures]:
        objective = self.objective
        scores = self.replicas.scores(Batch(self.task.links, self.task.X))
        monitored = noisy if self.task.plan.recipe.monitor == "noisy_loss" else scores
        columns = (
            train_loss,
            objective.loss(monitored, "val"),
            objective.score(scores, "val"),
            objective.score(scores, "test"),
        )
        # One transfer for everything, because each one waits for the GPU.
        return [Measures(*row) for row in torch.stack([column.double() for column in columns], 1).tolist()]

    def _refuse_divergence(self, measures: list[Measures]) -> None:
        lost = [run.seed for run, now in zip(self.runs, measures, strict=True) if not now.finite]
        if lost:
            seeds = f"seed {lost[0]}" + (f" and {len(lost) - 1} more" if len(lost) > 1 else "")
            raise Diverged(
                f"the loss of {seeds} was infinite or not a number in epoch {self.epoch + 1}; "
                f"try a smaller lr (now {self.task.plan.recipe.lr:g}), or look for extreme values in the features"
            )

    def retire(self) -> dict[int, Stack]:
        """Take out the replicas that are finished: their seeds and best weights."""
        finished = [run.finished(self.task.plan.recipe) for run in self.runs]
        if not any(finished):
            return {}
        done = {run.seed: self.best_of(i) for i, run in enumerate(self.runs) if finished[i]}
        stay = [i for i, out in enumerate(finished) if not out]
        if stay:
            rows = torch.tensor(stay, device=self.task.device)
            self.replicas.narrow(rows)
            self.objective = self.objective.narrow(rows)
            self.best = {name: weight[rows] for name, weight in self.best.items()}
        self.runs = [self.runs[i] for i in stay]
        return done

    def best_of(self, i: int) -> Stack:
        """The best weights so far of replica i, on the CPU."""
        return {name: weight[i].cpu().clone() for name, weight in self.best.items()}

    def stacks(self) -> dict[str, Stack]:
        """What a checkpoint must keep."""
        first, second = self.replicas.moments
        steps = {"steps": torch.tensor([self.replicas.steps])}
        stacks = {"now": self.replicas.weights, "first": first, "second": second, "best": self.best, "adam": steps}
        return stacks | {"batches": self.batches.state()}

    def restore(self, stacks: dict[str, Stack]) -> None:
        """Go on from what `stacks` gave."""
        self.replicas.load(stacks["now"], (stacks["first"], stacks["second"]), int(stacks["adam"]["steps"]))
        self.best = stacks["best"]
        self.batches.restore(stacks.get("batches", {}))
