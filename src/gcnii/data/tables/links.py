"""The edges: from the names of their ends to the numbers of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcnii.columns.learn import flag
from gcnii.data.tables.ids import Ids
from gcnii.data.tables.reading import Reading
from gcnii.data.tables.rows import Rows
from gcnii.errors import DataError, GraphError, Problems, notice
from gcnii.graph.arrays import merged
from gcnii.graph.weights import merged_weighted

ENDS = (("source", "target"), ("from", "to"), ("src", "dst"), ("u", "v"))
WEIGHT = "weight"


class Links(NamedTuple):
    """(2, m) numbers of nodes; (m,) weights, if there are any."""

    edges: NDArray[np.int64]
    weights: NDArray[np.float64] | None


NONE = Links(np.zeros((2, 0), np.int64), None)  # where something is wrong with them


class LinkColumns(NamedTuple):
    """The names of the columns that hold the ends of an edge and, if any, its weight."""

    source: str
    target: str
    weight: str | None


def read_links(
    rows: Rows, ids: Ids, reading: Reading, problems: Problems, *, optional: bool = True
) -> Links:
    """The edges of a table, as they are listed; what is wrong is noted among the problems.

    optional  whether the weights could be left out
    """
    try:
        columns = link_columns(rows, reading)
    except DataError as error:
        problems.add(str(error))
        return NONE
    unused = [name for name in rows.header if name not in columns and name not in reading.drop]
    if unused:
        which = "column" if len(unused) == 1 else "columns"
        verb = "is" if len(unused) == 1 else "are"
        notice(f"{rows.name}: the {which} {', '.join(unused)} {verb} not used")
    before = len(problems.found)
    edges = _numbered(rows, columns, ids, problems)
    weights = _weights(rows, columns.weight, problems, optional) if columns.weight else None
    return Links(edges, weights) if len(problems.found) == before else NONE


def each_once(links: Links, reading: Reading, nodes: Sequence[str] | None) -> Links:
    """The edges without duplicates, as a graph keeps them; `nodes` are the names, for errors.

    Edges without weights count once, however often they are given, unless they are to be added up.
    """
    edges, weights = links
    if weights is None and reading.duplicates != "add":
        return Links(merged(edges, directed=reading.directed), None)
    each = np.ones(edges.shape[1]) if weights is None else weights
    directed, how = reading.directed, reading.duplicates
    try:
        edges, each = merged_weighted(edges, each, directed=directed, nodes=nodes, duplicates=how)
    except GraphError as error:
        raise DataError(str(error)) from None
    return Links(edges, None if weights is None and (each == 1).all() else each)


def link_columns(rows: Rows, reading: Reading) -> LinkColumns:
    """Which columns hold what; DataError if that cannot be told."""
    header = [name for name in rows.header if name not in reading.drop]
    named = {name.lower(): name for name in header}
    weight = _named(rows, reading.weight) if reading.weight else named.get(WEIGHT)
    if reading.source and reading.target:
        return LinkColumns(_named(rows, reading.source), _named(rows, reading.target), weight)
    for source, target in ENDS:
        if source in named and target in named:
            return LinkColumns(named[source], named[target], weight)
    rest = [name for name in header if name != weight]
    if len(rest) != 2:
        raise DataError(
            f"the two ends of an edge must be the columns source and target of {rows.name}, whose "
            f"columns are {', '.join(rows.header)}; rename them, or say which they are: source=…, "
            "target=… (--source, --target)"
        )
    return LinkColumns(rest[0], rest[1], weight)


def _named(rows: Rows, name: str) -> str:
    if name not in rows.header:
        raise DataError(
            f"{rows.name} has no column {name!r}; its columns are {', '.join(rows.header)}"
        )
    return name


def _numbered(rows: Rows, columns: LinkColumns, ids: Ids, problems: Problems) -> NDArray[np.int64]:
    if (ids.rows_of(np.array([columns.source, columns.target], object)) >= 0).all():
        problems.add(
            f"row 1 of {rows.name} holds node ids; begin the file with the header source,target"
        )
    ends = [columns.source, columns.target]
    edges, start = np.empty((2, len(rows)), np.int64), 0
    for block in rows.blocks(ends):
        stop = start + len(block[0])
        for row, texts in enumerate(block):
            edges[row, start:stop] = ids.rows_of(texts)
        start = stop
    for row, column in enumerate(ends):
        _note_unknown(rows, column, np.flatnonzero(edges[row] < 0), problems)
    return edges


def _note_unknown(rows: Rows, column: str, unknown: NDArray[np.int64], problems: Problems) -> None:
    if not len(unknown):
        return
    names = rows.texts(column)
    problems.add_each(
        unknown,
        lambda i: (
            f"{rows.place(i)} names the node {names[i]!r}, which the nodes do not have"
            if names[i] is not None
            else f"{rows.place(i)} has no {column}; name the nodes at both ends of every edge"
        ),
    )


def _weights(rows: Rows, column: str, problems: Problems, optional: bool) -> NDArray[np.float64]:
    weights = rows.numbers(column)
    or_else = f"; {flag('drop', column)} leaves all weights out" if optional else ""
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        cells = rows.texts(column)
        problems.add_each(
            wrong,
            lambda i: (
                f"{rows.place(i)}: the weight is {_shown(cells[i])}; it must be a number of 0 or "
                f"more{or_else}"
            ),
        )
    return weights


def _shown(cell: str | None) -> str:
    return "empty" if cell is None else repr(cell)
