"""The paper's tables in Markdown, with a verdict's mark between our number and the printed one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from gcnii_paper.report.beyond.rows import beyond_rows
from gcnii_paper.report.grid import MARKS, Grid, TableCell, grid, notes
from gcnii_paper.report.html.conclusions import conclusions
from gcnii_paper.tables.cells import MeasuredCell
from gcnii_paper.tables.registry import TITLES

OPENING = """\
# Results

{conclusions}
[How verdicts are made](explanation/verdicts.md) has the rule behind these words, and [what did not
replicate](explanation/not-replicated.md) the reasons.

## How to read the tables

Made by `gcnii report readme` from results/cells, which holds every seed. In each cell: our mean ±
standard deviation over seeds 0, 1, … (number of runs), a mark, and the printed number.
`gcnii reproduce` trains what is missing; `gcnii report html` shows the seeds, settings and command
of each cell.

{legend}: `gcnii_paper/verdict.py` has the rule. A stand-in only has the shape of the paper's graph.
Where several processes shared a GPU, their times are added up.
"""


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, one line per row."""
    return "".join(f"|{'|'.join(row)}|\n" for row in (heads, ["---"] * len(heads), *rows))


def scores_table(cells: Iterable[MeasuredCell]) -> str:
    """What the marks mean, then Table 2 without the rows that are ours alone."""
    table = grid("table2", cells)
    words = {shown.word for shown in table.shown if not shown.cell.extra}
    return f"Marks: {legend(words)}.\n\n{_rows(table, '')}"


def results_page(cells: Iterable[MeasuredCell]) -> str:
    """Conclusions; then every table and figure of the paper, with our numbers."""
    cells = list(cells)
    grids = [grid(name, cells) for name in TITLES]
    short = conclusions(cells, grids, beyond_rows(cells))
    opening = OPENING.format(legend=legend(MARKS), conclusions=short)
    return "\n".join([opening, _counts(grids), *map(_section, grids)])


def legend(words: Iterable[str]) -> str:
    """`● replicates, ▲ higher`, in the order of MARKS."""
    words = set(words)
    return ", ".join(f"{mark} {word}" for word, mark in MARKS.items() if word in words)


def _counts(grids: Iterable[Grid]) -> str:
    """For each table, the number of the paper's own cells with each mark."""

    def row(table: Grid) -> list[str]:
        counts = [str(table.counts[word] or "") for word in MARKS]
        return [table.title.split(":")[0], *counts, str(table.counts.total())]

    return markdown_table(["", *MARKS.values(), "all"], map(row, grids))


def _section(table: Grid) -> str:
    """One table per part, then the notes on its cells."""
    parts = (
        f"### {part}\n\n{_rows(table, part)}" if part else _rows(table, part)
        for part in table.parts
    )
    known = [
        f"- {note}\n" for note in notes(shown.measured for shown in table.shown if shown.measured)
    ]
    cost = [f"Cost: {table.cost}.\n"] if table.cost else []
    return "\n".join([f"## {table.title}\n", *parts, *(["".join(known)] if known else []), *cost])


def _rows(table: Grid, part: str) -> str:
    rows = ([name, *map(_cell, row)] for name, row in table.parts[part].items())
    return markdown_table(["method", *table.columns], rows)


def _cell(shown: TableCell | None) -> str:
    return "–" if shown is None else " ".join(cell_words(shown))


def cell_words(shown: TableCell, runs: bool = True) -> Iterator[str]:
    """`85.3±0.5`, `(100)` runs, `●` and `85.5±0.5`, as far as the cell has them.

    If a run diverged, the first two are `failed` and `(2/3)`, the share of runs that did not.
    """
    if shown.measured and shown.word == "failed":
        yield from ("failed", f"({sum(map(isfinite, shown.measured.test))}/{shown.measured.n})")
    elif shown.measured and shown.word != "missing":
        yield from (shown.ours.replace(" ", ""), *([f"({shown.measured.n})"] if runs else []))
    yield MARKS[shown.word]
    if shown.cell.printed:
        yield shown.printed.replace(" ", "")
