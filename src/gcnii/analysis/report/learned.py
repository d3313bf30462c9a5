"""What the doctor's further questions gave: the networks' filters, their reach and a depth,
printed, kept and drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gcnii.analysis.filters.influence import Influence
from gcnii.analysis.filters.response import Response
from gcnii.analysis.layers.checkup import Checkup
from gcnii.analysis.report.forecast import draw_forecast, forecast_text
from gcnii.analysis.report.influence import draw_influence, influence_table
from gcnii.analysis.report.response import draw_response, response_table

ALPHA = 0.1  # of the PageRank beside the learned filters, where no model has one of its own


@dataclass(frozen=True)
class Learned:
    """By model, of its deepest network: whatever was asked for.

    layers, alpha  of the linear GCN and of the PageRank that the filters are drawn beside
    forecasts      each as `Forecast.summary()` and `Comparison.summary()` have it together
    """

    layers: int
    alpha: float
    responses: Mapping[str, Response]
    influences: Mapping[str, Influence]
    forecasts: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, document: Mapping[str, Any], checkups: Sequence[Checkup]) -> Learned:
        """What `document` gave, of networks with these checkups; nothing where it was not asked
        for.
        """
        responses = {model: Response.of(one) for model, one in document.get("filter", {}).items()}
        influences = {
            model: Influence.of(one) for model, one in document.get("influence", {}).items()
        }
        alpha = next((one.settings["alpha"] for one in checkups if "alpha" in one.settings), ALPHA)
        return cls(
            max(one.layers for one in checkups),
            alpha,
            responses,
            influences,
            document.get("depth", {}),
        )

    def document(self) -> dict[str, Any]:
        """As JSON has it; empty where nothing was asked for."""
        parts = {
            "filter": {model: one.summary() for model, one in self.responses.items()},
            "influence": {model: one.summary() for model, one in self.influences.items()},
            "depth": dict(self.forecasts),
        }
        return {name: part for name, part in parts.items() if part}

    def tables(self) -> Iterator[Any]:
        """To print."""
        if self.responses:
            yield response_table(self.responses, layers=self.layers, alpha=self.alpha)
            yield influence_table(self.influences)
        for model, found in self.forecasts.items():
            yield forecast_text(model, found)

    def draw_figures(
        self, measured: Mapping[str, Mapping[int, float]] | None = None
    ) -> dict[str, Any]:
        """One a question, by its name.  `measured`: by model, depth → test score of networks
        trained to the end.
        """
        drawings = {}
        if self.responses:
            drawings["filter"] = draw_response(self.responses, layers=self.layers, alpha=self.alpha)
            drawings["influence"] = draw_influence(self.influences)
        if self.forecasts:
            drawings["forecast"] = draw_forecast(self.forecasts, measured or {})
        return drawings
