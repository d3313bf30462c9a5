"""from_query: a Graph of two queries of a database, in SQL or in Cypher.

Whatever a database's own library gives as Arrow is taken as it is; rows of a DB-API cursor, or of
Neo4j's driver, become columns without a loop over them in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol

from gcnii.data.converters.frames import from_frames
from gcnii.errors import DataError, InputError, one_line
from gcnii.graph import Graph

if TYPE_CHECKING:
    import pyarrow as pa

CONNECTIONS = (
    "a connection of DuckDB, SQLite, psycopg, ADBC or another DB-API library, a driver of Neo4j, "
    "or a connection of Ladybug"
)


class Cursor(Protocol):
    """What a DB-API cursor has."""

    description: Sequence[Sequence[str]] | None

    def execute(self, query: str, /) -> object: ...

    def fetchall(self) -> Sequence[Sequence[object]]: ...

    def close(self) -> object: ...


def from_query(nodes: str, edges: str, connection: object, **options: object) -> Graph:
    """Make a graph from two queries, one for the nodes and one for the edges.

    The language is the database's own: SQL, or Cypher for Neo4j and Ladybug.  Types are those of
    the result, and a null is a missing value.  Needs pyarrow.

    Parameters
    ----------
    nodes : str
        A query that returns one row per node, with the columns that `from_frames` expects.
    edges : str
        A query that returns one row per edge.
    connection : object
        A connection of DuckDB, SQLite, psycopg, ADBC or another DB-API library, a driver of Neo4j,
        or a connection of Ladybug.  It stays open.
    **options
        What the columns mean, as for `from_frames`.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import gcnii
    >>> import sqlite3
    >>> shop = sqlite3.connect(":memory:")
    >>> _ = shop.execute("CREATE TABLE person (id, age, label)")
    >>> people = [(i, 20 + i, "ab"[i % 2]) for i in range(9)]
    >>> _ = shop.executemany("INSERT INTO person VALUES (?, ?, ?)", people)
    >>> knows = "SELECT id AS source, (id + 1) % 9 AS target FROM person"
    >>> gcnii.from_query("SELECT * FROM person", knows, shop)
    Graph(graph: 9 nodes, 9 undirected edges, 1 features, 2 classes)
    """
    if find_spec("pyarrow") is None:
        raise InputError("from_query needs pyarrow: pip install 'gcnii[parquet]'")
    tables = {"nodes": nodes, "edges": edges}
    for name, query in tables.items():
        if not isinstance(query, str):
            raise InputError(f"{name} must be the text of a query, got {type(query).__name__}")
    found = [_plain(_answer(connection, query, name)) for name, query in tables.items()]
    return from_frames(*found, **options)  # type: ignore[arg-type]


def _answer(connection: object, query: str, name: str) -> pa.Table:
    """The table that a query returns."""
    try:
        if hasattr(connection, "execute_query"):  # Neo4j's driver
            rows, _, names = connection.execute_query(query)
            return _of_rows(names, rows, name)
        if hasattr(connection, "sql") and hasattr(connection, "cursor"):  # DuckDB
            return connection.sql(query).to_arrow_table()
        if hasattr(connection, "cursor"):
            return _of_cursor(connection.cursor(), query, name)
        if hasattr(connection, "execute") and not hasattr(connection, "fetchall"):  # Ladybug, Kuzu
            return connection.execute(query).get_as_arrow()
    except InputError:
        raise
    except Exception as error:  # each library has a class of its own
        said = " ".join(str(error).split())
        raise DataError(f"the query of the {name} failed: {one_line(said)}") from error
    raise InputError(f"connection must be {CONNECTIONS}, got {type(connection).__name__}")


def _of_cursor(cursor: Cursor, query: str, name: str) -> pa.Table:
    """What a DB-API cursor fetches; ADBC's has Arrow."""
    try:
        cursor.execute(query)
        if hasattr(cursor, "fetch_arrow_table"):
            return cursor.fetch_arrow_table()
        if cursor.description is None:
            raise DataError(f"the query of the {name} returns no table; it must be a SELECT")
        return _of_rows([column[0] for column in cursor.description], cursor.fetchall(), name)
    finally:
        cursor.close()


def _of_rows(names: Sequence[str], rows: Sequence[Sequence[object]], name: str) -> pa.Table:
    """Rows as columns, of the types that Python's values have."""
    import pyarrow as pa

    arrays, by_name = [], bool(rows) and isinstance(rows[0], dict)  # as psycopg's dict_row has them
    for j, column in enumerate(names):
        cell = itemgetter(column if by_name else j)
        cells = list(map(cell, rows))  # an eighth of the time that zip(*rows) takes
        try:
            arrays.append(pa.array(cells))
        except (pa.ArrowException, OverflowError, TypeError):
            kinds = sorted({type(cell).__name__ for cell in cells if cell is not None})
            raise DataError(
                f"the column {column!r} of the {name} holds values of type {' and '.join(kinds)}, "
                "which no one type of Arrow has; convert it in the query, such as by CAST(… AS "
                "TEXT), in Cypher toString(…)"
            ) from None
    return pa.Table.from_arrays(arrays, names=list(names))


def _plain(table: pa.Table) -> pa.Table:
    """The table without types that only Arrow has: a UUID is text, others are what they hold."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if not isinstance(field.type, pa.BaseExtensionType):
            continue
        column = table.column(i)
        if field.type.extension_name == "arrow.uuid":
            texts = [cell and str(cell) for cell in column.to_pylist()]
            table = table.set_column(i, field.name, pa.array(texts, pa.string()))
        else:
            table = table.set_column(i, field.name, column.cast(field.type.storage_type))
    return table
