"""Data frames of pandas, polars or pyarrow as tables; and parquet files, read a part at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gcnii.data.tables.reading import (
    Ends,
    Progress,
    Rows,
    is_file,
    no_progress,
    note_repeated_names,
)
from gcnii.errors import DataError, Problems, notice
from gcnii.graph.columns import Cells, Texts, float32_of

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa
    from narwhals.typing import IntoDataFrame
    from pyarrow.parquet import ParquetFile

MICROSECONDS = 86_400e6  # of a day
NOT_A_CELL = (list, tuple, dict, set, np.ndarray, bytes, complex)
LARGEST_WHOLE = 2**53  # whole numbers that float64 holds exactly
BLOCK_ROWS = 50_000  # whose names are texts at a time, at most


class FrameRows(Rows):
    """A data frame as a table, whose rows count from 0.

    called  what messages call row i, if not "row i"
    """

    def __init__(self, frame: IntoDataFrame, name: str, called: Callable[[int], str] | None = None):
        import narwhals as nw

        self.frame, self.name = nw.from_native(frame, eager_only=True), name
        self.header, self.called = tuple(self.frame.columns), called

    def __len__(self) -> int:
        return len(self.frame)

    def place(self, i: int) -> str:
        """Where row i is, for a message."""
        return self.called(i) if self.called else super().place(i)

    def texts(self, column: str) -> Texts:
        """Whole numbers are written without a point, also where pandas made floats of them."""
        series = self.frame[column]
        values = series.to_list()
        if series.dtype.is_float():
            values = _whole(values)
        elif series.dtype.is_temporal() and not self._is_duration(column):
            values = [None if _absent(value) else value.isoformat() for value in values]
        odd = next((value for value in values if isinstance(value, NOT_A_CELL)), None)
        if odd is not None:
            raise DataError(
                f"the column {column!r} of {self.name} holds values of type {type(odd).__name__}, "
                "but a cell is one number or text; convert it, or drop the column"
            )
        texts = np.empty(len(values), object)
        texts[:] = [_text(value) for value in values]
        return texts

    def cells(self, columns: Sequence[str], as_text: Collection[str]) -> dict[str, Cells]:
        """Numbers and truth values as numbers, everything else as text."""
        return {
            name: self.texts(name) if name in as_text else self._cells(name) for name in columns
        }

    def _cells(self, name: str) -> Cells:
        dtype = self.frame[name].dtype
        if dtype.is_numeric() or dtype.is_boolean():
            return float32_of(_floats(self.frame[name]))
        if not self._is_duration(name):
            return self.texts(name)
        return float32_of(_floats(self.frame[name].dt.total_microseconds()) / MICROSECONDS)

    def _is_duration(self, name: str) -> bool:
        import narwhals as nw

        return self.frame[name].dtype == nw.Duration

    def blocks(self, columns: Sequence[str]) -> Iterator[Sequence[Ends]]:
        """The names in some columns, some rows at a time, from the first row on."""
        # Whether floats are written without a point depends on all rows.
        whole = any(self.frame[name].dtype.is_float() for name in columns)
        step = max(1, len(self)) if whole else BLOCK_ROWS
        for start in range(0, len(self), step):
            part = FrameRows(self.frame[start : start + step], self.name)
            yield [part._ends(name) for name in columns]

    def _ends(self, column: str) -> Ends:
        """Whole numbers as they are, because ten million texts take ten seconds to make."""
        series = self.frame[column]
        if series.dtype.is_signed_integer() and not series.null_count():
            return np.asarray(series.to_numpy(), np.int64)
        return self.texts(column)

    def numbers(self, column: str) -> NDArray[np.float64]:
        """NaN where a cell is no number."""
        if self.frame[column].dtype.is_numeric():
            return _floats(self.frame[column])
        return super().numbers(column)


def _floats(series: nw.Series[Any]) -> NDArray[np.float64]:
    import narwhals as nw

    if series.dtype not in (nw.Int64, nw.UInt64):  # of which Arrow casts none beyond 2**53
        series = series.cast(nw.Float64()).fill_null(np.nan)
    return np.asarray(series.to_numpy(), np.float64)


def _absent(value: object) -> bool:
    """None, NaN, NaT, and pandas' NA, which cannot be compared."""
    return value is None or str(value) in ("nan", "NaT", "<NA>")


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    return None if _absent(value) else str(value)


