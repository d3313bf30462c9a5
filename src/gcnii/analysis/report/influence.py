"""How far trained networks look: the share of what decides a node's class, by distance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.table import Table

from gcnii.analysis.filters.influence import Influence
from gcnii.analysis.report.style import STYLES, figure, shared_legend

LEAST = 0.005  # share: hops beyond the last that has so much are left out


def draw_influence(found: Mapping[str, Influence]) -> Any:
    """A line a network, with bars of two standard errors, and its mean distance in the legend."""
    drawing = figure(1)
    (axes,) = drawing.axes
    last = _last(found)
    for (colour, marker, dash), (label, one) in zip(STYLES, found.items(), strict=False):
        share, error = (100 * values[: last + 1] for values in (one.share, one.error))
        label = f"{label}, mean {one.reach:.1f}"
        look = {"color": colour, "marker": marker, "linestyle": dash}
        axes.errorbar(range(len(share)), share, 2 * error, label=label, capsize=2, **look)
    axes.set(xlabel="hops away; 0 is the node itself", ylabel="influence (%)", ylim=(0, None))
    axes.set_xticks(range(last + 1))
    axes.set_title("Where a node's score comes from")
    shared_legend(drawing)
    return drawing


def influence_table(found: Mapping[str, Influence]) -> Table:
    """A row a hop, and the mean distance."""
    table = Table(
        "hops away", *found, title="Influence by hop, in %", title_justify="left", box=None
    )
    for column in table.columns:
        column.justify = "right"
    for hop in range(_last(found) + 1):
        cells = (
            f"{100 * one.share[hop]:.1f} ± {100 * one.error[hop]:.1f}"
            if hop < len(one.share)
            else "–"
            for one in found.values()
        )
        table.add_row(str(hop), *cells)
    table.add_row("mean", *(f"{one.reach:.2f}" for one in found.values()))
    return table


def _last(found: Mapping[str, Influence]) -> int:
    """The last hop that is worth showing."""
    return int(max(np.flatnonzero(one.share >= LEAST).max(initial=0) for one in found.values()))
