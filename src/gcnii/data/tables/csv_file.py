"""A CSV file as a table: checked row by row, then read in blocks by pandas."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from gcnii.columns import Cells
from gcnii.columns.cells import is_number
from gcnii.columns.table import Texts
from gcnii.data.tables.csv_check import Layout, TextFile, lay_out, open_text, skip_header
from gcnii.data.tables.opening import Progress, is_file, progress_of
from gcnii.data.tables.rows import Names
from gcnii.errors import DataError, Problems, notice

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.parsers import TextFileReader

Float = TypeVar("Float", np.float32, np.float64)
Stamp: TypeAlias = tuple[int, int]  # size of a file and when it was written

# A block has few enough cells for the processor's cache, and enough rows for a wide table.
BLOCK_ROWS, BLOCK_CELLS = 50_000, 1_000_000
AS_TEXT = {"dtype": object, "na_filter": False}
AS_GUESSED = {"keep_default_na": False, "na_values": [""]}  # only an empty cell is missing


def open_csv(path: Path, problems: Problems, progress: Progress | None = None) -> CsvRows | None:
    """The table in a comma-separated UTF-8 file; None if it is none, with every problem noted.

    progress  called with the bytes read and the bytes there are, from 0 on in each pass; default:
              tells who is watching
    """
    if not is_file(path, problems):
        return None
    progress = progress or progress_of(path)
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


class CsvRows:
    """The rows of a CSV file; they are read again each time that some are asked for."""

    def __init__(self, path: Path, layout: Layout, stamp: Stamp, progress: Progress):
        self._path, self._layout, self._stamp, self._progress = path, layout, stamp, progress
        self._places = {column: j for j, column in enumerate(layout.header) if column}
        every = range(layout.rows)  # row of the file below the header
        self._below = np.delete(every, layout.blank) if layout.blank else every

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._path.name

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns that have one."""
        return tuple(self._places)

    def __len__(self) -> int:
        return len(self._below)

    def place(self, i: int) -> str:
        """Row i in rows of the file, where the header and blank rows count."""
        return f"row {self._layout.header_row + 1 + self._below[i]} of {self.name}"

    def texts(self, column: str) -> Texts:
        """The cells of one column, stripped; None where one is empty."""
        return self._texts([column])[column]

    def cells(self, columns: Sequence[str], as_text: Collection[str]) -> dict[str, Cells]:
        """Columns as float32 numbers if all their cells are numbers or empty, else as text."""
        numbers = self._numbers([name for name in columns if name not in as_text], np.float32)
        texts = self._texts([name for name in columns if name not in numbers])
        for name in texts.keys() - set(as_text):
            if all(cell is None or is_number(cell) for cell in texts[name]):
                numbers[name] = _as(np.float32, _parsed(texts[name]))
        return {name: numbers[name] if name in numbers else texts[name] for name in columns}

    def blocks(self, columns: Sequence[str]) -> Iterator[Sequence[Names]]:
        """The cells of some columns as text, stripped, some rows at a time."""
        yield from self._blocks(columns)

    def _blocks(self, columns: Sequence[str]) -> Iterator[list[Texts]]:
        for frame in self._frames(columns, AS_TEXT):
            yield [_stripped(frame[self._places[name]]) for name in columns]

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The cells of one column as numbers; NaN where a cell is none."""
        found = self._numbers([column], np.float64)
        if column in found:
            return found[column]
        return _parsed(self.texts(column))

    def _texts(self, columns: Sequence[str]) -> dict[str, Texts]:
        found = {name: np.empty(len(self), object) for name in columns}
        start = 0
        for block in self._blocks(columns):
            for name, cells in zip(columns, block, strict=True):
                found[name][start : start + len(cells)] = cells
            start += len(block[0])
        return found

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
                    found[name][start : start + len(part)] = _as(dtype, part)
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


def _parsed(cells: Texts) -> NDArray[np.float64]:
    return np.array([float(cell) if cell and is_number(cell) else np.nan for cell in cells])


def _as(dtype: type[Float], values: NDArray[np.float64]) -> NDArray[Float]:
    """Rounded; infinite where a number is beyond the type."""
    with np.errstate(over="ignore"):
        return values.astype(dtype, copy=False)
