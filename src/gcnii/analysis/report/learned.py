"""Filters and reach of trained networks, as tables and figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType

from gcnii.analysis.filters.learn import Learned
from gcnii.analysis.report.influence import draw_influence, influence_table
from gcnii.analysis.report.response import draw_response, response_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def learned_tables(learned: Learned) -> Iterator[RenderableType]:
    """What there is to print; nothing if no question was asked."""
    if learned.responses:
        yield response_table(learned.responses, layers=learned.layers, alpha=learned.alpha)
        yield influence_table(learned.influences)


def draw_learned(learned: Learned) -> dict[str, Figure]:
    """One figure per question, by its name; none if no question was asked."""
    if not learned.responses:
        return {}
    layers, alpha = learned.layers, learned.alpha
    return {
        "filter": draw_response(learned.responses, layers=layers, alpha=alpha),
        "influence": draw_influence(learned.influences),
    }
