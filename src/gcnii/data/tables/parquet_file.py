"""A parquet file as a table: its columns have types, and pyarrow reads a few of them at a time."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gcnii.data.tables.frame import FrameRows
from gcnii.data.tables.reading import (
    Ends,
    Progress,
    Rows,
    is_file,
    no_progress,
    note_repeated_names,
)
from gcnii.errors import DataError, Problems, notice
from gcnii.graph.columns import Cells, Texts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

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
