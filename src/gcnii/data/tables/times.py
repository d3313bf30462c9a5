"""Columns of times: numbers, or ISO dates, of nodes and of edges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcnii.data.tables.reading import Rows
from gcnii.errors import InputError, Problems
from gcnii.graph.columns import day_of, is_number, parsed
from gcnii.graph.times import Times


def times_of(rows: Rows, column: str, problems: Problems) -> tuple[Times, bool]:
    """(n,) the times of a column, NaN where a cell is empty; and whether they are dates.

    A cell that is neither a number nor a date is noted among the problems.
    """
    if column not in rows.header:
        problems.add(rows.lacks(column, "times"))
        return np.full(len(rows), np.nan), False
    cells = rows.texts(column).tolist()
    numbers = sum(is_number(cell) for cell in cells if cell is not None)
    dated = 2 * numbers < len(cells) - cells.count(None)  # what most are, and all have to be
    read = day_of if dated else lambda cell: parsed([cell])[0]
    times = np.array([np.nan if cell is None else read(cell) for cell in cells])
    problems.add_each(
        [i for i, cell in enumerate(cells) if cell is not None and not np.isfinite(times[i])],
        lambda i: (
            f"{rows.place(i)}: the time {column!r} is {cells[i]!r}; write all times as numbers, or "
            "all as dates such as 2024-12-31, and leave the cell empty where it is unknown"
        ),
    )
    return times, dated


def cuts_of(cuts: Sequence[str], *, dated: bool) -> tuple[float, float]:
    """The two times of `time_cuts`, which are read as the column is."""
    val, test = (day_of(cut) if dated else parsed([cut])[0] for cut in cuts)
    if not val < test:
        kind = "dates" if dated else "numbers"
        raise InputError(
            f"time_cuts must be two {kind}, as the times are, the first of them earlier, "
            f"got {cuts[0]!r} and {cuts[1]!r}"
        )
    return float(val), float(test)
