"""A CSV file as a table: checked row by row, then read in blocks by pandas.

Rows are numbered as csv.reader counts them: the first row is 1, and blank rows count.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from gcnii.data.tables.reading import Progress, Rows, is_file, no_progress, note_repeated_names
from gcnii.errors import DataError, Problems, notice
from gcnii.graph.columns import Cells, Texts, float32_of, is_number, parsed

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.parsers import TextFileReader


TextFile: TypeAlias = "TextIOWrapper[BufferedReader]"

BLOCK = 2**22  # bytes
ROWS_BETWEEN = 10_000  # two calls of progress
QUOTE, NUL, COMMA, NEWLINE = b'"', b"\0", ord(","), ord("\n")
UNDECODED = re.compile("[\ud800-\udfff]")  # lone surrogates
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
            if not line.isascii() and UNDECODED.search(line):
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


Float = TypeVar("Float", np.float32, np.float64)
Stamp: TypeAlias = tuple[int, int]  # size of a file and when it was written

# A block has few enough cells for the processor's cache, and enough rows for a wide table.
BLOCK_ROWS, BLOCK_CELLS = 50_000, 1_000_000
AS_TEXT = {"dtype": object, "na_filter": False}
AS_GUESSED = {"keep_default_na": False, "na_values": [""]}  # only an empty cell is missing


def open_csv(path: Path, problems: Problems, progress: Progress = no_progress) -> CsvRows | None:
    """The table in a comma-separated UTF-8 file; None if it is none, with every problem noted."""
    if not is_file(path, problems):
        return None
    stamp = _stamp(path)
    layout = lay_out(path, problems, progress)
    if layout is None:
        return None
    _warn_of_nameless(path.name, layout.header)
    return CsvRows(path, layout, stamp, progress)


def _warn_of_nameless(name: str, header: Sequence[str]) -> None:
    nameless = [j for j, column in enumerate(header, 1) if not column]
    if nameless[:1] == [1]:  # what pandas writes an index as
        notice(f"{name}: the nameless first column is left out")
    if others := [str(j) for j in nameless if j > 1]:
        columns = "column" if len(others) == 1 else "columns"
        verb = "is" if len(others) == 1 else "are"
        notice(f"{name}: the nameless {columns} {', '.join(others)} {verb} left out")


class CsvRows(Rows):
    """The rows of a CSV file, which is read in blocks; columns without a name are left out."""

    def __init__(self, path: Path, layout: Layout, stamp: Stamp, progress: Progress):
        self._path, self._layout, self._stamp, self._progress = path, layout, stamp, progress
        self._places = {column: j for j, column in enumerate(layout.header) if column}
        self.name, self.header = path.name, tuple(self._places)
        every = range(layout.rows)  # row of the file below the header
        self._below = np.delete(every, layout.blank) if layout.blank else every

    def __len__(self) -> int:
        return len(self._below)

    def place(self, i: int) -> str:
        """Row i in rows of the file, where the header and blank rows count."""
        return f"row {self._layout.header_row + 1 + self._below[i]} of {self.name}"

    def texts(self, column: str) -> Texts:
        """The cells of one column, as they are written; None where one is empty or missing."""
        return self._texts([column])[column]

    def _texts(self, columns: Sequence[str]) -> dict[str, Texts]:
        """The cells of several columns, in one pass over the file."""
        found = {name: np.empty(len(self), object) for name in columns}
        start = 0
        for block in self.blocks(columns):
            for name, cells in zip(columns, block, strict=True):
                found[name][start : start + len(cells)] = cells
            start += len(block[0])
        return found

    def cells(self, columns: Sequence[str], as_text: Collection[str]) -> dict[str, Cells]:
        """Columns as float32 numbers if all their cells are numbers or empty, else as text."""
        numbers = self._numbers([name for name in columns if name not in as_text], np.float32)
        texts = self._texts([name for name in columns if name not in numbers])
        for name in texts.keys() - set(as_text):
            if all(cell is None or is_number(cell) for cell in texts[name]):
                numbers[name] = float32_of(parsed(texts[name]))
        return {name: numbers[name] if name in numbers else texts[name] for name in columns}

    def blocks(self, columns: Sequence[str]) -> Iterator[list[Texts]]:
        """The cells of some columns as text, stripped, some rows at a time."""
        for frame in self._frames(columns, AS_TEXT):
            yield [_stripped(frame[self._places[name]]) for name in columns]

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The cells of one column as numbers; NaN where a cell is none."""
        found = self._numbers([column], np.float64)
        return found[column] if column in found else super().numbers(column)

    def _numbers(self, columns: Sequence[str], dtype: type[Float]) -> dict[str, NDArray[Float]]:
        """Those columns that are numbers at first sight; the others need to be read as text."""
        found = {name: np.empty(len(self), dtype) for name in columns}
        start = 0
        for frame in self._frames(columns, AS_GUESSED):
            for name in list(found):
                part = _numbers_in(frame[self._places[name]])
                if part is None:
                    del found[name]
                else:
                    with np.errstate(over="ignore"):  # infinite beyond the type
                        found[name][start : start + len(part)] = part
            start += len(frame)
            if not found:
                break
        return found

    def _frames(self, columns: Sequence[str], options: dict[str, object]) -> Iterator[pd.DataFrame]:
        """Some columns, called by their place in the file, a block of rows at a time."""
        if not len(self) or not columns:
            return
        step = max(1, min(BLOCK_ROWS, BLOCK_CELLS // len(self._layout.header)))
        seen = 0
        self._refuse_change()
        with open_text(self._path) as file:
            skip_header(file)
            reader = self._reader(file, columns, options)
            for start in range(0, len(self), step):
                block = self._below[start : start + step]
                # A block ends with a row that has text: pandas fails on blank rows alone.
                frame = _next_rows(reader, block[-1] + 1 - seen)
                self._refuse_change(len(frame) == block[-1] + 1 - seen)
                self._progress(file.buffer.tell(), self._stamp[0])
                yield frame.iloc[np.subtract(block, seen)] if self._layout.blank else frame
                seen += len(frame)

    def _refuse_change(self, as_many_rows: bool = True) -> None:
        if not as_many_rows or _stamp(self._path) != self._stamp:
            raise DataError(f"{self.name} changed while it was read; load it again")

    def _reader(
        self, file: TextFile, columns: Sequence[str], options: dict[str, object]
    ) -> TextFileReader:
        import pandas as pd

        return pd.read_csv(
            file,
            iterator=True,
            header=None,
            names=range(len(self._layout.header)),
            index_col=False,
            usecols=sorted({self._places[name] for name in columns}),
            skip_blank_lines=False,  # so that pandas counts rows as csv.reader does
            low_memory=False,  # so that a column has one type in a block
            float_precision=None if _is_exact_by_itself() else "round_trip",
            **options,
        )


def _stamp(path: Path) -> Stamp:
    try:
        stat = path.stat()
    except OSError:
        return (0, 0)
    return stat.st_size, stat.st_mtime_ns


def _next_rows(reader: TextFileReader, rows: int) -> pd.DataFrame:
    """That many rows; fewer if the file has fewer."""
    import pandas as pd

    try:
        return reader.get_chunk(rows)
    except StopIteration:
        return pd.DataFrame()


def _is_exact_by_itself() -> bool:
    """Whether pandas reads numbers as float() does, unasked; it does so from 3.1 on."""
    import pandas as pd

    major, minor = pd.__version__.split(".")[:2]
    return (int(major), int(minor)) >= (3, 1)


def _stripped(cells: pd.Series) -> Texts:
    return np.array([cell.strip() or None for cell in cells.tolist()], object)


def _numbers_in(cells: pd.Series) -> NDArray[np.float64] | None:
    """Cells as pandas guessed them, if it is sure that all are numbers or empty; else None."""
    if cells.dtype.kind in "iuf":
        values = np.asarray(cells, np.float64)
        # Infinite is the word inf, or a number beyond float64; NaN is an empty cell, or the word
        # nan where pandas has to be asked for exact numbers.
        unsure = np.isinf(values) if _is_exact_by_itself() else ~np.isfinite(values)
        return None if unsure.any() else values
    values = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells.tolist()):
        if not isinstance(cell, str):
            if cell == cell:  # not NaN: true, false, or an integer beyond 64 bits
                return None
        elif is_number(text := cell.strip()):
            values[i] = float(text)
        elif text:
            return None
    return values
