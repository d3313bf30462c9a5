"""The paper's tables with our numbers: for the terminal, and as one JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from rich.table import Table

from gcnii.analysis import curves
from gcnii.experiments.cells import MeasuredCell
from gcnii.experiments.tables import TITLES
from gcnii.report.grid import notes

MARKS = {"replicates": "=", "higher": "+", "lower": "-", "undecided": "?"}
LEGEND = "ours ± sd (runs) · the paper's   = replicates, + higher, - lower, ? undecided: see gcnii.experiments.verdict"


def reproduced_tables(cells: Sequence[MeasuredCell]) -> Iterator[Table | str]:
    """Each of the paper's tables with its title, those of degrees and the notes; then what the marks mean."""
    for name, title in TITLES.items():
        own = [cell for cell in cells if cell.table == name]
        if own:
            yield from (title, _table(own), *_degrees(own))
            yield from (f"  {note}" for note in notes(own))
            yield ""
    yield LEGEND


def _table(cells: list[MeasuredCell]) -> Table:
    columns = list(dict.fromkeys(cell.column for cell in cells))
    table = Table("", *columns, box=None, header_style="bold")
    texts = {(cell.row, cell.column): _text(cell) for cell in cells}
    below = {cell.row: cell.extra for cell in cells}
    for row in sorted(below, key=lambda row: below[row]):  # those that the paper does not have come last
        table.add_row(row, *(texts.get((row, column), "") for column in columns))
    return table


def _text(cell: MeasuredCell) -> str:
    printed = "" if cell.printed is None else f" · {cell.printed.mean}"
    if cell.printed and cell.printed.sd:
        printed += f"±{cell.printed.sd}"
    return f"{_ours(cell)}{printed} {MARKS[cell.verdict.word] if cell.verdict else ''}".rstrip()


def _ours(cell: MeasuredCell) -> str:
    if not isfinite(cell.mean):
        return "–"
    return f"{cell.mean:.1f}" + (f"±{cell.sd:.1f}" if cell.sd is not None else "") + f" ({cell.n})"


def _degrees(cells: list[MeasuredCell]) -> Iterator[Table | str]:
    """Figure 1: for each graph, accuracy of all nodes by depth and group of degrees."""
    for row in dict.fromkeys(cell.row for cell in cells if cell.runs and cell.runs[0].by_degree):
        lines = [
            curves(cell.graph, cell.settings["layers"], [run.by_degree or [] for run in cell.runs])[0]
            for cell in cells
            if cell.row == row and cell.runs
        ]
        groups = lines[0].groups
        table = Table("layers", *(f"{group.low}–{group.high - 1:g}" for group in groups), box=None)
        table.add_row("(nodes)", *(str(group.nodes) for group in groups))
        for line in lines:
            table.add_row(str(line.layers), *(f"{100 * group.accuracy:.1f}" for group in line.groups))
        yield from (f"{row}: accuracy by degree (%)", table)


def as_json(cells: Sequence[MeasuredCell]) -> dict[str, Any]:
    """Every cell with its runs, mean, standard deviation and verdict."""
    return {"cells": [_cell(cell) for cell in cells]}


def _cell(cell: MeasuredCell) -> dict[str, Any]:
    verdict = cell.verdict and {name: _finite(value) for name, value in asdict(cell.verdict).items()}
    summary = {"mean": _finite(cell.mean), "sd": cell.sd, "n": cell.n, "verdict": verdict}
    return cell.record() | summary


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value
