"""The learned filter: g(λ) of trained networks, beside those that are known in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.table import Table

from gcnii.analysis.filters.response import Floats, Response, gcn_filter, pagerank_filter
from gcnii.analysis.report.style import STYLES, figure, shared_legend

GREY = "#777777"


def draw_response(found: Mapping[str, Response], *, layers: int, alpha: float) -> Any:
    """A line a network, with bars of two standard errors; in grey a linear GCN of so many layers,
    and PageRank.
    """
    drawing = figure(1)
    (axes,) = drawing.axes
    one = next(iter(found.values()))
    fine = np.linspace(one.frequency[0], one.frequency[-1], 200)
    for dash, (label, curve) in zip((":", "--"), _known(fine, layers, alpha).items(), strict=True):
        axes.plot(fine, one.beside(curve), color=GREY, linestyle=dash, linewidth=3, label=label)
    for (colour, marker, dash), (label, one) in zip(STYLES, found.items(), strict=False):
        look = {
            "color": colour,
            "marker": marker,
            "linestyle": dash,
            "markersize": 4,
            "linewidth": 1.2,
        }
        axes.errorbar(one.frequency, one.gain, 2 * one.error, label=label, capsize=2, **look)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set(
        xlabel="frequency λ: 0 is the same on all neighbours",
        ylabel="g(λ), the largest is 1",
        xlim=(0, None),
    )
    axes.set_title("How much of a signal passes, by its frequency")
    shared_legend(drawing)
    return drawing


def response_table(found: Mapping[str, Response], *, layers: int, alpha: float) -> Table:
    """A row a band of frequencies; beside each g, how much of the response's energy is the signal
    itself again.
    """
    one = next(iter(found.values()))
    # Networks on one graph are asked at the same frequencies.
    known = {
        label: one.beside(curve) for label, curve in _known(one.frequency, layers, alpha).items()
    }
    heads = [head for label in found for head in (label, "purity")]
    table = Table(
        "λ",
        "share",
        *known,
        *heads,
        title="The learned filter g(λ)",
        title_justify="left",
        box=None,
    )
    for column in table.columns:
        column.justify = "right"
    for i, (frequency, share) in enumerate(zip(one.frequency, one.share, strict=True)):
        cells = [f"{curve[i]:+.3f}" for curve in known.values()]
        for each in found.values():
            cells += [f"{each.gain[i]:+.3f} ± {each.error[i]:.3f}", f"{each.purity[i]:.2f}"]
        table.add_row(f"{frequency:.3f}", f"{share:.1%}", *cells)
    return table


def _known(frequency: Floats, layers: int, alpha: float) -> dict[str, Floats]:
    return {
        f"(1-λ)^{layers}: GCN without ReLU": gcn_filter(frequency, layers),
        f"personalised PageRank, α = {alpha:g}": pagerank_filter(frequency, alpha),
    }
