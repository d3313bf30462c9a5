"""The filter g(λ) and the reach of trained networks, drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from gcnii.analysis.filters import Floats, Influence, Learned, Response, gcn_filter, pagerank_filter
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
