"""Depth from one training: what can be read after each layer of one deep network foretells
shallower ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, sqrt
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from gcnii.analysis.layers.probe import Probe
from gcnii.analysis.layers.states import watch
from gcnii.errors import InputError
from gcnii.graph import Graph, Role
from gcnii.nn import Model
from gcnii.nn.skeleton import GCNIISkeleton
from gcnii.train.result import Result


@dataclass(frozen=True)
class Forecast:
    """What one network of L layers says of networks of 0, 1, …, L layers: scores in [0, 1], one a
    depth.

    val, test  linear probes, trained anew after each layer, moved up or down by one number so that
               at L they are the network's own score.  Shallow networks do worse, because they must
               learn their features by themselves
    stopped    what the network itself answers on the validation nodes when it is stopped after a
               layer; shallow networks do better, because their last map is made for their depth.
               Empty where it has no such answer
    nodes      how many validation nodes there are

    Nothing is chosen by `test`.
    """

    val: tuple[float, ...]
    test: tuple[float, ...]
    nodes: int
    stopped: tuple[float, ...] = ()

    @property
    def best(self) -> int:
        """The depth of the highest probe."""
        return max(range(len(self.val)), key=self.val.__getitem__)

    @property
    def recommended(self) -> int:
        """The fewest layers where both curves come within one standard error of their best: more
        would be for noise.

        0: the links help so little that an MLP does as well.
        """
        curves = [curve for curve in (self.val, self.stopped) if curve]
        floors = [self._floor(max(curve)) for curve in curves]
        good = (
            layers
            for layers in range(len(self.val))
            if all(curve[layers] >= floor for curve, floor in zip(curves, floors, strict=True))
        )
        return next(good, len(self.val) - 1)

    def _floor(self, highest: float) -> float:
        share = min(max(highest, 0.0), 1.0)  # a probe may have been moved beyond
        return share - sqrt(share * (1 - share) / self.nodes)

    def summary(self) -> dict[str, Any]:
        """As JSON has it."""
        curves = {"val": list(self.val), "test": list(self.test), "stopped": list(self.stopped)}
        return {"recommended": self.recommended, "best": self.best, **curves}


def forecast(graph: Graph, result: Result) -> Forecast:
    """Ask every layer of the best run of a deep network, on the split that it was trained on."""
    model, task = result.network(graph)
    run = result.runs[result.best]
    probe = Probe(graph, run.split)
    with torch.no_grad(), watch(model) as watched:
        model(task.P, task.X)
    states = [H for _, H in watched.layers]
    if len(states) < 2:
        raise InputError(f"{result.plan.model} has no layers to choose from; use gcnii")
    val, test = _moved(probe, states, "val", run.val), _moved(probe, states, "test", run.test)
    return Forecast(
        val, test, int(graph.splits[run.split].val.sum()), _stopped(model, states, probe)
    )


def _moved(probe: Probe, states: Sequence[Tensor], role: Role, own: float) -> tuple[float, ...]:
    """What a probe reads after each layer, moved so that after the last it is the network's own
    score.
    """
    read = [probe.score(H, role) for H in states]
    return tuple(score + own - read[-1] for score in read)


@torch.no_grad()
def _stopped(model: Model, states: Sequence[Tensor], probe: Probe) -> tuple[float, ...]:
    """The scores of its own last map after each layer; only the skeleton of GCNII has layers of one
    width before it.
    """
    if not isinstance(model, GCNIISkeleton):
        return ()
    answers = (model.dense["decode"](H).cpu() for H in states)
    return tuple(float(probe.objective.score(scores[None], "val")) for scores in answers)


@dataclass(frozen=True)
class Comparison:
    """A forecast beside networks that were trained at each depth: both curves, and how far off the
    first was.

    depths   the depths that were trained
    foretold, true  test scores at these depths
    """

    depths: tuple[int, ...]
    foretold: tuple[float, ...]
    true: tuple[float, ...]
    recommended: int

    @property
    def error(self) -> float:
        """The mean of |foretold - true| over the depths."""
        return float(np.abs(np.subtract(self.foretold, self.true)).mean())

    @property
    def order(self) -> float:
        """Spearman's rank correlation of the two: 1 where they order the depths alike; NaN where
        one is flat.
        """
        if len(set(self.foretold)) < 2 or len(set(self.true)) < 2:
            return float("nan")
        return float(spearmanr(self.foretold, self.true).statistic)

    @property
    def regret(self) -> float:
        """The best true score, less the one at the recommended depth."""
        return max(self.true) - score_at(self.recommended, self.depths, self.true)

    def summary(self) -> dict[str, Any]:
        """As JSON has it."""
        curves = {
            "depths": list(self.depths),
            "foretold": list(self.foretold),
            "true": list(self.true),
        }
        order = None if isnan(self.order) else self.order  # JSON has no NaN
        return {**curves, "error": self.error, "order": order, "regret": self.regret}


def score_at(layers: int, depths: Sequence[int], scores: Sequence[float]) -> float:
    """Between two trained depths on the straight line over log2 of the depth, beyond them the last
    one's.
    """
    return float(np.interp(np.log2(max(layers, 1)), np.log2(depths), scores))


def compare(foretold: Forecast, sweep: Mapping[int, float]) -> Comparison:
    """`sweep`: depth → test score of networks trained at that depth."""
    depths = tuple(sorted(sweep))
    beyond = [depth for depth in depths if depth >= len(foretold.test)]
    if beyond:
        raise InputError(
            f"the forecast ends at {len(foretold.test) - 1} layers, got a sweep to {max(beyond)}"
        )
    return Comparison(
        depths,
        tuple(foretold.test[d] for d in depths),
        tuple(sweep[d] for d in depths),
        foretold.recommended,
    )
