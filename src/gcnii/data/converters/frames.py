"""from_frames: a Graph of two data frames, of pandas, polars or pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gcnii.data.tables.assemble import Nodes, assemble
from gcnii.data.tables.reading import READING, Names, Reading, Rows
from gcnii.data.tables.reading import Ends as Ends
from gcnii.errors import DataError, Problems
from gcnii.graph import Graph
from gcnii.graph.columns import Cells, Columns, Texts, float32_of

if TYPE_CHECKING:
    import narwhals as nw
    import pandas as pd
    from narwhals.typing import IntoDataFrame

MICROSECONDS = 86_400e6  # of a day
NOT_A_CELL = (list, tuple, dict, set, np.ndarray, bytes, complex)
LARGEST_WHOLE = 2**53  # whole numbers that float64 holds exactly


def from_frames(
    nodes: IntoDataFrame,
    edges: IntoDataFrame,
    *,
    id: str = "id",
    label: Names = "label",
    split: str = "split",
    weight: str = "",
    source: str = "",
    target: str = "",
    duplicates: str = "",
    drop: Names = (),
    numeric: Names = (),
    categorical: Names = (),
    date: Names = (),
    text: Names = (),
    unknown: str = "",
    multilabel: bool = False,
    directed: bool = False,
    seed: int = 0,
    name: str = "graph",
) -> Graph:
    """Make a graph from two data frames, with one row per node and one row per edge.

    A missing label (NaN, None, null) is unknown; a missing feature becomes the median.  Without a
    column of splits, the labelled nodes of each class are split 60/20/20.

    Parameters
    ----------
    nodes : data frame of pandas, polars or pyarrow
        The nodes.  All columns without another meaning are features.
    edges : data frame of pandas, polars or pyarrow
        The edges.
    id : str
        The column of `nodes` with their names.
    label : str or list of str
        The column of `nodes` with their labels, if any.  Several columns contain zeros and ones.
        A column called 0 is named by 0 or "0", here as below.
    split : str
        The column of `nodes` with train, val or test, if any.
    weight : str
        The column of `edges` with their weights; default: weight, if there is one.
    source : str
        The column of `edges` where an edge begins; default: source, from, src, u, or the first of
        two columns.
    target : str
        The column of `edges` where an edge ends; default: target, to, dst, v, or the second of two
        columns.
    duplicates : str
        What the weights of an edge that is given several times become: add, mean, max or first; of
        an undirected edge, its two directions are such.  Default: weights of one direction are
        added up, those of two directions must agree, and without weights an edge counts once.
    drop : str or list of str
        Columns to ignore.
    numeric : str or list of str
        Columns to interpret as numbers.
    categorical : str or list of str
        Columns to interpret as categories.
    date : str or list of str
        Columns to interpret as dates; other columns of dates are left out, with a warning.
    text : str or list of str
        Columns to interpret as text, encoded as TF-IDF of its words.
    unknown : str
        A label that means unknown, such as NA.
    multilabel : bool
        Whether a label such as `a;b` stands for two labels.
    directed : bool
        Whether edges are one-way.
    seed : int
        The seed of the split, if it is drawn.
    name : str
        The name of the graph.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import gcnii
    >>> import pandas as pd
    >>> nodes = pd.DataFrame({"id": range(9), "age": range(20, 29), "label": ["a", "b", "b"] * 3})
    >>> edges = pd.DataFrame({"source": range(8), "target": range(1, 9)})
    >>> gcnii.from_frames(nodes, edges)
    Graph(graph: 9 nodes, 8 undirected edges, 1 features, 2 classes)
    """
    given = locals()
    reading = Reading(**{option: given[option] for option in READING})
    graph = assemble(*open_frames(nodes, edges, reading), name)
    return graph._with_origin("", loaded_with=reading.given)


def open_frames(
    nodes: IntoDataFrame, edges: IntoDataFrame, reading: Reading, columns: Columns | None = None
) -> tuple[Nodes, Rows]:
    """The two tables of data frames."""
    rows, links = (
        FrameRows(_frame(nodes, "nodes"), "nodes"),
        FrameRows(_frame(edges, "edges"), "edges"),
    )
    if not len(rows):
        raise DataError("nodes has no rows; a graph needs at least one node")
    return Nodes(rows, reading, Problems(), known=columns), links


def _frame(table: IntoDataFrame, name: str) -> nw.DataFrame[IntoDataFrame]:
    import narwhals as nw

    of_pandas = type(table).__module__.startswith("pandas")
    columns = getattr(table, "columns", None) if of_pandas else None
    if getattr(columns, "nlevels", 1) > 1:
        raise DataError(
            f"the columns of {name} have names of several levels, such as {columns[0]!r}; "  # type: ignore[index]
            "give each column one name"
        )
    if columns is not None:
        table = _dense(_named(table))
    try:
        frame = nw.from_native(table, eager_only=True)
        frame.schema  # noqa: B018 - pandas allows two columns of one name, which this refuses
    except TypeError:
        advice = "; collect() it first" if type(table).__name__ == "LazyFrame" else ""
        raise DataError(
            f"{name} must be a data frame of pandas, polars or pyarrow, "
            f"got {type(table).__name__}{advice}"
        ) from None
    except ValueError as error:
        came = str(error).strip().splitlines()[0]
        raise DataError(f"the columns of {name} must have different names ({came})") from None
    return frame


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """A frame of pandas whose columns are text, such as 0, 1, …; all that Python has for text."""
    import pandas as pd

    return table.set_axis(pd.Index([str(one) for one in table.columns], dtype=object), axis=1)


def _dense(table: pd.DataFrame) -> pd.DataFrame:
    """A frame of pandas without its Sparse columns, whose type narwhals does not know."""
    sparse = [name for name, dtype in table.dtypes.items() if hasattr(dtype, "fill_value")]
    return table.assign(**{name: table[name].sparse.to_dense() for name in sparse})


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
            return float32_of(self._floats(name))
        return float32_of(self._days(name)) if self._is_duration(name) else self.texts(name)

    def _is_duration(self, name: str) -> bool:
        import narwhals as nw

        return self.frame[name].dtype == nw.Duration

    def _days(self, name: str) -> NDArray[np.float64]:
        import narwhals as nw

        series = self.frame[name].dt.total_microseconds().cast(nw.Float64())
        return np.asarray(series.fill_null(np.nan).to_numpy(), np.float64) / MICROSECONDS

    def _floats(self, name: str) -> NDArray[np.float64]:
        import narwhals as nw

        series = self.frame[name].cast(nw.Float64())
        return np.asarray(series.fill_null(np.nan).to_numpy(), np.float64)

    def blocks(self, columns: Sequence[str]) -> Iterator[Sequence[Ends]]:
        """All rows at once: they are in memory already."""
        yield [self._ends(name) for name in columns]

    def _ends(self, column: str) -> Ends:
        """Whole numbers as they are, because ten million texts take ten seconds to make."""
        series = self.frame[column]
        if series.dtype.is_signed_integer() and not series.null_count():
            return np.asarray(series.to_numpy(), np.int64)
        return self.texts(column)

    def numbers(self, column: str) -> NDArray[np.float64]:
        """NaN where a cell is no number."""
        if self.frame[column].dtype.is_numeric():
            return self._floats(column)
        return super().numbers(column)


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
