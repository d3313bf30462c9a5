"""The paper's tables with our results: for each cell a word, our number and the printed one.

A cell's seeds are dots over the printed mean and its standard deviation, in a small drawing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from markupsafe import Markup

from gcnii_paper.documents import duration, software
from gcnii_paper.tables.cells import Cell, MeasuredCell
from gcnii_paper.tables.printed import Printed
from gcnii_paper.tables.registry import CELLS, TITLES
from gcnii_paper.verdict import Verdict, verdicts

HEIGHT = 12  # radii of a dot
LEAST = 1.0  # points to either side: a narrower scale would make noise look large

Scale = Callable[[float], float]  # from a score to a place on the x axis


def dot_plot(
    scores: Sequence[float],
    mean: float,
    printed: Printed | None,
    width: int = 104,
    radius: float = 2,
) -> Markup:
    """An <svg> with one dot per seed, a tall line at the mean, and what the paper prints.

    The printed mean is a dashed line, its standard deviation a band.  There is no line at a mean
    that is NaN, as it is if a run has no score.
    """
    scores = sorted(filter(isfinite, scores))
    if not scores:
        return Markup()
    height, x = HEIGHT * radius, _scale(scores, mean, printed, width, radius)
    parts = "".join(_parts(scores, mean, printed, x, radius))
    size = f'viewBox="0 0 {width} {height:g}" width="{width}" height="{height:g}"'
    title = _title(scores, mean, printed)
    return Markup(f'<svg class="plot" {size} role="img"><title>{title}</title>{parts}</svg>')


def _scale(
    scores: Sequence[float], mean: float, printed: Printed | None, width: int, radius: float
) -> Scale:
    """The printed mean is in the middle, else our own, else the lowest score."""
    own = mean if isfinite(mean) else scores[0]
    centre, sd = (printed.mean, printed.sd or 0) if printed else (own, 0)
    reach = 1.1 * max(abs(scores[0] - centre), abs(scores[-1] - centre), sd, LEAST)

    def x(score: float) -> float:
        return round(radius + (width - 2 * radius) * (score - centre + reach) / (2 * reach), 1)

    return x


def _parts(
    scores: Sequence[float], mean: float, printed: Printed | None, x: Scale, radius: float
) -> Iterator[str]:
    height = HEIGHT * radius
    if printed:
        sd = printed.sd or 0
        left, right = x(printed.mean - sd), x(printed.mean + sd)
        size = f'width="{right - left:.1f}" height="{height}"'
        yield f'<rect class="band" x="{left}" y="0" {size}/>'
        yield f'<path class="printed" d="M{x(printed.mean)} 0v{height}"/>'
    dots = _stacked([x(score) for score in scores], height, radius)
    places = " ".join(f"M{a} {b}h0" for a, b in dots)
    yield f'<path class="dots" stroke-width="{2 * radius}" d="{places}"/>'
    if isfinite(mean):
        yield f'<path class="mean" d="M{x(mean)} 1v{height - 2}"/>'


def _title(scores: Sequence[float], mean: float, printed: Printed | None) -> str:
    title = f"{_count(len(scores))} from {scores[0]:.1f} to {scores[-1]:.1f}"
    if isfinite(mean):
        title += f", mean {mean:.1f}"
    if printed:
        title += f"; printed {printed.mean:g}" + (f" ± {printed.sd:g}" if printed.sd else "")
    return title


def _stacked(places: Sequence[float], height: float, radius: float) -> list[tuple[float, float]]:
    """The dots' (x, y); those that would overlap go below and above the middle in turn."""
    seen: Counter[int] = Counter()
    dots = []
    for place in places:
        column = round(place / (2 * radius))
        step = seen[column]
        seen[column] += 1
        away = (step + 1) // 2 * radius * (1 if step % 2 else -1)
        dots.append((place, round(min(max(height / 2 + away, radius), height - radius), 1)))
    return dots


def _count(seeds: int) -> str:
    return "1 seed" if seeds == 1 else f"{seeds} seeds"


# digits after the point, as printed
DIGITS = {"table2": 1, "table3": 1, "table4": 2, "table5": 2, "figure1": 1, "figure2": 1}

# A shape and a word, so that no verdict rests on its colour.
MARKS = {
    "replicates": "●",
    "higher": "▲",
    "lower": "▼",
    "undecided": "◆",
    "other settings": "◇",
    "unprinted": "■",
    "stand-in": "□",
    "failed": "✕",
    "missing": "○",
}


