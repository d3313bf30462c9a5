"""A graph of your own: a folder with a table of nodes and a table of edges, CSV or parquet.

nodes.csv     a header, then one row per node: `id` (any text), any number of feature columns,
              `label` (any text; empty or absent: unknown) and optionally `split` (train, val, test
              or empty)
edges.csv     a header, then one row per edge: `source` and `target` (or `from` and `to`, `src` and
              `dst`, `u` and `v`, or the only two columns there are), both ids of nodes.csv, and
              optionally `weight` and `type`; other columns are left out, with a warning
features.npz  optional: wide, sparse features beside the columns of nodes.csv, as
              `scipy.sparse.save_npz` writes them, one row per node in the same order

Nodes of several types have a table each, nodes-users.csv and nodes-items.csv, with columns of their
own; or a column `node_type`.

Other names of columns are given as options (`gcnii.data.tables.reading`).  Without a `split` column
the labelled nodes of each class are split 60/20/20 at random by `seed`, with at least one for
training and, of three or more nodes, at least one for validation.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.data.formats.npz import BROKEN, LARGE, Arrays
from gcnii.data.tables.assemble import Nodes, assemble
from gcnii.data.tables.csv_file import open_csv
from gcnii.data.tables.frame import open_parquet
from gcnii.data.tables.reading import Ends, Reading, Rows, Watcher, progress_of
from gcnii.errors import DataError, GraphError, Problems
from gcnii.files import refuse_special
from gcnii.graph import Graph
from gcnii.graph.arrays import first, refuse_empty_columns
from gcnii.graph.columns import Cells, Columns, Texts, is_text

FORM = "a folder with nodes.csv and edges.csv (or .parquet)"
FORMATS = {".csv": open_csv, ".parquet": open_parquet}
MATRIX = "features.npz"
UNREADABLE = (*BROKEN, LookupError, TypeError, AttributeError, RuntimeWarning)


def read(
    path: Path, *, columns: Columns | None = None, watcher: Watcher | None = None, **options: object
) -> Graph:
    """The graph in a folder.

    columns  what its columns are, if that was learnt on another table
    watcher  is told how far the reading of large files is
    options  those of `Reading`
    """
    tables = open_folder(path, Reading.of(**options), columns, watcher)
    return assemble(*tables, path.resolve().name)


def open_folder(
    path: Path, reading: Reading, columns: Columns | None, watcher: Watcher | None = None
) -> tuple[Nodes, Rows]:
    """The two tables of a folder."""
    problems = Problems()
    nodes = _of_types(path, reading, problems, watcher) or _table(path, "nodes", problems, watcher)
    edges = _table(path, "edges", problems, watcher)
    if nodes is not None and not len(nodes):
        problems.add(f"{nodes.name} has a header but no rows; a graph needs at least one node")
    problems.refuse()
    assert nodes is not None
    assert edges is not None
    matrix = _matrix(path / MATRIX, len(nodes)) if (path / MATRIX).exists() else None
    names = tuple(f"features[{j}]" for j in range(0 if matrix is None else matrix.shape[1]))
    return Nodes(nodes, reading, problems, matrix, names, columns), edges


def _of_types(
    folder: Path, reading: Reading, problems: Problems, watcher: Watcher | None
) -> Rows | None:
    """The tables nodes-TYPE.csv, one below the other; None if there are none."""
    stems = sorted({path.stem for path in folder.glob("nodes-*") if path.suffix in FORMATS})
    if not stems:
        return None
    whole = [f"nodes{suffix}" for suffix in FORMATS if (folder / f"nodes{suffix}").exists()]
    if whole:
        problems.add(f"{folder} has {whole[0]} and {stems[0]}; keep one kind of them")
    found = {stem.removeprefix("nodes-"): _table(folder, stem, problems, watcher) for stem in stems}
    problems.refuse()
    column = reading.node_type or Reading.node_type
    parts = {kind: rows for kind, rows in found.items() if rows is not None}
    for rows in parts.values():
        if column in rows.header:
            problems.add(f"{rows.name} has a column {column}, which its name tells; leave it out")
        if reading.id.lower() not in map(str.lower, rows.header):
            problems.add(f"{rows.lacks(reading.id)}; rename the one with its nodes' names")
    problems.refuse()
    return StackedRows(parts, column)


class StackedRows(Rows):
    """Tables as one, with a column that says from which each row is; a cell may be in one alone.

    parts   type → its table
    column  the name of the column of types
    """

    def __init__(self, parts: dict[str, Rows], column: str):
        self.parts, self.column = parts, column
        self.name = " and ".join(rows.name for rows in parts.values())
        own = dict.fromkeys(name for rows in parts.values() for name in rows.header)
        self.header = (*own, column)

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    def place(self, i: int) -> str:
        """Where row i is, for a message."""
        for rows in self.parts.values():
            if i < len(rows):
                return rows.place(i)
            i -= len(rows)
        raise IndexError(i)

    def texts(self, column: str) -> Texts:
        """The cells of one column, as they are written; None where a table does not have it."""
        each = [self._texts(kind, rows, column) for kind, rows in self.parts.items()]
        return np.concatenate(each)

    def _texts(self, kind: str, rows: Rows, column: str) -> Texts:
        if column == self.column or column not in rows.header:
            return np.full(len(rows), kind if column == self.column else None, object)
        return rows.texts(column)

    def cells(self, columns: Sequence[str], as_text: Collection[str]) -> dict[str, Cells]:
        """Columns as numbers if all their cells are, in all tables, else as text."""
        each = [
            rows.cells([name for name in columns if name in rows.header], as_text)
            for rows in self.parts.values()
        ]
        found: dict[str, Cells] = {}
        for name in columns:
            own = [cells[name] for cells in each if name in cells]
            if name == self.column or any(map(is_text, own)):
                found[name] = self.texts(name)
            else:
                found[name] = self._numbers(name, each)
        return found

    def _numbers(self, name: str, each: Sequence[dict[str, Cells]]) -> Cells:
        gaps = (np.full(len(rows), np.nan, np.float32) for rows in self.parts.values())
        return np.concatenate(
            [cells.get(name, gap) for cells, gap in zip(each, gaps, strict=True)]
        ).astype(np.float32)

    def blocks(self, columns: Sequence[str]) -> Iterator[Sequence[Ends]]:
        """The names in some columns, all at once."""
        yield [self.texts(column) for column in columns]

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The cells of one column as numbers; NaN where a cell or the column is missing."""
        return np.concatenate(
            [
                rows.numbers(column) if column in rows.header else np.full(len(rows), np.nan)
                for rows in self.parts.values()
            ]
        )


