"""depth.png: accuracy against depth on Cora, ours and the paper's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from gcnii.errors import InputError
from gcnii.report.figures import LineStyle, depth_axis, figure, save, styles_of
from gcnii_paper.tables.cells import MeasuredCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A row of Table 3, what it is called here, and whose number the paper prints.
LINES = (("Cora GCNII", "GCNII", "GCNII"), ("Cora GCN, Kipf's", "Kipf's GCN", "DropEdge's GCN"))


def draw_depth(path: Path, cells: Iterable[MeasuredCell]) -> Path:
    """Our means with their standard deviation, and the numbers that Table 3 prints."""
    rows: dict[str, list[MeasuredCell]] = {row: [] for row, *_ in LINES}
    for cell in cells:
        if cell.table == "table3" and cell.row in rows:
            rows[cell.row].append(cell)
    if not any(rows.values()):
        raise InputError(
            "there is no run of GCNII or GCN on Cora by depth; "
            "`gcnii reproduce table3 --only cora-gcnii` trains some"
        )
    drawing = figure(1)
    (axes,) = drawing.axes
    styles = styles_of(name for _, name, _ in LINES)
    for row, ours, theirs in LINES:
        _draw(axes, sorted(rows[row], key=_layers), styles[ours], ours, theirs)
    depth_axis(axes, {_layers(cell) for line in rows.values() for cell in line})
    axes.set(title="Cora: accuracy against depth", ylim=(0, 95))
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return save(drawing, path)


def _layers(cell: MeasuredCell) -> int:
    return int(cell.column)


def _draw(
    axes: Axes, line: Sequence[MeasuredCell], style: LineStyle, ours: str, theirs: str
) -> None:
    colour, marker, dash = style
    depths, means = [_layers(cell) for cell in line], [cell.mean for cell in line]
    low, high = ([cell.mean + sign * (cell.sd or 0) for cell in line] for sign in (-1, 1))
    axes.plot(depths, means, color=colour, marker=marker, linestyle=dash, label=f"{ours}, here")
    axes.fill_between(depths, low, high, color=colour, alpha=0.15, linewidth=0)
    printed = [cell.printed.mean if cell.printed else nan for cell in line]
    (circles,) = axes.plot(depths, printed, marker, color=colour, label=f"{theirs}, paper")
    circles.set(markerfacecolor="none", markersize=10)
