"""What gcnii doctor says of the networks it trained when asked for more: their filters, their reach, and a depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gcnii.analysis.bands import refuse_asymmetric
from gcnii.analysis.checkup import Checkup
from gcnii.analysis.depth import Comparison, Forecast, compare, forecast
from gcnii.analysis.influence import Influence, influence
from gcnii.analysis.response import Response, response
from gcnii.graph import Graph
from gcnii.propagation import Sparse
from gcnii.report.figure import save
from gcnii.report.forecast import draw_forecast, forecast_text
from gcnii.report.influence import draw_influence, influence_table
from gcnii.report.progress import counting_bar
from gcnii.report.response import draw_response, response_table
from gcnii.train import Plan
from gcnii.train.task import make_links

ALPHA = 0.1  # of the PageRank beside the learned filters, where no model has one of its own


@dataclass(frozen=True)
class Learned:
    """By model, of its deepest network: whatever was asked for."""

    layers: int
    alpha: float
    responses: Mapping[str, Response]
    influences: Mapping[str, Influence]
    forecasts: Mapping[str, tuple[Forecast, Comparison]]

    def document(self) -> dict[str, Any]:
        """As JSON has it; empty where nothing was asked for."""
        parts = {
            "filter": {model: one.rows() for model, one in self.responses.items()},
            "influence": {model: one.rows() for model, one in self.influences.items()},
            "depth": {model: one.summary() | both.summary() for model, (one, both) in self.forecasts.items()},
        }
        return {name: part for name, part in parts.items() if part}

    def tables(self) -> Iterator[Any]:
        """To print."""
        if self.responses:
            yield response_table(self.responses, layers=self.layers, alpha=self.alpha)
            yield influence_table(self.influences)
        for model, found in self.forecasts.items():
            yield forecast_text(model, *found)

    def write_figures(self, folder: Path) -> list[Path]:
        """One a question, as SVG and PNG."""
        drawings = {}
        if self.responses:
            drawings["filter"] = draw_response(self.responses, layers=self.layers, alpha=self.alpha)
            drawings["influence"] = draw_influence(self.influences)
        if self.forecasts:
            drawings["forecast"] = draw_forecast(self.forecasts)
        return [
            save(drawing, folder / f"{name}.{kind}") for name, drawing in drawings.items() for kind in ("svg", "png")
        ]


def learn(graph: Graph, checkups: Sequence[Checkup], *, filters: bool, depth: bool, seed: int) -> Learned:
    """Ask the deepest network of each model; the shallower ones are what a forecast is held against."""
    trained = [one for one in checkups if one.result is not None]
    deepest = {one.model: one for one in sorted(trained, key=lambda one: one.layers)}
    responses, influences, forecasts = {}, {}, {}
    with counting_bar("asking the deepest networks", len(deepest) * (2 * filters + depth)) as show:
        for name, checkup in deepest.items():
            assert checkup.result is not None
            if filters:
                model, task = checkup.result.network(graph)
                show(f"{name}: filter")
                responses[name] = response(model, task.links.whole, task.X, seed=seed)
                show(f"{name}: influence of each hop")
                influences[name] = influence(model, task.links.whole, task.X, seed=seed)
            if depth:
                show(f"{name}: depth")
                foretold = forecast(graph, checkup.result)
                sweep = {one.layers: one.test for one in trained if one.model == name}
                forecasts[name] = foretold, compare(foretold, sweep)
    alpha = next((one.settings["alpha"] for one in deepest.values() if "alpha" in one.settings), ALPHA)
    return Learned(max(one.layers for one in checkups), alpha, responses, influences, forecasts)


def refuse_filters(graph: Graph, plans: Sequence[Plan]) -> None:
    """Say before the first training that these models have no frequencies, or none in common."""
    matrices = [make_links(graph, plan.recipe).whole for plan in plans]
    for P in matrices:
        if not isinstance(P, Sparse):
            raise ValueError("frequencies need one propagation matrix; leave out --filter, or models with a geometry")
        refuse_asymmetric(P)
        if len(P.values) != len(matrices[0].values) or not torch.equal(P.values, matrices[0].values):
            names = ", ".join(plan.model for plan in plans)
            raise ValueError(f"--filter compares models on one P̃, and {names} have several; ask for one at a time")
