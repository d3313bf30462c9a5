"""Outputs: the scores of all runs on one graph, computed once and kept.

Runs of one setting are one batch.  Scores that are too many are computed again when asked for; and
nodes that validated in a training with times are answered by the graph as they found it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, vmap

from gcnii.graph import Graph
from gcnii.nn import Model
from gcnii.targets.numbers import in_units
from gcnii.targets.target import Bools
from gcnii.train.replicas import Stack
from gcnii.train.stopping import Run
from gcnii.train.task import LightTask, Task

if TYPE_CHECKING:
    from gcnii.results.result import Result


KEPT = 1 << 28  # numbers (1 GiB); of more, each run is computed again when it is asked for
AT_ONCE = 1 << 27  # numbers of a layer's states that a GPU computes at once


@dataclass(frozen=True)
class Recomputed:
    """Scores that are too many to be kept: those of run rows[i] are computed when asked for."""

    result: Result
    inputs: Inputs
    rows: Sequence[int]

    def __getitem__(self, i: int, /) -> Tensor:
        def scores(inputs: Task | LightTask) -> Tensor:
            return self.result._output("forward", self.rows[i], inputs)

        return self.inputs.answered(scores)


@dataclass(frozen=True, eq=False)
class Inputs:
    """A graph made ready for prediction.

    earlier  of the graph of a training with times: that graph up to its last validation node, and
             (n,) these nodes, which are answered as they were when they validated
    """

    whole: Task | LightTask
    earlier: tuple[Task | LightTask, Bools] | None = None

    def answered(self, scores: Callable[[Task | LightTask], Tensor]) -> Tensor:
        """(…, n, k) what is said of the graph."""
        found = scores(self.whole)
        if self.earlier:
            task, val = self.earlier
            nodes = torch.from_numpy(np.flatnonzero(val))
            found[..., nodes, :] = scores(task)[..., nodes, :]
        return found


@dataclass(frozen=True, eq=False)
class Outputs:
    """What all runs of a result say of one graph.

    weights  that gave these scores: those of another result are not of it
    scores   (runs, n, k) on the CPU, or what computes those of one run after another
    shared  whether several processes trained: the graph then has the labels of the nodes of all
            splits, and neither features nor edges
    """

    graph: Graph
    weights: Stack
    scores: Tensor | Recomputed
    shared: bool = False

    def of(self, rows: Sequence[int], weights: Stack) -> Outputs:
        """Of these runs, which have these weights."""
        if isinstance(self.scores, Tensor):
            return replace(self, weights=weights, scores=self.scores[list(rows)])
        own = [self.scores.rows[i] for i in rows]
        return replace(self, weights=weights, scores=replace(self.scores, rows=own))


@torch.no_grad()
def scores_of(model: Model, weights: Stack, task: Task, at_once: int | None = None) -> Tensor:
    """(r, n, k) on the CPU: the scores of r sets of weights (r, …) for one model.

    at_once  how many are computed together; default: one on a CPU, as it trains them, and on a GPU
             as many as have room
    """
    model, runs = model.to(task.device).eval(), len(next(iter(weights.values())))
    own = model.state_dict()  # whose precision may be another than that of the training
    stack = {name: weight.to(own[name]) for name, weight in weights.items()}
    if at_once is None:
        width = max(max(weight.shape[1:], default=1) for weight in weights.values())
        room = max(AT_ONCE // (task.P.shape[0] * width), 1)
        at_once = 1 if task.device.type == "cpu" else min(runs, room)

    def one(each: Stack) -> Tensor:
        return functional_call(model, each, (task.P, task.X))  # type: ignore[no-any-return]

    if at_once > 1:
        return vmap(one, chunk_size=at_once)(stack).cpu()
    each = ({name: weight[i] for name, weight in stack.items()} for i in range(runs))
    return stacked([one(weights).cpu() for weights in each])


def stacked(each: Sequence[Tensor]) -> Tensor:
    """(runs, …); the scores of a single run, which may be large, are not copied."""
    return each[0][None] if len(each) == 1 else torch.stack(list(each))


def calibrated(scores: torch.Tensor, run: Run) -> torch.Tensor:
    """Scores (…, k) of a run, as its probabilities are made of them; or values in units."""
    if run.units is not None:
        return in_units(scores, np.array(run.units))
    scores = scores / (run.temperature or 1.0)
    if run.weights is None:
        return scores
    return scores - torch.tensor(run.weights, dtype=scores.dtype, device=scores.device).log()
