"""A CSV file as rows of text that remember their numbers in the file."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from gcnii.errors import DataError


@dataclass(frozen=True)
class Table:
    """The header and the rows of a CSV file, all cells stripped; `numbers` are row numbers, the
    header's being 1.
    """

    name: str
    header: list[str]
    rows: list[list[str]]
    numbers: list[int]

    def has(self, column: str) -> bool:
        """Whether there is a column of that name, in upper or lower case."""
        return column in map(str.lower, self.header)

    def column(self, name: str, *, required: bool = True) -> list[str]:
        """The cells of one column; empty text where a column that is not required is absent."""
        found = [j for j, header in enumerate(self.header) if header.lower() == name.lower()]
        if not found and required:
            raise DataError(
                f"{self.name} has no column {name!r}; its columns are {', '.join(self.header)}"
            )
        if len(found) > 1:
            raise DataError(f"{self.name} has {len(found)} columns called {name!r}; keep one")
        return [row[found[0]] for row in self.rows] if found else [""] * len(self.rows)

    def place(self, i: int) -> str:
        """Where row i stands, as the user sees it."""
        return f"row {self.numbers[i]} of {self.name}"


def read_table(path: Path) -> Table:
    """The table in a comma-separated UTF-8 file with a header; blank lines are passed over."""
    rows, numbers, number = [], [], 0
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        for number, row in enumerate(reader, start=1):
            cells = [cell.strip() for cell in row]
            if any(cells):
                rows.append(cells)
                numbers.append(number)
    except csv.Error as error:
        raise DataError(
            f"row {number + 1} of {path.name} is not CSV ({error}); check its quotes"
        ) from error
    if not rows:
        raise DataError(f"{path.name} is empty; begin it with a header")
    header = rows.pop(0)
    table = Table(path.name, header, rows, numbers[1:])
    for i, row in enumerate(rows):
        if len(row) != len(header):
            raise DataError(
                f"{table.place(i)} has {len(row)} cells, but the header has {len(header)}"
            )
    return table


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(
            f"{path.parent} has no {path.name}; a graph is a folder with nodes.csv and edges.csv"
        ) from None
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
