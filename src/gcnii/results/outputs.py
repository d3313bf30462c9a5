"""The scores of all runs on one graph: computed once, as one batch, and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from gcnii.graph import Graph
from gcnii.nn import Model
from gcnii.train.adam import Stack
from gcnii.train.task import Task

KEPT = 1 << 28  # numbers (1 GiB); of more, each run is computed again when it is asked for
AT_ONCE = 1 << 27  # numbers of a layer's states that a GPU computes at once


class Scores(Protocol):
    """(runs, n, k) scores on the CPU: a tensor, or what computes those of one run after another."""

    def __getitem__(self, i: int, /) -> Tensor:
        """(n, k) of run i."""
        ...


@dataclass(frozen=True)
class Recomputed:
    """Scores that are too many to be kept: those of run rows[i] are computed when asked for."""

    compute: Callable[[int], Tensor]
    rows: Sequence[int]

    def __getitem__(self, i: int, /) -> Tensor:
        return self.compute(self.rows[i])


@dataclass(frozen=True, eq=False)
class Outputs:
    """What all runs of a result say of one graph.

    weights  that gave these scores: those of another result are not of it
    shared  whether several processes trained: the graph then has the labels of the nodes of all
            splits, and neither features nor edges
    """

    graph: Graph
    weights: Stack
    scores: Scores
    shared: bool = False

    def of(self, rows: Sequence[int], weights: Stack) -> Outputs:
        """Of these runs, which have these weights."""
        if isinstance(self.scores, Tensor):
            return replace(self, weights=weights, scores=self.scores[list(rows)])
        assert isinstance(self.scores, Recomputed)
        own = [self.scores.rows[i] for i in rows]
        return replace(self, weights=weights, scores=Recomputed(self.scores.compute, own))


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
    return torch.stack([one(weights).cpu() for weights in each])
