"""A data frame of pandas, polars or pyarrow as a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gcnii.data.tables.reading import Ends, Rows
from gcnii.errors import DataError
from gcnii.graph.columns import Cells, Texts, float32_of

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame

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
