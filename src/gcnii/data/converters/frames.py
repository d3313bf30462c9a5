"""from_frames: a Graph of two data frames, of pandas, polars or pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gcnii.data.tables.assemble import Nodes, assemble
from gcnii.data.tables.frame import FrameRows
from gcnii.data.tables.reading import READING, Names, Reading, Rows
from gcnii.errors import DataError, Problems
from gcnii.graph import Graph
from gcnii.graph.columns import Columns

if TYPE_CHECKING:
    import narwhals as nw
    import pandas as pd
    from narwhals.typing import IntoDataFrame


def from_frames(
    nodes: IntoDataFrame,
    edges: IntoDataFrame,
    *,
    id: str = "id",
    label: Names = "label",
    split: str = "split",
    weight: str = "",
    edge_type: str = "type",
    node_type: str = "node_type",
    target: Names = (),
    edge_from: str = "",
    edge_to: str = "",
    source: str = "",
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
    time: str = "",
    time_edges: str = "",
    time_shares: Sequence[float] | str = (),
    time_cuts: Names = (),
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
    edge_type : str
        The column of `edges` with their types, if any; "": none.  A model such as GCNII gathers
        over the edges of each type, with a learned share of each type in each layer.  A column of
        numbers is cut into types: "amount=3,12" makes three of it.
    node_type : str
        The column of `nodes` with their types, if any; "": none.  Each type has the feature columns
        that have cells in its rows, and a learned encoder of its own.
    target : str or list of str
        The column or columns of `nodes` with numbers to predict, in the place of labels; a node
        where one of them is missing is unlabelled.
    edge_from : str
        The column of `edges` where an edge begins; default: source, from, src, u, or the first of
        two columns.
    edge_to : str
        The column of `edges` where an edge ends; default: target, to, dst, v, or the second of two
        columns.
    source : str
        Deprecated: with it, `source` and `target` mean `edge_from` and `edge_to`.
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
    time : str
        The column of `nodes` that says when a node came, by numbers or by dates: training sees the
        past alone, validation what follows, and the last nodes test.  It is no feature, unless
        `numeric` or `date` names it, too.
    time_edges : str
        The column of `edges` that says when an edge came; by default, with the later of its ends.
    time_shares : (float, float)
        The shares of the labelled nodes, in the order of time, that train and that validate;
        default: 0.6, 0.2.  All nodes of one time have one role.
    time_cuts : (str, str)
        In their place, the times at which validation and testing begin.
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
        came = " ".join(str(error).replace("\n- ", " ").split())
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
