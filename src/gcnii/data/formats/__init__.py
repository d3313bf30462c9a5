"""The formats of a graph on disk: one file for each, and one line in READERS.

A module of a format has `read(path, …)`, which returns its graph, and FORM, what a path in this
format is, for messages.  READERS says how a path is recognised: by its suffix, or by a file that a
folder has.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from gcnii.data.formats import folder, gml, graphml, neo4j, npz, ogb, packed, parts
from gcnii.data.tables.reading import READING
from gcnii.errors import DataError
from gcnii.graph import Graph

Recognises = Callable[[Path], bool]
WATCHER = "watcher"  # the parameter of `read` that is told how far it is


@dataclass(frozen=True)
class Reader:
    """A format of a graph on disk.

    kind    what a message calls a path in this format: "folder"
    form    what such a path holds, for "a graph is …"
    reads   whether a path is in this format, judged without reading its content
    read    path and parameters → Graph
    """

    kind: str
    form: str
    reads: Recognises
    read: Callable[..., Graph]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that `read` takes beside the path and a watcher."""
        _, *own = inspect.signature(self.read).parameters.values()
        names = (READING if one.kind == one.VAR_KEYWORD else (one.name,) for one in own)
        return tuple(name for name in chain.from_iterable(names) if name != WATCHER)

    @property
    def shows_progress(self) -> bool:
        """Whether `read` can tell how far it is."""
        return WATCHER in inspect.signature(self.read).parameters


def _file(suffix: str) -> Recognises:
    return lambda path: path.suffix.lower() == suffix and path.is_file()


def _folder_with(*names: str) -> Recognises:
    return lambda path: any((path / name).exists() for name in names)


# The first that recognises a path is used.
READERS: tuple[Reader, ...] = (
    Reader("packed graph", packed.FORM, _file(".safetensors"), packed.read),
    Reader("graph in parts", parts.FORM, _folder_with(parts.MANIFEST), parts.read),
    Reader("npz file", npz.FORM, _file(".npz"), npz.read),
    Reader("GraphML file", graphml.FORM, _file(".graphml"), graphml.read),
    Reader("GML file", gml.FORM, _file(".gml"), gml.read),
    Reader("OGB folder", ogb.FORM, _folder_with(*ogb.MARKS), ogb.read),
    Reader("Neo4j folder", neo4j.FORM, neo4j.reads, neo4j.read),
    Reader("folder", folder.FORM, Path.is_dir, folder.read),
)


def reader_of(path: Path) -> Reader:
    """The reader for the format of this path; DataError if there is none."""
    for reader in READERS:
        if reader.reads(path):
            return reader
    reason = "is not in a format that gcnii reads" if path.exists() else "does not exist"
    others = [reader.form for reader in READERS if reader.form != folder.FORM]
    forms = ", ".join([folder.FORM, *others[:-1]])
    raise DataError(f"{path} {reason}; a graph is {forms}, or {others[-1]}")
