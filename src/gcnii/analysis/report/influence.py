"""How far trained networks look: the share of a node's score that comes from each distance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from gcnii.analysis.filters.influence import Influence
from gcnii.analysis.report.style import draw_bars, figure, shared_legend, styles_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 0.005  # hops beyond the last one with this share are left out


def draw_influence(found: Mapping[str, Influence]) -> Figure:
    """One line per network, with bars of two standard errors and its mean in the legend."""
    drawing = figure(1)
    (axes,) = drawing.axes
    last, styles = _last(found), styles_of(found)
    for name, one in found.items():
        share, error = (100 * values[: last + 1] for values in (one.share, one.error))
        label = f"{name}, mean {one.reach:.1f}"
        draw_bars(axes, range(len(share)), share, 2 * error, styles[name], label)
    axes.set(xlabel="hops away; 0 is the node itself", ylabel="influence (%)", ylim=(0, None))
    axes.set_xticks(range(last + 1))
    axes.set_title("Where a node's score comes from")
    shared_legend(drawing)
    return drawing


def influence_table(found: Mapping[str, Influence]) -> Table:
    """One row per hop, and the mean distance."""
    table = Table(
        "hops away", *found, title="Influence by hop, in %", title_justify="left", box=None
    )
    for column in table.columns:
        column.justify = "right"
    for hop in range(_last(found) + 1):
        table.add_row(str(hop), *(_cell(one, hop) for one in found.values()))
    table.add_row("mean", *(f"{one.reach:.2f}" for one in found.values()))
    return table


def _cell(one: Influence, hop: int) -> str:
    if hop >= len(one.share):
        return "–"
    return f"{100 * one.share[hop]:.1f} ± {100 * one.error[hop]:.1f}"


def _last(found: Mapping[str, Influence]) -> int:
    """The last hop that is worth showing."""
    return int(max(np.flatnonzero(one.share >= LEAST).max(initial=0) for one in found.values()))
