"""`load`: a name of the catalog, or a folder of your own → Graph."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gcnii.data.catalog import CATALOG, lookup
from gcnii.data.fetch import fetch_files
from gcnii.data.readers import folder
from gcnii.errors import DataError
from gcnii.graph import Graph


def load(source: str | Path, *, offline: bool = False, **parameters: Any) -> Graph:
    """The graph of that name in the catalog, or in that folder (see `gcnii.data.readers.folder`).

    A name wins over a folder of the same name; `load("./cora")` means the folder.  Parameters are
    those of a generated set, `load("csbm", n=500, seed=3)`, or of a folder, `load("my/graph",
    directed=True)`.
    """
    if isinstance(source, Path) or (source not in CATALOG and _looks_like_a_path(source)):
        _refuse_unknown(
            parameters, inspect.signature(folder.read).parameters, f"the folder {source}", skip=1
        )
        return replace(
            folder.read(Path(source), **parameters), source=str(Path(source).expanduser().resolve())
        )
    entry = lookup(source)
    _refuse_unknown(parameters, entry.parameters, f"the dataset {source!r}")
    if not entry.files:
        return replace(entry.read(**parameters), source=entry.name)
    paths = fetch_files(entry.name, entry.files, offline)
    return replace(entry.read({path.name: path for path in paths}), source=entry.name)


def _looks_like_a_path(source: str) -> bool:
    return (
        any(separator in source for separator in ("/", os.sep))
        or Path(source).expanduser().exists()
    )


def _refuse_unknown(
    given: Iterable[str], accepted: Iterable[str], owner: str, skip: int = 0
) -> None:
    names = list(accepted)[skip:]
    for name in given:
        if name not in names:
            takes = f"takes only {', '.join(names)}" if names else "takes no parameters"
            raise DataError(f"{owner} {takes}, got {name!r}")
