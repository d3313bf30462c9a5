"""Tables that come in a request: rows of JSON, or Arrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from gcnii.data.tables.reading import Ends, Rows
from gcnii.errors import DataError, InputError
from gcnii.graph.columns import Cells, Texts, float32_of

if TYPE_CHECKING:
    import pyarrow as pa

ARROW = "application/vnd.apache.arrow.stream"
LARGEST_WHOLE = 2**53  # whole numbers that float64 holds exactly

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Limits:
    """What a request may ask for: bytes of its body, rows, and seconds."""

    body: int = 10_000_000
    rows: int = 10_000
    seconds: float = 30.0

    def refuse_many(self, name: str, rows: int, columns: int = 1) -> None:
        """Raise InputError for a table of too many rows, or of more cells than a body has bytes."""
        if rows > self.rows:
            raise InputError(
                f"{name} may have {self.rows:,} rows at most, got {rows:,}; ask several times"
            )
        if rows * columns > self.body:
            raise InputError(
                f"{name} may have {self.body:,} cells at most, got {rows:,} rows of {columns:,} "
                "columns; ask several times"
            )


class Records(Rows):
    """Columns of cells as JSON has them; rows count from 0.

    Read as a data frame of them would be, in a tenth of the time where there are few rows.
    """

    def __init__(self, name: str, columns: Mapping[str, Sequence[Cell]]):
        self.name, self.header, self.columns = name, tuple(columns), columns
        self._count = len(next(iter(columns.values()), ()))

    @classmethod
    def of_rows(cls, name: str, rows: Sequence[Mapping[str, object]], limits: Limits) -> Records:
        """Of objects, each with some of the columns."""
        header = dict.fromkeys(name for row in rows for name in row)
        limits.refuse_many(name, len(rows), len(header))
        for i, row in enumerate(rows):
            for column, cell in row.items():
                if not isinstance(cell, Cell) or (isinstance(cell, float) and not isfinite(cell)):
                    raise InputError(
                        f"row {i} of {name}: the cell of {column!r} must be text, a number, true, "
                        "false or null"
                    )
        columns = {one: [row.get(one) for row in rows] for one in header}
        return cls(name, columns)  # type: ignore[arg-type]  # all are cells

    def __len__(self) -> int:
        return self._count

    def texts(self, column: str) -> Texts:
        """Whole numbers are written without a point."""
        texts = np.empty(len(self), object)
        texts[:] = [_text(cell) for cell in self.columns[column]]
        return texts

    def cells(self, columns: Sequence[str], as_text: Collection[str]) -> dict[str, Cells]:
        """Numbers and truth values as numbers, everything else as text."""
        return {
            name: self.texts(name) if name in as_text else self._cells(name) for name in columns
        }

    def _cells(self, name: str) -> Cells:
        cells = self.columns[name]
        if any(isinstance(cell, str) for cell in cells):
            return self.texts(name)
        try:
            numbers = np.array([np.nan if one is None else one for one in cells], np.float64)
        except OverflowError:  # of whole numbers, which JSON has of any length
            raise InputError(f"the column {name!r} of {self.name} has too large a number") from None
        return float32_of(numbers)

    def blocks(self, columns: Sequence[str]) -> Iterator[Sequence[Ends]]:
        """All at once: a request has few."""
        yield [self.texts(name) for name in columns]


def _text(cell: Cell) -> str | None:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < LARGEST_WHOLE:
        cell = int(cell)
    return None if cell is None or cell == "" else str(cell)


def of_arrow(body: bytes, names: Sequence[str], limits: Limits) -> list[dict[str, list[Cell]]]:
    """The columns of Arrow IPC streams, one after the other in a body; InputError if they are not.

    names  what each is called in messages
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise InputError("Arrow needs pyarrow on the server, which has none; send JSON") from None
    reader, found = pa.BufferReader(body), list[dict[str, list[Cell]]]()
    s = "s" if len(names) > 1 else ""
    expected = f"expected {len(names)} Arrow IPC stream{s} ({', '.join(names)})"
    for name in names:
        try:
            _refuse_compressed(reader, name)
            with pa.ipc.open_stream(reader) as stream:
                table = stream.read_all()
            limits.refuse_many(name, table.num_rows, table.num_columns)
            table.validate(full=True)
            if len({*table.column_names}) < table.num_columns:
                raise DataError(f"the columns of {name} must have different names")
            found.append({one: _column(table[one], one, name) for one in table.column_names})
        except InputError:
            raise
        except (pa.ArrowException, OSError, ValueError, OverflowError, IndexError) as error:
            raise InputError(
                f"{expected}, and the one of {name} cannot be read: {_first(error)}"
            ) from None
    if reader.tell() < len(body):
        raise InputError(f"{expected}, and there is more after that")
    return found


def _refuse_compressed(reader: pa.BufferReader, name: str) -> None:
    """Raise InputError for a stream that may be a thousand times as large as it is sent.

    The reader is where it was.
    """
    import pyarrow as pa

    start = reader.tell()
    for message in pa.ipc.MessageReader.open_stream(reader):
        if _is_compressed(message.metadata.to_pybytes()):
            raise InputError(f"the Arrow stream of {name} is compressed; send it as it is")
    reader.seek(start)


def _is_compressed(message: bytes) -> bool:
    """Whether the metadata of a message says so: a FlatBuffer, after Message.fbs of Arrow."""

    def number(at: int, size: int = 4) -> int:
        return int.from_bytes(message[at : at + size], "little", signed=size == 4)

    def field(table: int, place: int) -> int:
        """Where a field of a table is; 0 if it is left out."""
        fields = table - number(table)
        offset = number(fields + 4 + 2 * place, 2) if 4 + 2 * place < number(fields, 2) else 0
        return table + offset if offset else 0

    def behind(at: int) -> int:
        return at + number(at)

    root = behind(0)
    kind, batch = message[field(root, 1)], behind(field(root, 2))
    if kind == DICTIONARY:
        batch = behind(field(batch, 1))
    return kind in (DICTIONARY, BATCH) and field(batch, COMPRESSION) > 0


DICTIONARY, BATCH, COMPRESSION = 2, 3, 3  # kinds of messages, and the field of a batch


def _column(column: pa.ChunkedArray, name: str, table: str) -> list[Cell]:
    """Its cells; DataError for types whose cells are no one value, or share what came once."""
    import pyarrow as pa

    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        cells = []
        for chunk in column.chunks:
            words = _column(pa.chunked_array([chunk.dictionary]), name, table)
            cells += [None if i is None else words[i] for i in chunk.indices.to_pylist()]
        return cells
    if types.is_decimal(kind):
        column, kind = column.cast(pa.float64()), pa.float64()
    if types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind):
        return [one and one.isoformat() for one in column.to_pylist()]
    number = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)
    if not number and kind not in (pa.null(), pa.string(), pa.large_string()):
        raise DataError(
            f"the column {name!r} of {table} holds values of type {kind}, but a cell is one number "
            "or text"
        )
    return [None if cell != cell else cell for cell in column.to_pylist()]


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def to_arrow(rows: Sequence[Mapping[str, object]]) -> bytes:
    """Answers as an Arrow IPC stream, with a column for each of their fields."""
    import pyarrow as pa

    table = pa.Table.from_pylist([dict(row) for row in rows])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())
