"""Answers as Arrow tables, and the places that they are written to.

A place is a .csv or .parquet file, or a table of a DuckDB file: duckdb://FILE/TABLE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gcnii.errors import InputError, one_line
from gcnii.files import first_bytes, refuse_replacing, user_path
from gcnii.graph import Graph
from gcnii.inference.predict import column_names, label_table, refuse_format, typed, write_table
from gcnii.inference.training_graph import load_training_graph
from gcnii.results.trained import Trained
from gcnii.targets.target import Sets

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection
    from pandas import DataFrame

DUCKDB = "duckdb://"
DUCKDB_PLACE = f", or be {DUCKDB}FILE/TABLE"
Header = Callable[[Sequence[str]], bool]  # whether a table is of our making, by its columns


def to_table(
    result: Trained,
    graph: Graph | None = None,
    device: str = "auto",
    *,
    ensemble: bool = True,
    coverage: float | None = None,
    kind: Sets = "lac",
) -> pa.Table:
    """What a trained model predicts for each node, as an Arrow table for a database.

    Parameters
    ----------
    result : Result or Ensemble
        What `fit` or `open_bundle` returned.
    graph : Graph, optional
        A graph with the features of the training graph, which is the default.
    device : {"auto", "cpu", "cuda"}
        Where to compute.
    ensemble : bool
        Whether to predict with all members and runs, or with the best only.
    coverage : float, optional
        Add sets of classes that contain the true one with this probability.
    kind : {"lac", "aps"}
        The smallest sets, or sets that are larger where the model is unsure.

    Returns
    -------
    pyarrow.Table
        One row per node, in the order of the graph: `node`, `label`, `probability`, `known`,
        `split` and the probability of each class, as `gcnii predict` writes them.

    Examples
    --------
    >>> import gcnii
    >>> graph = gcnii.load("csbm", n=60)
    >>> result = gcnii.fit(graph, layers=2, epochs=3)
    >>> gcnii.to_table(result, graph).column_names
    ['node', 'label', 'probability', 'known', 'split', 'p(0)', 'p(1)']
    """
    if not isinstance(result, Trained):
        raise InputError(
            f"to_table takes what gcnii.fit or gcnii.open_bundle returned, got "
            f"{type(result).__name__}"
        )
    _refuse_missing("pyarrow", "parquet", "to_table")
    graph = load_training_graph(result) if graph is None else graph
    asked = {"coverage": coverage, "kind": kind}
    return arrow_table(label_table(result, graph, device, ensemble=ensemble, **asked))  # type: ignore[arg-type]


def arrow_table(table: DataFrame) -> pa.Table:
    """The same in Arrow: names are text, and None is null."""
    import pyarrow as pa

    found = pa.Table.from_pandas(typed(table), preserve_index=False)
    return found.replace_schema_metadata(None)


def embedding_table(result: Trained, graph: Graph, device: str = "auto") -> DataFrame:
    """One row per node: its name, and its last hidden layer as the columns e0, e1, …"""
    import pandas as pd

    H = result.embed(graph, device)
    table = pd.DataFrame(H, columns=[f"e{j}" for j in range(H.shape[1])])
    names: object = range(graph.n) if graph.nodes is None else pd.Series(graph.nodes, dtype=object)
    table.insert(0, "node", names)
    return table


def are_embeddings(names: Sequence[str]) -> bool:
    """Whether these are the columns of `embedding_table`."""
    return list(names) == ["node", *(f"e{j}" for j in range(len(names) - 1))] and len(names) > 1


@dataclass(frozen=True)
class DuckTable:
    """A table of a DuckDB file, which is replaced as a file is: whole, or not at all."""

    path: Path
    name: str

    def __str__(self) -> str:
        """As it was given."""
        return f"{DUCKDB}{self.path}/{self.name}"

    def refuse_replacing(
        self, is_ours: Header, inputs: Iterable[Path | str | None], *, overwrite: bool
    ) -> None:
        """Raise InputError unless the table may be written, by the rule for files."""
        filled = self.path.is_file() and self.path.stat().st_size
        if filled and first_bytes(self.path)[8:12] != b"DUCK":
            raise InputError(f"{self.path} is no file of DuckDB; choose another name")
        # Other tables of the file stay, so that it may be written to.
        refuse_replacing(self.path, lambda _: True, inputs=inputs, overwrite=overwrite)
        if not filled:
            return
        with self._connected(read_only=True) as database:
            found = database.execute(
                "SELECT column_name FROM information_schema.columns WHERE lower(table_name) = "
                "lower(?) AND table_schema = current_schema() ORDER BY ordinal_position",
                [self.name],
            ).fetchall()
        names = [name for (name,) in found]
        if names and not is_ours(names) and not overwrite:
            raise InputError(
                f"{self.path} has a table {self.name} that gcnii did not write; choose another "
                "name, or replace it (--overwrite; in Python, overwrite=True)"
            )

    def write(self, table: DataFrame) -> None:
        """Make or replace the table."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = arrow_table(table)
        name = '"' + self.name.replace('"', '""') + '"'
        with self._connected() as database:
            database.register("gcnii_answers", rows)
            database.execute(f"CREATE OR REPLACE TABLE {name} AS FROM gcnii_answers")

    @contextmanager
    def _connected(self, *, read_only: bool = False) -> Iterator[DuckDBPyConnection]:
        import duckdb

        try:
            # An absolute path is a file; :memory: and md:NAME would be places elsewhere.
            with duckdb.connect(self.path.absolute(), read_only=read_only) as database:
                yield database
        except duckdb.Error as error:
            said = one_line(" ".join(str(error).split()))
            raise InputError(f"{self} cannot be written: {said}") from None


Place = Path | DuckTable


def place_of(out: str, what: str = "--out") -> Place:
    """Where answers are to go; InputError if nothing can be written under this name."""
    if not out:  # which would be this folder
        raise InputError("expected the path of a file or folder, got ''.")
    if not out.startswith(DUCKDB):
        path = user_path(out)
        refuse_format(path, what, DUCKDB_PLACE)
        return path
    file, _, name = out.removeprefix(DUCKDB).rpartition("/")
    if not file or not name:
        raise InputError(f"{what} must name a file and a table, {DUCKDB}FILE/TABLE, got {out}")
    for package in ("duckdb", "pyarrow"):
        _refuse_missing(package, "duckdb", DUCKDB)
    return DuckTable(user_path(file), name)


def _refuse_missing(package: str, extra: str, what: str) -> None:
    if find_spec(package) is None:
        raise InputError(f"{what} needs {package}: pip install 'gcnii[{extra}]'")


def refuse_place(
    place: Place, is_ours: Header, inputs: Iterable[Path | str | None], *, overwrite: bool
) -> None:
    """Raise InputError unless answers may be written there."""
    if isinstance(place, DuckTable):
        return place.refuse_replacing(is_ours, inputs, overwrite=overwrite)

    def ours(path: Path) -> bool:
        return is_ours(column_names(path))

    return refuse_replacing(place, ours, inputs=inputs, overwrite=overwrite)


def write_to(place: Place, table: DataFrame, is_ours: Header, *, overwrite: bool) -> None:
    """Write the table."""
    if isinstance(place, DuckTable):
        place.write(table)
    else:
        write_table(table, place, overwrite=overwrite, is_ours=is_ours)