def _whole(values: Sequence[float | None]) -> list[float | int | None]:
    """Floats as integers, if all are whole."""
    # Beside floats, there are None, NaN, and pandas' NA, which cannot be compared.
    known = [value for value in values if isinstance(value, float) and value == value]
    if any(value % 1 or abs(value) >= LARGEST_WHOLE for value in known):
        return list(values)
    return [int(value) if isinstance(value, float) and value == value else None for value in values]


BLOCK_CELLS = 2_000_000  # that are read at a time; a column of a larger file, at least
INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls an index without a name


def open_parquet(
    path: Path, problems: Problems, progress: Progress = no_progress
) -> ParquetRows | None:
    """The table in a parquet file; None if it cannot be read, with every problem noted."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        problems.add(f"reading {path.name} needs pyarrow: pip install 'gcnii[parquet]'")
        return None
    if not is_file(path, problems):
        return None
    before = len(problems.found)
    try:
        with _opened(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
            _note_columns(path.name, schema, problems)
    except DataError as error:
        problems.add(str(error))
    return (
        ParquetRows(path, schema.names, rows, progress) if len(problems.found) == before else None
    )


@contextmanager
def _opened(path: Path) -> Iterator[ParquetFile]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"{path.name} cannot be read as parquet ({reason}); write it again"
        ) from None


def _note_columns(name: str, schema: pa.Schema, problems: Problems) -> None:
    note_repeated_names(name, schema.names, problems)
    for column in schema:
        if not _is_cell(_value_type(column.type)):
            problems.add(
                f"{name}: the column {column.name!r} holds cells of type {column.type}; a cell "
                "must be text, a number, true or false, or a date: leave the column out"
            )
    for index in filter(INDEX.fullmatch, schema.names):
        notice(f"{name}: the nameless index {index} is left out")


def _value_type(type: pa.DataType) -> pa.DataType:
    from pyarrow import types

    return type.value_type if types.is_dictionary(type) else type


def _is_cell(type: pa.DataType) -> bool:
    """Whether it is text, a number, true or false, or a date; nulls alone are numbers."""
    from pyarrow import types

    if str(type) in ("string", "large_string", "string_view"):
        return True
    numeric = types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null
    dated = types.is_temporal(type) and not types.is_duration(type)
    return dated or any(is_one(type) for is_one in numeric)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without dictionaries, and of types that data frames have."""
    known = {"null": "float64", "halffloat": "float32", "string_view": "string"}
    type = _value_type(column.type)
    return column.cast(known.get(str(type), type))


class ParquetRows(Rows):
    """The rows of a parquet file; an index without a name is left out."""

    def __init__(self, path: Path, names: Sequence[str], rows: int, progress: Progress):
        self.name, self.header = path.name, tuple(x for x in names if not INDEX.fullmatch(x))
        self._path, self._rows, self._progress = path, rows, progress

    def __len__(self) -> int:
        return self._rows

    def place(self, i: int) -> str:
        """Row i, counted from 1."""
        return f"row {i + 1} of {self.name}"

    def texts(self, column: str) -> Texts:
        """The cells of one column, as they are written; None where one is empty or missing."""
        return self._frame([column]).texts(column)

    def cells(self, columns: Sequence[str], as_text: Collection[str]) -> dict[str, Cells]:
        """Columns of numbers and truth values as float32, all others as text."""
        found: dict[str, Cells] = {}
        step = max(1, BLOCK_CELLS // max(1, self._rows))
        for start in range(0, len(columns), step):
            some = columns[start : start + step]
            found |= self._frame(some, (start + len(some)) / len(columns)).cells(some, as_text)
        return found

    def blocks(self, columns: Sequence[str]) -> Iterator[Sequence[Ends]]:
        """The names in some columns, some rows at a time; whole numbers as they are."""
        yield from self._frame(columns).blocks(columns)

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The cells of one column as numbers; NaN where a cell is none."""
        return self._frame([column]).numbers(column)

    def _frame(self, columns: Sequence[str], done: float = 1.0) -> FrameRows:
        """These columns, after which this share of those that were asked for is read."""
        with _opened(self._path) as file:
            table = file.read(list(columns))
            if len(table) != self._rows:
                raise DataError(f"{self.name} changed while it was read; load it again")
        size = self._path.stat().st_size
        self._progress(int(done * size), size)
        for i, column in enumerate(table.columns):
            table = table.set_column(i, table.column_names[i], _plain(column))
        return FrameRows(table, self.name)
