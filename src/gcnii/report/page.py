"""report.html: one page that needs nothing else, with every cell of the paper's tables, its seeds and both figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gcnii import __version__
from gcnii.atomic import whole
from gcnii.experiments.cells import Cell, MeasuredCell, read_cells
from gcnii.experiments.tables import CELLS, TITLES
from gcnii.report.dots import dot_plot
from gcnii.report.figure import save
from gcnii.report.figures import Figure, figures

TABLES = ("table2", "table3", "table4", "table5")
DIGITS = {"table2": 1, "table3": 1, "table4": 2, "table5": 2}  # as printed

# A shape and a word, so that no verdict rests on its colour.
MARKS = {
    "replicates": "●",
    "higher": "▲",
    "lower": "▼",
    "undecided": "◆",
    "unprinted": "■",
    "stand-in": "□",
    "failed": "✕",
    "missing": "○",
}


@dataclass(frozen=True)
class Shown:
    """A cell as the page shows it: the question, and the answer where there is one."""

    cell: Cell
    measured: MeasuredCell | None

    @property
    def word(self) -> str:
        """One of MARKS."""
        if not self.measured or not self.measured.runs:
            return "missing"
        if self.measured.stand_in:
            return "stand-in"
        if self.measured.mean != self.measured.mean:
            return "failed"
        return str(self.measured.verdict or "unprinted")

    @property
    def ours(self) -> str:
        """`85.3 ± 0.5`."""
        if not self.measured or self.word in ("missing", "failed"):
            return "–"
        digits = DIGITS[self.cell.table]
        spread = "" if self.measured.sd is None else f" ± {self.measured.sd:.{digits}f}"
        return f"{self.measured.mean:.{digits}f}{spread}"

    @property
    def printed(self) -> str:
        """`85.5 ± 0.5`, as many digits as the paper gives."""
        number = self.cell.printed
        if not number:
            return "–"
        digits = DIGITS[self.cell.table]
        return f"{number.mean:.{digits}f}" + (f" ± {number.sd:.{digits}f}" if number.sd else "")

    def plot(self, width: int = 104, radius: float = 2) -> str:
        """The seeds as dots; nothing printed to compare a stand-in with."""
        if not self.measured:
            return ""
        return dot_plot(self.measured.test, None if self.measured.stand_in else self.cell.printed, width, radius)

    def every(self, field: str) -> str:
        """The different values of a field over the runs: devices, versions, commits."""
        values = [getattr(run, field) for run in self.measured.runs] if self.measured else []
        words = [
            ", ".join(f"{name} {version}" for name, version in value.items() if version)
            if isinstance(value, dict)
            else str(value)
            for value in values
            if value
        ]
        return "; ".join(dict.fromkeys(words)) or "not recorded"


@dataclass(frozen=True)
class Grid:
    """A table of the paper: in parts of rows by name, with a cell (None where the paper has none) for each column."""

    name: str
    title: str
    columns: tuple[str, ...]
    parts: dict[str, dict[str, list[Shown | None]]]

    @property
    def shown(self) -> list[Shown]:
        """Every cell."""
        return [cell for rows in self.parts.values() for row in rows.values() for cell in row if cell]

    @property
    def counts(self) -> Counter[str]:
        """How many of the paper's own cells have each word."""
        return Counter(shown.word for shown in self.shown if not shown.cell.extra)


def grid(table: str, measured: Iterable[MeasuredCell]) -> Grid:
    """The table with what was measured of it."""
    found = {one.cell: one for one in measured}
    columns = tuple(dict.fromkeys(cell.column for cell in CELLS[table]))
    parts: dict[str, dict[str, list[Shown | None]]] = {}
    for cell in CELLS[table]:
        part, name = _place(cell)
        row = parts.setdefault(part, {}).setdefault(name, [None] * len(columns))
        row[columns.index(cell.column)] = Shown(cell, found.get(cell.id))
    return Grid(table, TITLES[table], columns, parts)


def _place(cell: Cell) -> tuple[str, str]:
    """Part and row: where the columns are no graphs, each graph is a part; what is ours alone stands below."""
    graph = cell.graph.capitalize()
    if cell.extra:
        return "Not in the paper", cell.row
    return (graph, cell.row.removeprefix(f"{graph} ")) if cell.row.startswith(f"{graph} ") else ("", cell.row)


def page(measured: Iterable[MeasuredCell], drawn: Iterable[Figure]) -> str:
    """The HTML."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    measured = list(measured)
    templates = Environment(
        loader=PackageLoader("gcnii.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("page.html").render(
        grids=[grid(table, measured) for table in TABLES],
        figures=list(drawn),
        marks=MARKS,
        runs=sum(one.n for one in measured),
        version=__version__,
    )


def write_page(results: Path, out: Path) -> list[Path]:
    """Write the page of results/cells, and beside it each figure as SVG and PNG."""
    if not (results / "cells").is_dir():
        raise ValueError(f"{results} has no folder cells; give the folder that `gcnii reproduce export` writes below")
    measured = read_cells(results / "cells")
    drawn = figures(measured)
    with whole(out) as temporary:
        temporary.write_text(page(measured, drawn), "utf-8")
    pictures = [(one, out.with_name(f"{one.name}{kind}")) for one in drawn if one.drawing for kind in (".svg", ".png")]
    return [out, *(save(one.drawing, path) for one, path in pictures)]
