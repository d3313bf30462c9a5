"""Cells of a table as numbers, days or text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from gcnii.columns.table import Numbers, Table, Texts, is_text
from gcnii.errors import DataError

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
TRUTH = {"true": 1.0, "false": 0.0}
DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{2}.*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}", re.ASCII
)
EXACT_BELOW = 2**24  # whole numbers that float32 holds exactly


def is_number(cell: str) -> bool:
    """Whether a cell is written as a number."""
    return NUMBER.fullmatch(cell) is not None


def is_date(cell: str) -> bool:
    """Whether a cell looks like a date."""
    return DATE.fullmatch(cell) is not None


def float32_of(values: NDArray[np.float64]) -> Numbers:
    """In the precision of X; numbers beyond it become infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def parsed(cells: Iterable[str | None]) -> Numbers:
    """Cells that are all numbers or missing."""
    return float32_of(np.array([np.nan if cell is None else float(cell) for cell in cells]))


def truths_of(cells: Texts) -> Numbers:
    """Cells that are all true, false or missing, as ones and zeros."""
    return np.array([np.nan if cell is None else TRUTH[cell.lower()] for cell in cells], np.float32)


def numbers_of(table: Table, name: str) -> Numbers:
    """A column as numbers; DataError at the first cell that is none."""
    cells = table.columns[name]
    if not is_text(cells):
        return np.asarray(cells, np.float32)
    wrong = [i for i, cell in enumerate(cells) if cell is not None and not _has_value(cell)]
    if wrong:
        raise DataError(
            f"the feature {name!r} is numeric in the model, but {cells[wrong[0]]!r} "
            f"in row {wrong[0]} of the nodes (counted from 0)"
        )
    return np.array(
        [np.nan if cell is None else TRUTH.get(cell.lower(), cell) for cell in cells], np.float32
    )


def _has_value(cell: str) -> bool:
    return is_number(cell) or cell.lower() in TRUTH


def texts_of(table: Table, name: str) -> Texts:
    """A column as text; DataError if it was read as numbers that cannot be written exactly."""
    cells = table.columns[name]
    if is_text(cells):
        return cells
    known = cells[~np.isnan(cells)]
    if (known % 1 != 0).any() or (np.abs(known) >= EXACT_BELOW).any():
        raise DataError(
            f"the feature {name!r} is categorical in the model but was read as numbers; "
            f"name it among the categorical columns when loading: categorical=[{name!r}]"
        )
    return np.array([None if np.isnan(cell) else str(int(cell)) for cell in cells], object)


def day_of(cell: str) -> float:
    """Days since 1970-01-01 of an ISO date or time; NaN if it is none."""
    try:
        moment = datetime.fromisoformat(cell)
    except ValueError:
        return np.nan
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return zoned.timestamp() / 86400


def day_numbers(table: Table, name: str) -> Numbers:
    """A column of ISO dates as days since 1970-01-01; DataError at the first that is none."""
    cells = texts_of(table, name)
    days = np.array([np.nan if cell is None else day_of(cell) for cell in cells], np.float32)
    for i in np.flatnonzero(np.isnan(days)):
        if cells[i] is not None:
            raise DataError(
                f"the date {name!r} is {cells[i]!r} in row {i} of the nodes (counted from 0); "
                "write dates as 2024-12-31"
            )
    return days
