"""Tables that come in a request: rows of JSON, or Arrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from gcnii.data.tables.reading import Ends, Rows
from gcnii.errors import DataError, InputError
from gcnii.graph.columns import Cells, Texts, float32_of

ARROW = "application/vnd.apache.arrow.stream"
LARGEST_WHOLE = 2**53  # whole numbers that float64 holds exactly

Cell = str | int | float | bool | None


class Records(Rows):
    """Columns of cells as JSON has them; rows count from 0.

    Read as a data frame of them would be, in a tenth of the time where there are few rows.
    """

    def __init__(self, name: str, columns: Mapping[str, Sequence[Cell]]):
        self.name, self.header, self.columns = name, tuple(columns), columns
        self._count = len(next(iter(columns.values()), ()))

    @classmethod
    def of_rows(
        cls, name: str, rows: Sequence[Mapping[str, Cell]], least: Sequence[str]
    ) -> Records:
        """Of objects, each with some of the columns; `least` are there even if no row has them."""
        header = dict.fromkeys([name for row in rows for name in row] or least)
        return cls(name, {one: [row.get(one) for row in rows] for one in header})

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
        return float32_of(np.array([np.nan if one is None else one for one in cells], np.float64))

    def blocks(self, columns: Sequence[str]) -> Iterator[Sequence[Ends]]:
        """All at once: a request has few."""
        yield [self.texts(name) for name in columns]


def _text(cell: Cell) -> str | None:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < LARGEST_WHOLE:
        cell = int(cell)
    return None if cell is None or cell == "" else str(cell)


def of_arrow(body: bytes, names: Sequence[str]) -> list[dict[str, list[Cell]]]:
    """The columns of Arrow IPC streams, one after the other in a body; InputError if they are not.

    names  what each is called in messages
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise InputError("Arrow needs pyarrow on the server, which has none; send JSON") from None
    reader, found = pa.BufferReader(body), list[dict[str, list[Cell]]]()
    for name in names:
        try:
            with pa.ipc.open_stream(reader) as stream:
                table = stream.read_all()
            table.validate(full=True)
            columns = table.to_pydict()
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise InputError(
                f"expected {len(names)} Arrow IPC stream{'s' if len(names) > 1 else ''} "
                f"({', '.join(names)}), and the one of {name} cannot be read: {_first(error)}"
            ) from None
        if len(columns) < table.num_columns:
            raise DataError(f"the columns of {name} must have different names")
        found.append({one: [_cell(cell, one, name) for cell in columns[one]] for one in columns})
    return found


def _cell(cell: object, column: str, name: str) -> Cell:
    if isinstance(cell, float) and np.isnan(cell):
        return None
    if isinstance(cell, str | int | float | bool | None):
        return cell
    if hasattr(cell, "isoformat"):
        return str(cell.isoformat())
    raise DataError(
        f"the column {column!r} of {name} holds values of type {type(cell).__name__}, but a cell "
        "is one number or text"
    )


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
