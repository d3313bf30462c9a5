"""A parquet file as a table: its columns have types, and pyarrow reads them in blocks of rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from gcnii.data.tables.reading import (
    Ends,
    FileRows,
    Progress,
    is_file,
    no_progress,
    note_repeated_names,
)
from gcnii.errors import DataError, Problems, notice
from gcnii.graph.columns import Cells, Texts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

BLOCK_ROWS, BLOCK_CELLS = 50_000, 2_000_000  # that are read at a time, at most
INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls an index without a name
EXACT_BELOW = 2**53  # whole numbers that float64 holds exactly


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
    return ParquetRows(path, schema, rows, progress) if len(problems.found) == before else None


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
        if _kind(column.type) is None:
            problems.add(
                f"{name}: the column {column.name!r} holds cells of type {column.type}; a cell "
                "must be text, a number, true or false, or a date: leave the column out"
            )
    for index in filter(INDEX.fullmatch, schema.names):
        notice(f"{name}: the nameless index {index} is left out")


def _value_type(type: pa.DataType) -> pa.DataType:
    from pyarrow import types

    return type.value_type if types.is_dictionary(type) else type


def _kind(type: pa.DataType) -> Literal["text", "number", "date"] | None:
    """What cells of a type are; true and false are numbers, and so are nulls alone."""
    from pyarrow import types

    type = _value_type(type)
    if str(type) in ("string", "large_string", "string_view"):
        return "text"
    numeric = types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null
    if any(is_one(type) for is_one in numeric):
        return "number"
    return "date" if types.is_temporal(type) and not types.is_duration(type) else None


class ParquetRows(FileRows):
    """The rows of a parquet file; an index without a name is left out."""

    def __init__(self, path: Path, schema: pa.Schema, rows: int, progress: Progress):
        self._rows = rows
        self._types = {column.name: _value_type(column.type) for column in schema}
        super().__init__(path, [one for one in self._types if not INDEX.fullmatch(one)], progress)

    def __len__(self) -> int:
        return self._rows

    def place(self, i: int) -> str:
        """Row i, counted from 1."""
        return f"row {i + 1} of {self.name}"

    def cells(self, columns: Sequence[str], as_text: Collection[str]) -> dict[str, Cells]:
        """Columns of numbers and truth values as float32, all others as text."""
        words = {*as_text, *(name for name in columns if _kind(self._types[name]) != "number")}
        numbers = {name: np.empty(self._rows, np.float32) for name in columns if name not in words}
        start = 0
        for batch in self._batches(list(numbers)):
            with np.errstate(over="ignore"):  # beyond float32: infinite
                for name, values in numbers.items():
                    values[start : start + len(batch)] = _floats_of(batch.column(name))
            start += len(batch)
        texts = self.columns_of_text([name for name in columns if name in words])
        return {name: numbers[name] if name in numbers else texts[name] for name in columns}

    def blocks(self, columns: Sequence[str]) -> Iterator[Sequence[Ends]]:
        """The names in some columns, some rows at a time; whole numbers as they are."""
        from pyarrow import types

        if not all(types.is_signed_integer(self._types[name]) for name in columns):
            yield from self.text_blocks(columns)
            return
        for batch in self._batches(columns):
            yield [_names_of(batch.column(name)) for name in columns]

    def text_blocks(self, columns: Sequence[str]) -> Iterator[list[Texts]]:
        """The cells of some columns as text.

        Whole numbers are written without a point, also where missing cells made floats of them.
        """
        whole = self._whole(columns)
        for batch in self._batches(columns):
            yield [_texts_of(batch.column(name), name in whole) for name in columns]

    def _whole(self, columns: Sequence[str]) -> set[str]:
        """The columns of floats that are all whole numbers."""
        from pyarrow import types

        found = {name for name in columns if types.is_floating(self._types[name])}
        for batch in self._batches(sorted(found)):
            for name in sorted(found):
                values = _floats_of(batch.column(name))
                whole = (values == np.trunc(values)) & (np.abs(values) < EXACT_BELOW)
                if not (whole | np.isnan(values)).all():
                    found.remove(name)
        return found

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The cells of one column as numbers; NaN where a cell is none."""
        if _kind(self._types[column]) == "number":
            parts = [_floats_of(batch.column(column)) for batch in self._batches([column])]
            return np.concatenate([np.empty(0), *parts])
        return super().numbers(column)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some rows of these columns at a time: a file is opened once for all of them."""
        if not columns:
            return
        seen, size = 0, self._path.stat().st_size
        rows = max(1, min(BLOCK_ROWS, BLOCK_CELLS // len(columns)))
        with _opened(self._path) as file:
            for batch in file.iter_batches(rows, columns=list(columns)):
                seen += len(batch)
                if seen > self._rows:
                    break
                self._progress(size * seen // self._rows, size)
                yield batch
        if seen != self._rows:
            raise DataError(f"{self.name} changed while it was read; load it again")


def _decoded(array: pa.Array) -> pa.Array:
    from pyarrow import types

    return array.dictionary_decode() if types.is_dictionary(array.type) else array


def _names_of(array: pa.Array) -> Ends:
    array = _decoded(array)
    return _texts_of(array, False) if array.null_count else np.asarray(array, np.int64)


def _floats_of(array: pa.Array) -> NDArray[np.float64]:
    """Numbers as float64, NaN for null."""
    values = _decoded(array).cast("float64", safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, np.float64)


def _texts_of(array: pa.Array, whole: bool) -> Texts:
    from pyarrow import types

    array = _decoded(array)
    if types.is_temporal(array.type):
        cells = [None if cell is None else cell.isoformat() for cell in array.to_pylist()]
    elif types.is_boolean(array.type):
        cells = [None if cell is None else str(cell) for cell in array.to_pylist()]
    elif types.is_floating(array.type):
        write = _whole_text if whole else str
        cells = [None if np.isnan(cell) else write(cell) for cell in _floats_of(array).tolist()]
    else:
        cells = array.cast("string").to_numpy(zero_copy_only=False).tolist()
    return np.array([cell or None for cell in cells], object)


def _whole_text(number: float) -> str:
    return str(int(number))
