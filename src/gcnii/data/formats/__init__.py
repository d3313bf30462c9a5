"""The formats of a graph on disk: one file for each, and one line in READERS.

A module of a format has `reads(path)`, which says whether a path is in it, and `read(path, …)`,
which returns its graph.  Planetoid, Geom-GCN, PPI and npz_benchmarks are formats of the catalog: an
entry names its own reader.
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
    reads: Callable[[Path], bool]
    read: Callable[..., Graph]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that `read` takes beside the path."""
        _, *own = inspect.signature(self.read).parameters.values()
        names = (READING if one.kind == one.VAR_KEYWORD else (one.name,) for one in own)
        return tuple(chain.from_iterable(names))


# The first that reads a path is used.
READERS: tuple[Reader, ...] = (
    Reader("packed graph", packed.FORM, packed.reads, packed.read),
    Reader("graph in parts", parts.FORM, parts.reads, parts.read),
    Reader("npz file", npz.FORM, npz.reads, npz.read),
    Reader("GraphML file", graphml.FORM, graphml.reads, graphml.read),
    Reader("GML file", gml.FORM, gml.reads, gml.read),
    Reader("OGB folder", ogb.FORM, ogb.reads, ogb.read),
    Reader("Neo4j folder", neo4j.FORM, neo4j.reads, neo4j.read),
    Reader("folder", folder.FORM, folder.reads, folder.read),
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
