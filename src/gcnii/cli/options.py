"""Options that several commands share.  Nothing here loads torch: `gcnii data list` is quick."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcnii.data import CATALOG, load
from gcnii.errors import InputError
from gcnii.graph import Graph


def switch(text: str) -> Parameter:
    """A flag without a value and without a --no- form, off by default; `text` is its help."""
    return Parameter(negative="", show_default=False, help=text)


Source = Annotated[
    str, Parameter(help="A name from `gcnii data list`, or a folder with nodes.csv and edges.csv.")
]
Device = Annotated[str, Parameter(help="Device to compute on: auto, cpu or cuda.")]
Json = Annotated[bool, switch("Print one JSON document instead of tables.")]
Offline = Annotated[bool, switch("Never use the network.")]
Quiet = Annotated[bool, switch("Show no progress bar and no warnings; errors are still shown.")]
Unknown = Annotated[
    str, Parameter(help="A label that means unknown, such as NA. Applies to folders only.")
]
Directed = Annotated[bool, switch("Edges are one-way. Applies to folders only.")]


def print_json(document: object) -> None:
    """Print JSON in ASCII, which every terminal and pipe can take."""
    print(json.dumps(document, indent=1, allow_nan=False))


def load_graph(source: str | Path, *, directed: bool, offline: bool, unknown: str = "") -> Graph:
    """`load`; `directed` and `unknown` are for folders, `offline` holds for later fetches too."""
    if offline:
        os.environ["GCNII_OFFLINE"] = "1"  # a geometry's neighbours are fetched when it is trained
    parameters = {"directed": directed, "unknown": unknown} if source not in CATALOG else {}
    return load(source, offline=offline, **parameters)


def refuse_below_one(flag: str, number: int | None) -> None:
    """Raise InputError if a count is given and is not at least 1."""
    if number is not None and number < 1:
        raise InputError(f"{flag} must be at least 1, got {number}")


def refuse_unwritable(folder: Path, flag: str = "--out") -> None:
    """Raise InputError, before any work is done, if nothing can be written to `folder`."""
    if reason := _why_unwritable(folder):
        raise InputError(f"cannot write to {folder}: {reason}; choose another {flag}")


def _why_unwritable(folder: Path) -> str:
    try:
        str(folder).encode()
    except UnicodeEncodeError:  # safetensors could not read the file again
        return "its name is not UTF-8"
    whole = folder.absolute()
    place = next(path for path in (whole, *whole.parents) if path.exists())
    if not place.is_dir():
        return f"{place} is a file, not a folder"
    try:  # os.access proves nothing: it says that root can write to /proc
        tempfile.TemporaryDirectory(dir=place).cleanup()
    except OSError:
        return f"no file can be created in {place}"
    return ""
