"""The learned filter: g(λ) of trained networks, beside filters that are known in closed form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from gcnii.analysis.filters.response import Floats, Response, gcn_filter, pagerank_filter
from gcnii.analysis.report.style import GREY, draw_bars, figure, shared_legend, styles_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_response(found: Mapping[str, Response], *, layers: int, alpha: float) -> Figure:
    """One line per network, with bars of two standard errors; in grey a linear GCN and PageRank.

    layers  of the linear GCN
    alpha   of the PageRank
    """
    drawing = figure(1)
    (axes,) = drawing.axes
    first = next(iter(found.values()))
    fine = np.linspace(first.frequency[0], first.frequency[-1], 200)
    for dash, (label, curve) in zip((":", "--"), _known(fine, layers, alpha).items(), strict=True):
        axes.plot(fine, first.beside(curve), color=GREY, linestyle=dash, linewidth=3, label=label)
    styles = styles_of(found)
    for label, one in found.items():
        x, y, error = one.frequency, one.gain, 2 * one.error
        draw_bars(axes, x, y, error, styles[label], label, markersize=4, linewidth=1.2)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set(xlabel="frequency λ: 0 is the same on all neighbours", xlim=(0, None))
    axes.set(ylabel="g(λ), the largest is 1")
    axes.set_title("How much of a signal passes, by its frequency")
    shared_legend(drawing)
    return drawing


def response_table(found: Mapping[str, Response], *, layers: int, alpha: float) -> Table:
    """One row per band of frequencies: the known filters, then g and purity of each network."""
    first = next(iter(found.values()))  # networks on one graph have the same frequencies
    filters = _known(first.frequency, layers, alpha)
    known = {label: first.beside(curve) for label, curve in filters.items()}
    heads = ("λ", "share", *known, *(head for label in found for head in (label, "purity")))
    table = Table(*heads, title="The learned filter g(λ)", title_justify="left", box=None)
    for column in table.columns:
        column.justify = "right"
    for i, (frequency, share) in enumerate(zip(first.frequency, first.share, strict=True)):
        cells = [f"{curve[i]:+.3f}" for curve in known.values()]
        for one in found.values():
            cells += [f"{one.gain[i]:+.3f} ± {one.error[i]:.3f}", f"{one.purity[i]:.2f}"]
        table.add_row(f"{frequency:.3f}", f"{share:.1%}", *cells)
    return table


def _known(frequency: Floats, layers: int, alpha: float) -> dict[str, Floats]:
    return {
        f"(1-λ)^{layers}: GCN without ReLU": gcn_filter(frequency, layers),
        f"personalised PageRank, α = {alpha:g}": pagerank_filter(frequency, alpha),
    }
