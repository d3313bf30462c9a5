"""A CSV file as rows of text, with their row numbers for error messages."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gcnii.errors import DataError


@dataclass(frozen=True)
class Table:
    """The header and the rows of a CSV file, cells stripped; `numbers` are row numbers from 1."""

    name: str
    header: list[str]
    rows: list[list[str]]
    numbers: list[int]

    def has(self, column: str) -> bool:
        """Whether there is a column of that (lower-case) name, in any case."""
        return column in map(str.lower, self.header)

    def column(self, name: str, *, required: bool = True) -> list[str]:
        """The cells of one column; empty strings if it is absent and not required."""
        found = [j for j, header in enumerate(self.header) if header.lower() == name.lower()]
        if not found and required:
            raise DataError(
                f"{self.name} has no column {name!r}; its columns are {', '.join(self.header)}"
            )
        if len(found) > 1:
            raise DataError(f"{self.name} has {len(found)} columns called {name!r}; keep one")
        return [row[found[0]] for row in self.rows] if found else [""] * len(self.rows)

    def place(self, i: int) -> str:
        """Where row i is, for an error message: "row 3 of nodes.csv"."""
        return f"row {self.numbers[i]} of {self.name}"


def read_table(path: Path) -> Table:
    """The table in a comma-separated UTF-8 file with a header; blank lines are skipped."""
    rows = {number: cells for number, cells in _numbered_rows(path) if any(cells)}
    if not rows:
        raise DataError(f"{path.name} is empty; begin it with a header")
    header, *body = rows.values()
    _refuse_delimiter(path.name, header)
    table = _without_index(Table(path.name, header, body, list(rows)[1:]))
    return table


def _refuse_delimiter(name: str, header: list[str]) -> None:
    """Name the delimiter of a table that was not separated by commas."""
    for sign, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")):
        if len(header) == 1 and sign in header[0]:
            raise DataError(f"{name} is separated by {word}; save it with commas between its cells")


def _without_index(table: Table) -> Table:
    """The table without a nameless first column, which is what pandas writes an index as."""
    for i, row in enumerate(table.rows):
        if len(row) != len(table.header):
            cells = f"has {len(row)} cells, but the header has {len(table.header)}"
            raise DataError(f"{table.place(i)} {cells}")
    if table.header[0] or len(table.header) == 1:
        return table
    warnings.warn(f"{table.name}: the nameless first column is left out", stacklevel=6)
    rows = [row[1:] for row in table.rows]
    return Table(table.name, table.header[1:], rows, table.numbers)


def _numbered_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    number = 0
    try:
        for row in csv.reader(io.StringIO(_text(path), newline=""), strict=True):
            number += 1
            yield number, [cell.strip() for cell in row]
    except csv.Error as error:
        raise DataError(
            f"row {number + 1} of {path.name} is not CSV ({error}); check its quotes"
        ) from error


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"cannot read {path} ({error.strerror}); make it a readable file"
        ) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"row {row} of {path.name} is not UTF-8 text; save the file as UTF-8"
        ) from error
