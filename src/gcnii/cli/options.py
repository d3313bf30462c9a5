"""Options that several commands share.  Nothing here needs torch, so that `gcnii data list` need
not wait for it.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from gcnii.data import CATALOG, load
from gcnii.errors import InputError
from gcnii.graph import Graph

Json = Annotated[bool, Parameter(negative="", help="Print one JSON document instead of tables.")]
Device = Annotated[str, Parameter(help="auto, cpu or cuda.")]
Offline = Annotated[bool, Parameter(negative="", help="Never use the network.")]
Directed = Annotated[
    bool, Parameter(negative="", help="In a folder of yours: an edge u,v says nothing of v,u.")
]


def print_json(document: Any) -> None:
    """For machines: in ASCII, which every terminal and pipe can carry."""
    print(json.dumps(document, indent=1, allow_nan=False))


def load_graph(source: str | Path, *, directed: bool, offline: bool) -> Graph:
    """`load`, where `directed` is for folders: what the catalog names knows its own direction."""
    parameters = {"directed": directed} if source not in CATALOG else {}
    return load(source, offline=offline, **parameters)


def refuse_unwritable(folder: Path, flag: str = "--out") -> None:
    """Say before the work, not after it, that its results cannot be kept in `folder`."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:  # which safetensors would not read again
        raise InputError(
            f"cannot write to {folder}: its name is not UTF-8; choose another {flag}"
        ) from None
    whole = folder.absolute()
    place = next(path for path in (whole, *whole.parents) if path.exists())
    if not place.is_dir():
        raise InputError(
            f"cannot write to {folder}: {place} is a file, not a folder; choose another {flag}"
        )
    try:  # os.access would be no proof: root may write in /proc, and cannot
        tempfile.TemporaryDirectory(dir=place).cleanup()
    except OSError:
        raise InputError(
            f"cannot write to {folder}: nothing can be made in {place}; choose another {flag}"
        ) from None
