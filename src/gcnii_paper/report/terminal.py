"""The paper's tables with our numbers: for the terminal, and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import get_args

from rich.console import Console, ConsoleOptions

from gcnii.analysis.degree import span
from gcnii.files import Document, json_value
from gcnii.report.tables import PlainTable, plain_table
from gcnii_paper.report.figures import degree_curves
from gcnii_paper.report.grid import TableCell, grid, judged, notes
from gcnii_paper.report.markdown import cell_words, legend
from gcnii_paper.tables.cells import MeasuredCell
from gcnii_paper.tables.registry import TITLES
from gcnii_paper.verdict import MARGIN, Verdict, Word

WIDE = 1000  # columns, more than any table needs


@dataclass(frozen=True)
class TablePart:
    """Rows of a table.

    If they are too wide, the cells' numbers of runs are left out.
    """

    name: str
    columns: list[str]
    rows: dict[str, dict[str, TableCell]]  # by column

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[PlainTable | str]:
        table = self._table(runs=True)
        natural = console.measure(table, options=options.update_width(WIDE)).maximum
        if natural > options.max_width:
            yield f"  {self._runs} runs per cell"
            table = self._table(runs=False)
        yield table

    def _table(self, runs: bool) -> PlainTable:
        table = plain_table(self.name, *self.columns)
        for name, row in self.rows.items():
            cells = (
                " ".join(cell_words(row[column], runs)) if column in row else ""
                for column in self.columns
            )
            table.add_row(name, *cells)
        return table

    @property
    def _runs(self) -> str:
        counts = {
            shown.measured.n
            for row in self.rows.values()
            for shown in row.values()
            if shown.measured
        }
        return " to ".join(str(n) for n in sorted({min(counts), max(counts)}))


def reproduced_tables(cells: Sequence[MeasuredCell]) -> Iterator[TablePart | PlainTable | str]:
    """Each of the paper's tables with its title, its accuracies by degree and its notes; then the
    legend of the marks.
    """
    words: set[str] = set()
    for name, title in TITLES.items():
        own = [cell for cell in cells if cell.table == name]
        if own:
            parts = list(_parts(name, cells))
            words.update(
                shown.word for part in parts for row in part.rows.values() for shown in row.values()
            )
            yield from (title, *parts, *_degrees(own), *(f"  {note}" for note in notes(own)), "")
    yield _legend(words)


def _parts(name: str, cells: Sequence[MeasuredCell]) -> Iterator[TablePart]:
    """The parts of the table that have one of the cells."""
    table = grid(name, cells)
    for part, rows in table.parts.items():
        chosen = {
            row: {
                column: one
                for column, one in zip(table.columns, shown, strict=True)
                if one and one.measured
            }
            for row, shown in rows.items()
        }
        if any(chosen.values()):
            columns = [
                column
                for column in table.columns
                if any(column in shown for shown in chosen.values())
            ]
            yield TablePart(part, columns, {row: shown for row, shown in chosen.items() if shown})


def _legend(words: set[str]) -> str:
    """What stands in a cell, and what the marks mean."""
    parts = [f"ours±sd (runs/needed), mark, the paper's: {legend(words)}"]
    if "failed" in words:
        parts.append("failed (finite/all runs)")
    if words.intersection(get_args(Word)):
        parts.append(f"margin: the sd that the paper prints, else {MARGIN:g} point")
        parts.append("higher and lower: corrected for the printed numbers above")
    return "; ".join(parts)


def _degrees(cells: list[MeasuredCell]) -> Iterator[PlainTable | str]:
    """Figure 1: for each graph, the accuracy of all nodes by depth and group of degrees."""
    lines = [line for line in degree_curves(cells) if line.who == "all"]
    for graph in dict.fromkeys(line.graph for line in lines):
        own = [line for line in lines if line.graph == graph]
        table = plain_table("degree", "nodes", *(str(line.layers) for line in own))
        for groups in zip(*(line.groups for line in own), strict=True):
            scores = (f"{100 * group.accuracy:.1f}" for group in groups)
            table.add_row(span(groups[0].low, groups[0].high), str(groups[0].nodes), *scores)
        yield from (f"{graph.capitalize()}: accuracy by degree and layers (%)", table)


def as_json(cells: Sequence[MeasuredCell]) -> Document:
    """Every cell with its runs, mean, standard deviation and verdict."""
    known = judged(cells)
    return {"cells": [_cell(cell, known.get(cell.cell)) for cell in cells]}


def _cell(cell: MeasuredCell, found: Verdict | None) -> Document:
    verdict = found and {name: json_value(value) for name, value in asdict(found).items()}
    numbers = {"mean": json_value(cell.mean), "sd": cell.sd, "n": cell.n}
    return cell.record() | numbers | {"verdict": verdict}
