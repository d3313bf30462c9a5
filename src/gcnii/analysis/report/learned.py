"""Filters, reach and depth forecasts of trained networks, as tables and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.console import RenderableType

from gcnii.analysis.filters.learn import Learned
from gcnii.analysis.report.forecast import draw_forecast, forecast_text
from gcnii.analysis.report.influence import draw_influence, influence_table
from gcnii.analysis.report.response import draw_response, response_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def learned_tables(learned: Learned) -> Iterator[RenderableType]:
    """What there is to print; nothing if no question was asked."""
    if learned.responses:
        yield response_table(learned.responses, layers=learned.layers, alpha=learned.alpha)
        yield influence_table(learned.influences)
    for model, found in learned.forecasts.items():
        yield forecast_text(model, found)


def draw_learned(
    learned: Learned, measured: Mapping[str, Mapping[int, float]] | None = None
) -> dict[str, Figure]:
    """One figure per question, by its name; none if no question was asked.

    measured  by model, depth → test score of networks that were trained to the end
    """
    drawings = {}
    if learned.responses:
        layers, alpha = learned.layers, learned.alpha
        drawings["filter"] = draw_response(learned.responses, layers=layers, alpha=alpha)
        drawings["influence"] = draw_influence(learned.influences)
    if learned.forecasts:
        drawings["forecast"] = draw_forecast(learned.forecasts, measured or {})
    return drawings