def _table(folder: Path, stem: str, problems: Problems, watcher: Watcher | None) -> Rows | None:
    """The table in the one file of this name; None, and a problem, if it cannot be read."""
    found = [folder / f"{stem}{suffix}" for suffix in FORMATS]
    found = [path for path in found if path.exists()]
    if not found:
        problems.add(f"{folder} has no {stem}.csv; a graph is {FORM}")
        return None
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        problems.add(f"{folder} has {names}; keep the one to be read")
        return None
    (path,) = found
    return FORMATS[path.suffix](path, problems, progress_of(path, watcher))


def _matrix(path: Path, n: int) -> sp.csr_array:
    refuse_special(path)
    _refuse_shape(path, n)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # of casts that lose what a number says
            matrix = sp.csr_array(sp.load_npz(path), dtype=np.float32)
        matrix.check_format(full_check=True)
    except UNREADABLE as error:
        raise _unreadable(path, error) from None
    if not (finite := np.isfinite(matrix.data)).all():
        row = sp.coo_array(matrix).row[first(~finite)]
        raise DataError(
            f"{path.name} must hold finite numbers, got NaN or infinity in row {row} (counted "
            "from 0)"
        )
    return matrix


def _refuse_shape(path: Path, n: int) -> None:
    """Raise DataError for a matrix of another number of nodes, before memory is taken for it."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = Arrays(path, archive)
            rows, columns = map(int, arrays.fitting("shape", 2))
            counts = {name: math.prod(arrays.shape(name)) for name in arrays.names}
            stored = counts["data"]
    except UNREADABLE as error:
        raise _unreadable(path, error) from None
    if rows != n:
        raise DataError(
            f"{path.name} has {rows} rows, but there are {n} nodes; "
            "it needs one row per node, in the order of the nodes"
        )
    try:
        refuse_empty_columns((rows, columns), stored)
    except GraphError as error:
        raise DataError(f"{path.name}: {error}") from None
    if max(counts.values()) > LARGE + (rows + 1) * (columns + 1):
        raise DataError(f"{path.name} has more values than {rows} × {columns}; save it again")


def _unreadable(path: Path, error: BaseException) -> DataError:
    return DataError(
        f"{path.name} is not a sparse matrix as scipy.sparse.save_npz writes it ({error})"
    )
