"""The paper's tables in Markdown, with a verdict's mark between our number and the printed one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite

from gcnii.paper.report.grid import MARKS, Grid, TableCell, grid, notes
from gcnii.paper.tables.cells import MeasuredCell
from gcnii.paper.tables.registry import TITLES

OPENING = """\
# Results

Made by `gcnii report readme` from results/cells, which holds every seed. In each cell: our mean ± standard deviation
over seeds 0, 1, … (runs), a mark, and the printed number. `gcnii reproduce` runs what is missing; `gcnii report html`
shows the seeds, settings and command of each cell.

{legend}: `experiments/verdict.py` has the rule. A stand-in has the shape of the paper's graph and no more.
Where several processes shared a GPU, their times are added up.
"""


def scores_table(cells: Iterable[MeasuredCell]) -> str:
    """Table 2 without the rows that are ours alone; then what its marks mean."""
    table = grid("table2", cells)
    return f"{_rows(table, '')}\n{legend(shown.word for shown in table.shown if not shown.cell.extra)}.\n"


def results_page(cells: Iterable[MeasuredCell]) -> str:
    """Every table and figure of the paper, with all that was measured of it."""
    cells = list(cells)
    grids = [grid(name, cells) for name in TITLES]
    return "\n".join([OPENING.format(legend=legend(MARKS)), _counts(grids), *map(_section, grids)])


def legend(words: Iterable[str]) -> str:
    """`● replicates, ▲ higher`, in the order of MARKS."""
    words = set(words)
    return ", ".join(f"{mark} {word}" for word, mark in MARKS.items() if word in words)


def _counts(grids: Iterable[Grid]) -> str:
    """How many of the paper's own cells came out how."""
    rows = [["", *MARKS.values(), "all"], ["---"] * (len(MARKS) + 2)]
    for table in grids:
        counts = table.counts
        rows.append(
            [
                table.title.split(":")[0],
                *(str(counts[word] or "") for word in MARKS),
                str(counts.total()),
            ]
        )
    return "".join(f"|{'|'.join(row)}|\n" for row in rows)


def _section(table: Grid) -> str:
    """A table a part, and what must be known of its cells."""
    parts = (
        f"{f'### {part}' + chr(10) * 2 if part else ''}{_rows(table, part)}" for part in table.parts
    )
    known = [
        f"- {note}\n" for note in notes(shown.measured for shown in table.shown if shown.measured)
    ]
    cost = [f"Behind it: {table.cost}.\n"] if table.cost else []
    return "\n".join([f"## {table.title}\n", *parts, *(["".join(known)] if known else []), *cost])


def _rows(table: Grid, part: str) -> str:
    rows = [["method", *table.columns], ["---"] * (len(table.columns) + 1)]
    rows += [[name, *map(_cell, row)] for name, row in table.parts[part].items()]
    return "".join(f"|{'|'.join(row)}|\n" for row in rows)


def _cell(shown: TableCell | None) -> str:
    return "–" if shown is None else " ".join(cell_words(shown))


def cell_words(shown: TableCell, runs: bool = True) -> Iterator[str]:
    """`85.3±0.5`, `(100)` runs, `●`, `85.5±0.5`, as far as there are such; `failed`, `(2/3)` where
    a run diverged.
    """
    if shown.measured and shown.word == "failed":
        yield from ("failed", f"({sum(map(isfinite, shown.measured.test))}/{shown.measured.n})")
    elif shown.measured and shown.word != "missing":
        yield from (shown.ours.replace(" ", ""), *([f"({shown.measured.n})"] if runs else []))
    yield MARKS[shown.word]
    if shown.cell.printed:
        yield shown.printed.replace(" ", "")
