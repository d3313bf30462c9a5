"""What each column of a table is taken for, judged by its cells and by what the user says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gcnii.columns.cells import TRUTH, day_of, is_date, is_number, parsed, truths_of
from gcnii.columns.column import Column, Columns
from gcnii.columns.table import Cells, Numbers, Table, Texts, is_text
from gcnii.columns.words import learn_words
from gcnii.errors import Problems

NO_NUMBERS = ("nan", "inf", "infinity")  # written by programs where a number was expected
TAKEN_FOR = ("numeric", "categorical", "date", "text")  # what the user may say of a column
MOST_CATEGORIES = 100  # of one column; the others share a feature


@dataclass(frozen=True, kw_only=True)
class Hints:
    """The columns that the user says something about: not to be used, or what they are."""

    drop: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    date: tuple[str, ...] = ()
    text: tuple[str, ...] = ()

    @property
    def as_text(self) -> set[str]:
        """The columns whose cells are read as they are written."""
        return {*self.categorical, *self.date, *self.text}


@dataclass(frozen=True)
class Learner:
    """Judges the columns of a table; what cannot be used is noted among the problems.

    owner  what messages call the table: "nodes.csv"
    place  where row i is: "row 7 of nodes.csv"
    """

    owner: str
    place: Callable[[int], str]
    problems: Problems

    def columns(self, table: Table, hints: Hints) -> tuple[Table, Columns]:
        """What the columns are, and the table with numbers in those that turned out numeric."""
        cells = dict(table.columns)
        found = [Column(name, "ignored", reason="as asked") for name in hints.drop]
        said = {name: kind for kind in TAKEN_FOR for name in getattr(hints, kind)}
        for name in cells:
            column, cells[name] = self._column(name, cells[name], said.get(name, ""))
            found.append(column)
        if table.matrix is not None:
            found.append(_matrix_column(table.matrix, table.names))
        if all(column.kind == "ignored" for column in found):
            found = [_kept_constant(column, cells) for column in found]
        return Table(table.n, cells, table.matrix, table.names), Columns(tuple(found))

    def _column(self, name: str, cells: Cells, said: str) -> tuple[Column, Cells]:
        if is_text(cells):
            return self._text_column(name, cells, said)
        numbers = np.asarray(cells, np.float32)
        return self._numeric(name, numbers), numbers

    def _text_column(self, name: str, cells: Texts, said: str) -> tuple[Column, Cells]:
        known = [cell for cell in cells if cell is not None]
        if not known:
            return Column(name, "ignored", reason="empty"), cells
        if said == "text":
            return _words(name, cells), cells
        if said == "date":
            return self._date(name, cells), cells
        if said == "categorical":
            return _categorical(name, cells), cells
        if said != "numeric" and all(cell.lower() in TRUTH for cell in known):
            return _numbers(name, truths_of(cells)), truths_of(cells)
        if said == "numeric" or 2 * sum(map(_meant_as_number, known)) >= len(known):
            return self._words_among_numbers(name, cells)
        if all(map(is_date, known)):
            reason = f"dates; {flag('date', name)} takes them as days"
            return Column(name, "ignored", reason=reason), cells
        return _categorical(name, cells), cells

    def _numeric(self, name: str, cells: Numbers) -> Column:
        self._refuse(name, np.flatnonzero(np.isinf(cells)), lambda i: "infinite or too large")
        return _numbers(name, cells)

    def _words_among_numbers(self, name: str, cells: Texts) -> tuple[Column, Cells]:
        wrong = [i for i, cell in enumerate(cells) if cell is not None and not is_number(cell)]
        self._refuse(name, wrong, lambda i: repr(cells[i]))
        fitting = cells.copy()
        fitting[wrong] = None
        numbers = parsed(fitting)
        return self._numeric(name, numbers), numbers

    def _refuse(self, name: str, rows: Iterable[int], came: Callable[[int], str]) -> None:
        self.problems.add_each(
            rows,
            lambda i: (
                f"{self.place(i)}: the feature {name!r} is {came(i)}; it must be a finite number "
                f"or empty; if it is no number at all, say {flag('categorical', name)}"
            ),
        )

    def _date(self, name: str, cells: Texts) -> Column:
        days = np.array([np.nan if cell is None else day_of(cell) for cell in cells])
        missing = np.array([cell is None for cell in cells])
        wrong = np.flatnonzero(np.isnan(days) & ~missing)
        self.problems.add_each(
            wrong,
            lambda i: f"{self.place(i)}: the date {name!r} is {cells[i]!r}; write it as 2024-12-31",
        )
        median = float(np.median(days[~np.isnan(days)])) if len(wrong) < (~missing).sum() else 0.0
        return Column(name, "date", median=median, missing=bool(missing.any()))


def _meant_as_number(cell: str) -> bool:
    return is_number(cell) or cell.lower().lstrip("+-") in NO_NUMBERS


def flag(name: str, value: str) -> str:
    """How to say it on the command line and in Python: a part of a message."""
    shown = f'"{value}"' if " " in value else value
    return f"--{name} {shown} (in Python: {name}=[{value!r}])"


def _numbers(name: str, cells: Numbers) -> Column:
    known = cells[~np.isnan(cells)]
    if not len(known):
        return Column(name, "ignored", reason="empty")
    low, high, missing = known.min(), known.max(), len(known) < len(cells)
    if low == high and not missing:
        return Column(name, "ignored", reason="constant")
    binary = bool(((known == 0) | (known == 1)).all())
    # In float64: the two middle values may add up to more than float32 holds.
    median = float(np.float32(np.median(known.astype(np.float64))))
    return Column(name, "binary" if binary else "numeric", median=median, missing=missing)


def _categorical(name: str, cells: Texts) -> Column:
    counts = Counter(cells)
    missing = bool(counts.pop(None, 0))
    if len(counts) == 1 and not missing:
        return Column(name, "ignored", reason="constant")
    rare = min(5, max(2, len(cells) // 100))  # a value of fewer nodes tells little about others
    frequent = [value for value, count in counts.most_common(MOST_CATEGORIES) if count >= rare]
    if not frequent:
        reason = f"{len(counts)} different texts; {flag('text', name)} uses their words"
        return Column(name, "ignored", reason=reason)
    other = len(frequent) < len(counts)
    return Column(
        name, "categorical", values=tuple(in_order(frequent)), other=other, missing=missing
    )


def _words(name: str, cells: Texts) -> Column:
    words, weights = learn_words(cells)
    if not words:
        return Column(name, "ignored", reason="no word occurs in two nodes")
    return Column(name, "words", values=words, weights=weights)


def _matrix_column(matrix: sp.csr_array, names: Sequence[str]) -> Column:
    """The columns of the matrix that vary."""
    lows, highs = matrix.min(0).toarray().ravel(), matrix.max(0).toarray().ravel()
    kept = tuple(name for name, low, high in zip(names, lows, highs, strict=True) if low != high)
    if not kept:
        return Column("matrix", "ignored", reason="constant")
    return Column("matrix", "matrix", values=kept)


def _kept_constant(column: Column, cells: dict[str, Cells]) -> Column:
    """A constant number as a feature after all: where there is no other, it carries the degrees."""
    numeric = column.name in cells and not is_text(cells[column.name])
    return Column(column.name, "numeric") if numeric and column.reason == "constant" else column


def in_order(names: Iterable[str]) -> list[str]:
    """In numerical order if all are numbers, else in alphabetical order."""
    names = list(names)
    if all(map(is_number, names)):
        return sorted(names, key=lambda name: (float(name), name))
    return sorted(names)
