"""Where the rows of a CSV file are, and everything that is wrong with its form.

Rows are numbered as csv.reader counts them: the first row is 1, and blank rows count.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import TypeAlias

import numpy as np

from gcnii.data.tables.opening import Progress, note_repeated_names
from gcnii.errors import Problems

TextFile: TypeAlias = "TextIOWrapper[BufferedReader]"

BLOCK = 2**22  # bytes
ROWS_BETWEEN = 10_000  # two calls of progress
QUOTE, NUL, COMMA, NEWLINE = b'"', b"\0", ord(","), ord("\n")
MARK = "\ufeff"  # the byte order mark; at the start of a file it is not part of the text
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


@dataclass
class Layout:
    """Where the rows of a CSV file are.

    header      the names of its columns, stripped; "" where a column has none
    header_row  the row of the file that holds the header
    rows        number of rows below the header, blank ones included
    blank       which of them are blank, counted from 0: rows without text in any cell
    """

    header: list[str] = field(default_factory=list)
    header_row: int = 1
    rows: int = 0
    blank: list[int] = field(default_factory=list)


def open_text(path: Path) -> TextFile:
    """A file as text; a byte that is not UTF-8 becomes a lone surrogate."""
    return TextIOWrapper(path.open("rb"), "utf-8-sig", "surrogateescape", newline="")


def skip_header(file: TextFile) -> None:
    """Read the rows of a well-formed file up to its header, and no more."""
    reader = csv.reader(iter(file.readline, ""), strict=True)
    while not _has_text(next(reader)):
        pass


def lay_out(path: Path, problems: Problems, progress: Progress) -> Layout | None:
    """Where the rows of a file are; None if its form is wrong, with every problem noted."""
    layout = _plain_layout(path, progress)
    before = len(problems.found)
    if layout is None:
        rows = _StrictRows(path)
        rows.read(progress)
        rows.tell(problems)
        layout = rows.layout
    if len(problems.found) == before:
        _tell_header(path.name, layout.header, problems)
    return layout if len(problems.found) == before else None


def _tell_header(name: str, header: list[str], problems: Problems) -> None:
    if not header:
        problems.add(f"{name} is empty; begin it with a header")
    note_repeated_names(name, [column for column in header if column], problems)
    if separator := _separator(header):
        problems.add(f"{name} is separated by {separator}; save it with commas between its cells")


def _separator(header: list[str]) -> str:
    """What separates the cells of a table that came without commas; "" for a single column."""
    found = (word for sign, word in SEPARATORS.items() if len(header) == 1 and sign in header[0])
    return next(found, "")


def _has_text(row: Iterable[str]) -> bool:
    return any(cell.strip() for cell in row)


# Most files have no quotes and no blank rows.  Their form is checked on whole blocks of bytes.


def _plain_layout(path: Path, progress: Progress) -> Layout | None:
    """The layout of a file without quotes and blank rows whose rows all have as many cells.

    None if it may be another kind of file.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)
        head = file.readline()
        if not _is_plain(head):
            return None
        layout = Layout([cell.strip() for cell in head.decode().split(",")])
        if not any(layout.header) or layout.header[0].startswith(MARK):
            return None
        while block := file.read(BLOCK) + file.readline():
            rows = _plain_rows(block, len(layout.header))
            if rows is None:
                return None
            layout.rows += rows
            progress(file.tell(), size)
    return layout


def _is_plain(block: bytes) -> bool:
    """Whether lines are UTF-8 without quotes, and end in \\n or \\r\\n."""
    if QUOTE in block or NUL in block or block.count(b"\r") != block.count(b"\r\n"):
        return False
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _plain_rows(block: bytes, width: int) -> int | None:
    """Number of rows in some lines; None if one has not `width` cells or may be blank."""
    if not _is_plain(block):
        return None
    signs = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", np.uint8)
    ends = signs == NEWLINE
    first = np.append(signs[:1], signs[1:][ends[:-1]])  # of each line
    if ((first <= ord(" ")) | (first == COMMA) | (first >= 0x80)).any():
        return None  # blank rows begin with one of these
    marks = signs[ends | (signs == COMMA)]
    if len(marks) % width:
        return None
    lines = marks.reshape(-1, width)
    right = (lines[:, :-1] == COMMA).all() and (lines[:, -1] == NEWLINE).all()
    return len(lines) if right else None


class _StrictRows:
    """Every row of a file, checked one by one."""

    def __init__(self, path: Path):
        self.path = path
        self.layout = Layout()
        self.number = 0  # of rows read
        self.not_utf8: list[int] = []
        self.with_nul: list[int] = []
        self.marked: list[int] = []
        self.ragged: list[tuple[int, int]] = []  # row and its number of cells
        self.failure = ""  # what csv.reader says

    def read(self, progress: Progress) -> None:
        """Look at the rows, up to the first that is not CSV."""
        size = self.path.stat().st_size
        with open_text(self.path) as file:
            try:
                for row in csv.reader(self._lines(file), strict=True):
                    self.number += 1
                    self._look_at(row)
                    if self.number % ROWS_BETWEEN == 0:
                        progress(file.buffer.tell(), size)
            except csv.Error as error:
                self.failure = str(error)
        self.layout.rows = self.number - self.layout.header_row

    def _lines(self, file: Iterable[str]) -> Iterator[str]:
        """The lines, which csv.reader asks for one row at a time."""
        for line in file:
            if not line.isascii() and not _is_utf8(line):
                self.not_utf8.append(self.number + 1)
            elif "\0" in line:
                self.with_nul.append(self.number + 1)
            yield line

    def _look_at(self, row: list[str]) -> None:
        layout = self.layout
        if row and row[0].lstrip().startswith(MARK):
            self.marked.append(self.number)
        if not layout.header:
            layout.header_row = self.number
            if _has_text(row):
                layout.header = [cell.strip() for cell in row]
        elif len(row) == len(layout.header) and row[0].strip():
            return
        elif not _has_text(row):
            layout.blank.append(self.number - layout.header_row - 1)
        elif len(row) != len(layout.header):
            self.ragged.append((self.number, len(row)))

    def tell(self, problems: Problems) -> None:
        """Note what is wrong; the cells of a file are not counted if its header is not text."""
        name, header = self.path.name, self.layout.header
        save = "save the file as UTF-8 text"
        problems.add_each(self.not_utf8, lambda i: f"row {i} of {name} is not UTF-8 text; {save}")
        problems.add_each(self.with_nul, lambda i: f"row {i} of {name} has a NUL byte; {save}")
        if {self.layout.header_row} & {*self.not_utf8, *self.with_nul} or _separator(header):
            return
        problems.add_each(
            self.marked,
            lambda i: f"row {i} of {name} begins with a byte order mark (U+FEFF); remove it",
        )
        cells = dict(self.ragged)
        problems.add_each(
            cells,
            lambda i: f"row {i} of {name} has {cells[i]} cells, but the header has {len(header)}",
        )
        if self.failure:
            problems.add(
                f"row {self.number + 1} of {name} is not CSV ({self.failure}); check its quotes"
            )


def _is_utf8(line: str) -> bool:
    try:
        line.encode()
    except UnicodeEncodeError:  # lone surrogates
        return False
    return True
