"""`load`: a name of the catalog, or the path of a graph of your own → Graph."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gcnii.data.catalog import CATALOG, Entry, lookup
from gcnii.data.download import fetch_files
from gcnii.data.formats import parts, reader_of
from gcnii.data.tables.reading import Watcher
from gcnii.errors import DataError
from gcnii.files import one_name, user_path
from gcnii.graph import Graph


def load(source: str | Path, /, *, offline: bool = False, **parameters: Any) -> Graph:
    """Load a graph of the catalog, or from a file or folder.

    Parameters
    ----------
    source : str or Path
        A name from `gcnii data list`, or the path of a folder or file in a format of
        `gcnii.data.formats`.  Names take precedence: write `load("./cora")` for a folder of that
        name.
    offline : bool
        Whether to use only the cache and the mirror.
    **parameters
        Parameters of a generated graph, as in `load("csbm", n=500, seed=3)`, or of a format, as in
        `load("my/graph", directed=True)`.  Tables take the parameters of `from_frames`.

    Returns
    -------
    Graph

    Raises
    ------
    DataError
        If there is no such graph, if it cannot be downloaded, or if it is not valid.

    Examples
    --------
    >>> import gcnii
    >>> gcnii.load("digits")
    Graph(digits: 1797 nodes, 9929 undirected edges, 64 features, 10 classes)
    """
    if _is_path(source):
        return _from_disk(user_path(source), parameters)
    return _from_catalog(lookup(str(source)), offline, parameters)


def load_share(
    source: str | Path,
    rank: int,
    size: int,
    /,
    *,
    offline: bool = False,
    watcher: Watcher | None = None,
    **parameters: Any,
) -> Graph:
    """`load`, but of a graph in parts those alone that are of process `rank` of so many.

    watcher  is told how far the reading of large tables is
    """
    if _is_path(source):
        return _from_disk(user_path(source), parameters, (rank, size), watcher)
    return load(source, offline=offline, **parameters)


def _from_disk(
    path: Path,
    parameters: Mapping[str, object],
    share: tuple[int, int] = (0, 1),
    watcher: Watcher | None = None,
) -> Graph:
    reader = reader_of(path)
    _refuse_unknown(parameters, reader.parameters, f"the {reader.kind} {path}")
    if share[1] > 1 and reader.read is parts.read:
        graph: Graph = parts.read_piece(path, *share)
    else:
        told = {"watcher": watcher} if reader.shows_progress else {}
        graph = reader.read(path, **parameters, **told)
    graph = graph._with_origin(str(path.resolve()), loaded_with=parameters)
    return graph._set(name=one_name(graph.name))  # it is printed, and the name of folders


def _from_catalog(entry: Entry, offline: bool, parameters: Mapping[str, object]) -> Graph:
    if parameters:
        _refuse_unknown(parameters, entry.parameters, f"the data set {entry.name!r}")
    if entry.files:
        paths = fetch_files(entry.name, entry.files, offline)
        graph = entry.read({path.name: path for path in paths})
    else:
        graph = entry.read(**parameters)
    return graph._with_origin(entry.name, "" if entry.tables else entry.name, parameters)


def _is_path(source: str | Path) -> bool:
    if isinstance(source, Path) or source in CATALOG:
        return isinstance(source, Path)
    # A name of the catalog has no dot, so x.npz is a file, if a missing one.
    marked = any(sign in source for sign in ("/", os.sep, "."))
    return bool(source) and (marked or user_path(source).exists())


def _refuse_unknown(given: Iterable[str], accepted: Iterable[str], owner: str) -> None:
    names = list(accepted)
    for name in given:
        if name not in names:
            takes = f"takes only {', '.join(names)}" if names else "takes no parameters"
            raise DataError(f"{owner} {takes}, got {name!r}")
