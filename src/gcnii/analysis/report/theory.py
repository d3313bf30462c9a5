"""The theorems as tables and as a figure: one panel a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from gcnii.analysis.report.style import STYLES, figure
from gcnii.analysis.theory.filter_errors import Realised, Substitute
from gcnii.analysis.theory.lasso import Iterate
from gcnii.analysis.theory.spectrum import Convergence, DegreeGroup, Distance, Floats
from gcnii.metrics.degree import span

FLOOR = 1e-8  # what is nearer than this is of no interest to the eye


def distance_table(one: Sequence[Distance], two: Sequence[Distance]) -> Group:
    """Theorem 1, by depth: a signal at one node, for which the printed bound holds, and a
    difference of two.
    """
    title = "Theorem 1: max |h_K - π| and its bounds; x = e_i at the hub, and e_i - e_j with a node of the lowest degree"
    heads = ("K", "e_i", "printed", "spectral", "e_i - e_j", "printed", "with ‖x‖₁", "spectral")
    table = _table(*heads)
    for left, right in zip(one, two, strict=True):
        numbers = (left.distance, left.printed, left.spectral, right.distance, right.printed)
        table.add_row(str(left.depth), *map(_short, (*numbers, right.corrected, right.spectral)))
    return Group(Text(title), table)


def degree_table(found: Convergence) -> Group:
    """Conjecture 1, by degree."""
    title = "Conjecture 1: mean |h_K - π| / π by degree, x uniform in [0, 1], largest component"
    table = _table("degree", "nodes", *(f"K = {depth}" for depth in found.depths))
    for group in found.groups:
        table.add_row(span(group.low, group.high), f"{group.nodes:,}", *map(_short, group.errors))
    exponents = ("–" if one is None else f"{one:+.2f}" for one in found.exponents)
    table.add_row("exponent of d + 1", "", *exponents)
    return Group(Text(title), table)


def filter_table(rows: Sequence[Realised]) -> Group:
    """Theorem 2, by filter."""
    title = "Theorem 2: largest error of the scores; K coefficients take K + 1 layers of GCNII, K - 1 of GCNII*"
    heads = (
        "filter",
        "K",
        "size",
        "max |γ|",
        "GCNII, 1 channel",
        "2 channels",
        "4 channels",
        "GCNII*",
        "proof's recurrence",
    )
    table = _table(*heads)
    for row in rows:
        errors = (row.one_channel, row.two_channels, row.four_channels, row.horner, row.as_printed)
        table.add_row(
            row.name,
            str(len(row.theta)),
            _short(row.size),
            _short(row.largest),
            *map(_short, errors),
        )
    return Group(Text(title), table)


def epsilon_table(rows: Sequence[Substitute]) -> Group:
    """Zero partial sums, by ε."""
    title = "Band pass with ε for zero partial sums, 2 channels: error of the scores"
    table = _table("ε", "max |γ|", "float64", "float32")
    for row in rows:
        table.add_row(*map(_short, (row.epsilon, row.largest, row.float64, row.float32)))
    return Group(Text(title), table)


def lasso_table(rows: Sequence[Iterate]) -> Group:
    """Section 3, by step."""
    title = "Section 3: ISTA on a small sparse-coding problem, and a GCNII* with a layer a step"
    table = _table("steps", "objective", "not zero", "GCNII* - ISTA")
    for row in rows:
        table.add_row(
            str(row.steps),
            f"{row.objective:.4f}",
            f"{100 * row.nonzero:.0f} %",
            _short(row.difference),
        )
    return Group(Text(title), table)


def _table(first: str, *heads: str) -> Table:
    table = Table(first, *heads, box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _short(number: float) -> str:
    return (
        "0" if number == 0 else f"{number:.3f}" if 0.01 <= abs(number) < 1000 else f"{number:.1e}"
    )


def draw_theory(
    graph: str,
    distances: Sequence[Distance],
    found: Convergence,
    theta: Sequence[float],
    eigenvalues: Floats,
    responses: Mapping[str, Floats],
    steps: Sequence[Iterate],
) -> Any:
    """Four questions, a panel each."""
    drawing = figure(2, rows=2)
    first, second, third, fourth = drawing.axes
    _draw_distances(first, graph, distances)
    _draw_degrees(second, graph, found)
    _draw_filter(third, graph, theta, eigenvalues, responses)
    _draw_lasso(fourth, steps)
    return drawing


def _draw_distances(axes: Any, graph: str, rows: Sequence[Distance]) -> None:
    depths = [row.depth for row in rows]
    lines = {
        "|h_K - π|": [row.distance for row in rows],
        "‖x‖₁ (1 - λ²/2)^K": [row.corrected for row in rows],
        "‖x‖₂ (1 - λ/2)^K": [row.spectral for row in rows],
    }
    for (colour, marker, dash), (label, values) in zip(STYLES, lines.items(), strict=False):
        axes.plot(
            depths,
            np.maximum(values, FLOOR / 10),
            color=colour,
            marker=marker,
            linestyle=dash,
            label=label,
        )
    axes.plot([], [], color="grey", label="as printed: Σx = 0 at every K")
    axes.set_xscale("symlog", base=2, linthresh=1)
    axes.set_xticks(depths, [str(depth) for depth in depths])
    axes.set_yscale("log")
    axes.set(
        title=f"How fast is a signal gone? {graph}, x = e_i - e_j",
        xlabel="K",
        ylabel="largest distance",
    )
    axes.set_ylim(max(FLOOR, min(row.distance for row in rows) / 3), 4)
    axes.legend(frameon=False, fontsize=8, loc="lower left")


def _draw_degrees(axes: Any, graph: str, found: Convergence) -> None:
    places = range(len(found.groups))
    for i, ((colour, marker, dash), depth) in enumerate(zip(STYLES, found.depths, strict=False)):
        errors = [group.errors[i] for group in found.groups]
        axes.plot(places, errors, color=colour, marker=marker, linestyle=dash, label=f"K = {depth}")
        bound = [
            errors[0] * (_middle(group) / _middle(found.groups[0])) ** -0.5
            for group in found.groups
        ]
        axes.plot(places, bound, color=colour, alpha=0.3, linewidth=1)
    axes.plot([], [], color="grey", alpha=0.5, linewidth=1, label="∝ 1/√(d + 1)")
    axes.set_xticks(
        places,
        [f"{span(group.low, group.high)}\n{group.nodes:,}" for group in found.groups],
        fontsize=8,
    )
    axes.set_yscale("log")
    axes.set(
        title=f"Do hubs arrive first? {graph}",
        xlabel="degree, and number of nodes",
        ylabel="mean |h_K - π| / π",
    )
    axes.legend(frameon=False, fontsize=8)


def _middle(group: DegreeGroup) -> float:
    """d + 1 of a node in the middle of the group, as the axis has it."""
    return sqrt(group.low * (group.high - 1)) + 1


def _draw_filter(
    axes: Any,
    graph: str,
    theta: Sequence[float],
    eigenvalues: Floats,
    responses: Mapping[str, Floats],
) -> None:
    grid = np.linspace(0, max(2.0, eigenvalues.max()), 200)
    axes.plot(
        grid,
        np.polynomial.polynomial.polyval(grid, theta),
        color="black",
        linewidth=1,
        label="Σ θ_k λ^k",
    )
    for i, ((colour, marker, _), (label, values)) in enumerate(
        zip(STYLES, responses.items(), strict=False)
    ):
        # The first two lie on each other: a ring around a dot shows both.
        ring = {"markersize": 11, "fillstyle": "none"} if i == 1 else {"alpha": 0.8}
        axes.plot(
            eigenvalues, values, color=colour, marker=marker, linestyle="none", label=label, **ring
        )
    axes.set(
        title=f"Can the network be this filter? {graph}",
        xlabel="eigenvalue λ of L̃",
        ylabel="response",
    )
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.35 * (high - low))  # room for the legend
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper right")


def _draw_lasso(axes: Any, rows: Sequence[Iterate]) -> None:
    colour, marker, dash = STYLES[0]
    axes.plot(
        [row.steps for row in rows],
        [row.objective for row in rows],
        color=colour,
        marker=marker,
        linestyle=dash,
    )
    axes.set_xscale("log", base=2)
    axes.set_xticks([row.steps for row in rows], [str(row.steps) for row in rows])
    axes.set(
        title="Are its layers ISTA's steps? sparse coding",
        xlabel="layers",
        ylabel="LASSO's objective",
    )
    worst = max(row.difference for row in rows)
    axes.annotate(
        f"GCNII* and ISTA differ by {worst:.0e} at most",
        (0.97, 0.92),
        xycoords="axes fraction",
        ha="right",
    )
