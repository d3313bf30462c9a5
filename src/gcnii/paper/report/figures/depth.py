"""depth.png: accuracy against depth on Cora, ours and the paper's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gcnii.analysis.report.style import STYLES, figure, save
from gcnii.errors import InputError
from gcnii.paper.tables.cells import MeasuredCell

# A row of Table 3, what it is called here, and whose number the paper prints.
LINES = (("Cora GCNII", "GCNII", "GCNII"), ("Cora GCN, Kipf's", "Kipf's GCN", "DropEdge's GCN"))


def draw_depth(path: Path, cells: Iterable[MeasuredCell]) -> Path:
    """Measured here, with its standard deviation, and as Table 3 prints it."""
    cells = [
        cell for cell in cells if cell.table == "table3" and cell.row in {row for row, *_ in LINES}
    ]
    if not cells:
        raise InputError(
            "there is no run of GCNII or GCN on Cora by depth; `gcnii reproduce table3 --only cora-gcnii` makes some"
        )
    drawing = figure(1)
    (axes,) = drawing.axes
    for (colour, marker, dash), (row, ours, theirs) in zip(STYLES, LINES, strict=False):
        line = sorted(
            (cell for cell in cells if cell.row == row), key=lambda cell: int(cell.column)
        )
        depths, means = [int(cell.column) for cell in line], [cell.mean for cell in line]
        low, high = ([cell.mean + sign * (cell.sd or 0) for cell in line] for sign in (-1, 1))
        axes.plot(depths, means, color=colour, marker=marker, linestyle=dash, label=f"{ours}, here")
        axes.fill_between(depths, low, high, color=colour, alpha=0.15, linewidth=0)
        printed = [cell.printed.mean if cell.printed else float("nan") for cell in line]
        axes.plot(
            depths,
            printed,
            marker,
            color=colour,
            markerfacecolor="none",
            markersize=10,
            label=f"{theirs}, paper",
        )
        axes.set_xscale("log", base=2)
        axes.set_xticks(depths, [str(layers) for layers in depths])
    axes.set(
        xlabel="layers",
        ylabel="test accuracy (%)",
        title="Cora: accuracy against depth",
        ylim=(0, 95),
    )
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return save(drawing, path)
