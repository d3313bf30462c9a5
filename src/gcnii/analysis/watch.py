"""`gcnii.watch`: the hidden states of any model, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import pandas as pd
from torch import nn

from gcnii.analysis.layers.checkup import LayerReport, examine
from gcnii.analysis.layers.diagnosis import Baseline, Diagnosis, diagnose
from gcnii.analysis.layers.probe import Probe
from gcnii.analysis.layers.smoothing import SmoothnessMeter
from gcnii.analysis.layers.states import Watch
from gcnii.analysis.report.checkups import draw_layers
from gcnii.errors import InputError
from gcnii.graph import Graph


def watch(
    model: nn.Module, graph: Graph | None = None, *, layers: Iterable[nn.Module] | None = None
) -> Watching:
    """A context in which the last forward pass of `model` leaves its hidden states.

    graph   brings labels and a split, which probes need; without it, edges are looked for among the
            model's inputs
    layers  the modules that are layers, of a model that is not of the registry; by default PyG's
            convolutions, or else the members of the longest ModuleList
    """
    return Watching(model, graph, layers)


class Watching(Watch):
    """A Watch that also measures what it caught."""

    def __init__(
        self,
        model: nn.Module,
        graph: Graph | None = None,
        layers: Iterable[nn.Module] | None = None,
    ):
        super().__init__(model, layers)
        self.graph = graph

    def table(self) -> pd.DataFrame:
        """A row a layer; of sampled numbers the standard error stands beside them."""
        return pd.DataFrame([_flat(row) for row in self.examine()]).rename_axis("layer")

    def plot(self) -> Any:
        """A matplotlib figure: each number against the layer."""
        return draw_layers(self.examine())

    def diagnose(self) -> Diagnosis:
        """The verdict, and what to try."""
        baseline = Baseline.of(self.graph, self._probe) if self.graph and self._probe else None
        return diagnose(self.examine(), edges=self._yardstick.m, baseline=baseline)

    def examine(self) -> tuple[LayerReport, ...]:
        """Every layer, measured."""
        return examine(self, self._yardstick, self._probe)

    @cached_property
    def _probe(self) -> Probe | None:
        return Probe(self.graph) if self.graph and self.graph.splits else None

    @property
    def _yardstick(self) -> SmoothnessMeter:
        if self.graph:
            return SmoothnessMeter.of(self.graph)
        if self.edges is None:
            raise InputError(
                "no edges were seen among the model's inputs; give the graph: watch(model, graph)"
            )
        return SmoothnessMeter(self.edges.cpu(), len(self.layers[0].H))


def _flat(row: LayerReport) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for name, value in row.summary().items():
        if isinstance(value, list):
            numbers[name], error = value
            numbers |= {f"{name} ±": error} if error else {}
        else:
            numbers[name] = value
    return numbers