@dataclass(frozen=True)
class TableCell:
    """A cell as the page shows it: what is asked, and what was measured, if anything was."""

    cell: Cell
    measured: MeasuredCell | None
    verdict: Verdict | None = None

    @property
    def word(self) -> str:
        if not self.measured or not self.measured.runs:
            return "missing"
        if self.measured.stand_in:
            return "stand-in"
        if self.measured.mean != self.measured.mean:
            return "failed"
        return str(self.verdict or "unprinted")

    @property
    def number(self) -> tuple[str, Printed | None]:
        """The same for cells that have the same runs and the same printed number."""
        return (self.measured.settings_hash if self.measured else self.cell.id), self.cell.printed

    @property
    def runs(self) -> str:
        """`100`, or `10/39` if the rule asks for 39."""
        if not self.measured:
            return "0"
        n, needs = self.measured.n, self.verdict.needs if self.verdict else 0
        return f"{n}/{needs}" if n < needs else str(n)

    @property
    def difference(self) -> str:
        """`-0.2±0.1`: ours minus the printed one, and half of its 90 % interval."""
        if not self.verdict:
            return ""
        digits, half = DIGITS[self.cell.table], (self.verdict.high - self.verdict.low) / 2
        spread = f"±{half:.{digits}f}" if isfinite(half) else ""
        return f"{self.verdict.difference:+.{digits}f}{spread}"

    @property
    def ours(self) -> str:
        """`85.3 ± 0.5`."""
        if not self.measured or self.word in ("missing", "failed"):
            return "–"
        return self._number(self.measured.mean, self.measured.sd)

    @property
    def printed(self) -> str:
        """`85.5 ± 0.5`, with the paper's number of digits."""
        number = self.cell.printed
        return self._number(number.mean, number.sd) if number else "–"

    def _number(self, mean: float, sd: float | None) -> str:
        digits = DIGITS[self.cell.table]
        return f"{mean:.{digits}f}" + ("" if sd is None else f" ± {sd:.{digits}f}")

    def plot(self, width: int = 104, radius: float = 2) -> str:
        """The seeds as dots; without the printed number for a stand-in."""
        if not self.measured:
            return ""
        printed = None if self.measured.stand_in else self.cell.printed
        return dot_plot(self.measured.test, self.measured.mean, printed, width, radius)

    def every(self, field: str) -> str:
        """The values of a field over the runs, such as their devices, with the number of runs."""
        runs = self.measured.runs if self.measured else ()
        words = Counter(_recorded(getattr(run, field)) for run in runs)
        if len(words) < 2:
            return "".join(words)
        return "; ".join(f"{value} ({count} runs)" for value, count in words.items())


def _recorded(value: str | dict[str, str | None] | None) -> str:
    if isinstance(value, dict):
        return software(value)
    return value or "not recorded"


@dataclass(frozen=True)
class Grid:
    """A table of the paper; `parts` has its rows by part and name, with one cell per column.

    A cell is None where the paper has none.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    parts: dict[str, dict[str, list[TableCell | None]]]

    @property
    def shown(self) -> list[TableCell]:
        return [
            cell for rows in self.parts.values() for row in rows.values() for cell in row if cell
        ]

    @property
    def counts(self) -> Counter[str]:
        """The number of the paper's own cells with each word."""
        return Counter(shown.word for shown in self.shown if not shown.cell.extra)

    @property
    def cost(self) -> str:
        """By device, the number of runs and their time; a run that cells share counts once."""
        cells = [shown.measured for shown in self.shown if shown.measured]
        runs = {(cell.settings_hash, run.seed): run for cell in cells for run in cell.runs}.values()
        seconds: dict[str, list[float]] = {}
        for run in runs:
            seconds.setdefault(run.device, []).append(run.seconds)
        return ", ".join(
            f"{len(each):,} runs on {on} ({duration(sum(each))})"
            for on, each in sorted(seconds.items())
        )


def grid(table: str, measured: Iterable[MeasuredCell]) -> Grid:
    """The table with the measured cells in their places.

    Verdicts are corrected for all printed numbers among the measured cells, of any table.
    """
    found = {one.cell: one for one in measured}
    known = judged(found.values())
    columns = tuple(dict.fromkeys(cell.column for cell in CELLS[table]))
    parts: dict[str, dict[str, list[TableCell | None]]] = {}
    for cell in CELLS[table]:
        part, name = _place(cell)
        row = parts.setdefault(part, {}).setdefault(name, [None] * len(columns))
        row[columns.index(cell.column)] = TableCell(cell, found.get(cell.id), known.get(cell.id))
    return Grid(table, TITLES[table], columns, parts)


def judged(measured: Iterable[MeasuredCell]) -> dict[str, Verdict]:
    """cell → its verdict among these; none on settings of ours."""
    return verdicts(measured, (cell.id for own in CELLS.values() for cell in own if cell.ours))


def _place(cell: Cell) -> tuple[str, str]:
    """Part and row: if the rows name graphs, each graph is a part; our own rows come last."""
    graph = cell.graph.capitalize()
    if cell.extra:
        return "Not in the paper", cell.row
    if cell.row.startswith(f"{graph} "):
        return graph, cell.row.removeprefix(f"{graph} ")
    return "", cell.row


def notes(cells: Iterable[Cell | MeasuredCell]) -> list[str]:
    """The cells' notes: each once, after the rows that it is about, with columns if not all."""
    cells = list(cells)
    columns = Counter(cell.row for cell in cells)
    about: dict[str, dict[str, list[str]]] = {}
    for cell in cells:
        if cell.note:
            about.setdefault(cell.note, {}).setdefault(cell.row, []).append(cell.column)

    def place(row: str, some: list[str]) -> str:
        return row if len(some) == columns[row] else f"{row} ({', '.join(some)})"

    return [
        f"{', '.join(place(*each) for each in rows.items())}: {note}"
        for note, rows in about.items()
    ]
