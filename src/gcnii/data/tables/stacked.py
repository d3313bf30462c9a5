"""Tables of nodes of several types, one below the other: nodes-users.csv, nodes-items.csv."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gcnii.data.tables.reading import Ends, Rows
from gcnii.graph.columns import Cells, Texts, is_text


class StackedRows(Rows):
    """Tables as one, with a column that says from which each row is; a cell may be in one alone.

    parts   type → its table
    column  the name of the column of types
    """

    def __init__(self, parts: dict[str, Rows], column: str):
        self.parts, self.column = parts, column
        self.name = " and ".join(rows.name for rows in parts.values())
        own = dict.fromkeys(name for rows in parts.values() for name in rows.header)
        self.header = (*own, column)

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    def place(self, i: int) -> str:
        """Where row i is, for a message."""
        for rows in self.parts.values():
            if i < len(rows):
                return rows.place(i)
            i -= len(rows)
        raise IndexError(i)

    def texts(self, column: str) -> Texts:
        """The cells of one column, as they are written; None where a table does not have it."""
        each = [self._texts(kind, rows, column) for kind, rows in self.parts.items()]
        return np.concatenate(each)

    def _texts(self, kind: str, rows: Rows, column: str) -> Texts:
        if column == self.column or column not in rows.header:
            return np.full(len(rows), kind if column == self.column else None, object)
        return rows.texts(column)

    def cells(self, columns: Sequence[str], as_text: Collection[str]) -> dict[str, Cells]:
        """Columns as numbers if all their cells are, in all tables, else as text."""
        each = [
            rows.cells([name for name in columns if name in rows.header], as_text)
            for rows in self.parts.values()
        ]
        found: dict[str, Cells] = {}
        for name in columns:
            own = [cells[name] for cells in each if name in cells]
            if name == self.column or any(map(is_text, own)):
                found[name] = self.texts(name)
            else:
                found[name] = self._numbers(name, each)
        return found

    def _numbers(self, name: str, each: Sequence[dict[str, Cells]]) -> Cells:
        gaps = (np.full(len(rows), np.nan, np.float32) for rows in self.parts.values())
        return np.concatenate(
            [cells.get(name, gap) for cells, gap in zip(each, gaps, strict=True)]
        ).astype(np.float32)

    def blocks(self, columns: Sequence[str]) -> Iterator[Sequence[Ends]]:
        """The names in some columns, all at once."""
        yield [self.texts(column) for column in columns]

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The cells of one column as numbers; NaN where a cell or the column is missing."""
        return np.concatenate(
            [
                rows.numbers(column) if column in rows.header else np.full(len(rows), np.nan)
                for rows in self.parts.values()
            ]
        )
