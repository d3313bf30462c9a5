"""A forecast of shallower networks from the layers of one deep network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch
from torch import Tensor

from gcnii.analysis.layers.probe import Probe
from gcnii.analysis.layers.states import HiddenStates
from gcnii.errors import InputError
from gcnii.files import Document, json_value
from gcnii.graph import Graph, Role
from gcnii.nn import Model
from gcnii.nn.skeleton import GCNIISkeleton
from gcnii.train.results.result import Result


@dataclass(frozen=True)
class Forecast:
    """What one network of L layers foretells of networks of 0, 1, …, L layers: scores in [0, 1].

    val, test  linear probes, trained anew after each layer, shifted by one number so that at L they
               equal the network's own score.  Shallow networks do worse, because they must learn
               their features by themselves
    stopped    the network's own score on the validation nodes when it is stopped after each layer;
               shallow networks do better, because their last map is made for their depth.  Empty if
               the model cannot be stopped early
    nodes      the number of validation nodes

    Nothing is chosen by `test`.
    """

    val: tuple[float, ...]
    test: tuple[float, ...]
    nodes: int
    stopped: tuple[float, ...] = ()

    @property
    def best(self) -> int:
        """The depth with the highest probe on validation."""
        return max(range(len(self.val)), key=self.val.__getitem__)

    @property
    def recommended(self) -> int:
        """The fewest layers at which both curves are within one standard error of their best.

        0 means that the links help so little that an MLP does as well.
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
        share = min(max(highest, 0.0), 1.0)  # a shifted probe may lie outside
        return share - sqrt(share * (1 - share) / self.nodes)

    def summary(self) -> Document:
        """The forecast as a JSON object."""
        curves = {"val": list(self.val), "test": list(self.test), "stopped": list(self.stopped)}
        return {"recommended": self.recommended, "best": self.best, **curves}


def forecast(graph: Graph, result: Result) -> Forecast:
    """Probe every layer of the best run of a deep network, on the split it was trained on."""
    model, task = result.network(graph)
    run = result.runs[result.best]
    probe = Probe(graph, run.split)
    with torch.no_grad(), HiddenStates(model) as hidden:
        model(task.P, task.X)
    states = [H for _, H in hidden.layers]
    if len(states) < 2:
        raise InputError(f"{result.plan.model} has no layers to choose from; use gcnii")
    val, test = _shifted(probe, states, "val", run.val), _shifted(probe, states, "test", run.test)
    nodes = int(graph.splits[run.split].val.sum())
    return Forecast(val, test, nodes, _stopped(model, states, probe))


def _shifted(probe: Probe, states: Sequence[Tensor], role: Role, own: float) -> tuple[float, ...]:
    """Probes after each layer, shifted so that the last equals the network's own score."""
    read = [probe.score(H, role) for H in states]
    return tuple(score + own - read[-1] for score in read)


@torch.no_grad()
def _stopped(model: Model, states: Sequence[Tensor], probe: Probe) -> tuple[float, ...]:
    """The scores of the model's own last map after each layer.

    Empty unless it is a GCNII skeleton: only there all layers have the width that the map takes.
    """
    if not isinstance(model, GCNIISkeleton):
        return ()
    answers = (model.dense["decode"](H).cpu() for H in states)
    return tuple(float(probe.objective.score(scores[None], "val")) for scores in answers)


@dataclass(frozen=True)
class Comparison:
    """A forecast compared with networks that were trained at some depths.

    depths          the depths that were trained
    foretold, true  test scores at these depths
    recommended     the depth that the forecast recommends
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
        """Spearman's rank correlation of foretold and true scores; NaN where one is constant."""
        if len(set(self.foretold)) < 2 or len(set(self.true)) < 2:
            return float("nan")
        from scipy.stats import spearmanr  # takes half a second to import

        return float(spearmanr(self.foretold, self.true).statistic)

    @property
    def regret(self) -> float:
        """The best true score, less the one at the recommended depth."""
        return max(self.true) - score_at(self.recommended, self.depths, self.true)

    def summary(self) -> Document:
        """The comparison as a JSON object."""
        return {
            "depths": list(self.depths),
            "foretold": list(self.foretold),
            "true": list(self.true),
            "error": self.error,
            "order": json_value(self.order),
            "regret": self.regret,
        }


def score_at(layers: int, depths: Sequence[int], scores: Sequence[float]) -> float:
    """The score at a depth, interpolated linearly over log2 of the depth, constant at the ends."""
    return float(np.interp(np.log2(max(layers, 1)), np.log2(depths), scores))


def compare_depths(foretold: Forecast, sweep: Mapping[int, float]) -> Comparison:
    """Compare a forecast with `sweep`: depth → test score of a network trained at that depth."""
    depths = tuple(sorted(sweep))
    beyond = [depth for depth in depths if depth >= len(foretold.test)]
    if beyond:
        raise InputError(
            f"the forecast ends at {len(foretold.test) - 1} layers, got a sweep up to {max(beyond)}"
        )
    return Comparison(
        depths,
        tuple(foretold.test[d] for d in depths),
        tuple(sweep[d] for d in depths),
        foretold.recommended,
    )
