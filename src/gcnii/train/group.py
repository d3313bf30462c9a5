"""A group of replicas in training together, epoch by epoch, each until its own patience ends."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from gcnii.graph import Graph
from gcnii.propagation import Sparse, feature_matrix, propagation_matrix
from gcnii.train.objective import Objective
from gcnii.train.plan import Plan
from gcnii.train.replicas import Replicas, Stack
from gcnii.train.run import Measures, Run


class Diverged(FloatingPointError):
    """A loss became infinite or not a number."""


@dataclass(frozen=True, eq=False)
class Task:
    """What all groups of a fit share: the plan, and the graph's P̃ and X on the device."""

    graph: Graph
    plan: Plan
    device: torch.device
    P: Sparse
    X: Tensor | Sparse

    @classmethod
    def of(cls, graph: Graph, plan: Plan, device: torch.device) -> Task:
        """Make P̃ as the recipe says and move it and X to the device."""
        recipe = plan.recipe
        P = propagation_matrix(graph, direction=recipe.direction, loops=recipe.loops)
        return cls(graph, plan, device, P.to(device, recipe.dtype), feature_matrix(graph).to(device, recipe.dtype))


class Group:
    """`runs[i]` is the record of replica i; `best` holds the replicas' weights at their best epochs."""

    def __init__(self, task: Task, runs: list[Run]):
        self.task, self.runs = task, list(runs)
        graph = task.graph
        self.replicas = Replicas(task.plan, graph.d, graph.k, [run.seed for run in runs], task.device)
        self.objective = Objective.of(graph, [run.split for run in runs], task.device)
        self.best = {name: weight.detach().clone() for name, weight in self.replicas.weights.items()}

    @property
    def epoch(self) -> int:
        """Number of epochs done; the same for all."""
        return self.runs[0].epochs

    def advance(self) -> list[Measures]:
        """One epoch: a step, an evaluation, and the best weights kept."""
        start = time.perf_counter()
        train_loss = self.replicas.step(self.task.P, self.task.X, self.objective, self.epoch)
        measures = self._evaluate(train_loss)
        self._refuse_divergence(measures)
        monitor = self.task.plan.recipe.monitor
        better = [i for i, run in enumerate(self.runs) if run.record(measures[i], monitor)]
        if better:
            rows = torch.tensor(better, device=self.task.device)
            for name, weight in self.replicas.weights.items():
                self.best[name][rows] = weight.detach()[rows]
        for run in self.runs:
            run.seconds += (time.perf_counter() - start) / len(self.runs)
        return measures

    @torch.no_grad()
    def _evaluate(self, train_loss: Tensor) -> list[Measures]:
        scores, objective = self.replicas.scores(self.task.P, self.task.X), self.objective
        columns = (
            train_loss,
            objective.loss(scores, "val"),
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
        recipe = self.task.plan.recipe
        finished = [run.finished(recipe.epochs, recipe.patience) for run in self.runs]
        if not any(finished):
            return {}
        done = {run.seed: self.best_of(i) for i, run in enumerate(self.runs) if finished[i]}
        stay = [i for i, out in enumerate(finished) if not out]
        if stay:
            rows = torch.tensor(stay, device=self.task.device)
            self.replicas.narrow(rows, self.epoch)
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
        return {"now": self.replicas.weights, "first": first, "second": second, "best": self.best}

    def restore(self, stacks: dict[str, Stack]) -> None:
        """Go on from what `stacks` gave."""
        self.replicas.load(stacks["now"], (stacks["first"], stacks["second"]), self.epoch)
        self.best = stacks["best"]
