"""The catalog: every data set known by name, with its files, its counts and how it is read.

catalog.toml says what there is, and FILES the digest and size of every file.

`size_of` and `counted` say how large a graph is, also one that need not be at hand.
"""

from __future__ import annotations

import fnmatch
import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path, PurePosixPath

import numpy as np
import scipy.sparse as sp

from gcnii.data import benchmarks, generators
from gcnii.data.tables.reading import READING
from gcnii.errors import DataError, suggestion
from gcnii.files import Document
from gcnii.graph import Graph


@dataclass(frozen=True)
class File:
    """One upstream file.

    path      relative to the cache folder and to a mirror
    url       address of the file or, if `archived`, of the zip archive that contains it
    digest    `sha256:…`, or `git:…` (the SHA-1 of a git blob) if only that is known
    size      in bytes, if it is known
    """

    path: str
    url: str
    digest: str
    archived: bool = False
    size: int | None = None

    @property
    def name(self) -> str:
        """The file name without its folders."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True)
class Counts:
    """Numbers of nodes, edges (as in `Graph.m`; None if unknown), features and classes."""

    nodes: int
    edges: int | None
    features: int
    classes: int


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set: where it comes from, how it is read, and what is in it.

    read      Files → Graph; for a generated graph (no `files`), parameters → Graph
    counts    of the files, which may differ from the paper's Table 1; of a generated graph with
              its default parameters
    notes     known faults, one sentence each
    neighbourhoods  geometry → the file of neighbours that Geom-GCN published; not needed by `load`
    tables    whether it is made of two tables, with the options of `from_frames`, and treated as a
              user's own: split and trained in the same way
    """

    name: str
    title: str
    read: Callable[..., Graph]
    counts: Counts
    licence: str
    source: str
    files: tuple[File, ...] = ()
    notes: tuple[str, ...] = ()
    neighbourhoods: Mapping[str, File] = field(default_factory=dict)
    tables: bool = False

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that `load` accepts: those of `read` for a generated graph, else none."""
        if self.tables:
            return tuple(READING)
        return () if self.files else tuple(inspect.signature(self.read).parameters)


def _packaged(name: str) -> str:
    return resources.files("gcnii.data").joinpath(name).read_text("utf-8")


def _file(upstream: Mapping[str, str], archives: Mapping[str, str], line: str) -> File:
    """The file of a line in FILES: digest, size in bytes (- if unknown) and path."""
    digest, size, path = line.split()
    for start, url in archives.items():
        if path.startswith(start):
            return File(path, url, digest, archived=True)
    (start,) = (one for one in upstream if path.startswith(one))
    return File(path, upstream[start] + path.removeprefix(start), digest, size=int(size))


def _entry(files: Mapping[str, File], family: Document, own: Document) -> Entry:
    """The data set that a family and what is its own say."""
    said = {"title": "{}", "files": (), "stem": own["name"], "published": False, **family, **own}
    patterns = [pattern.format(stem=said["stem"]) for pattern in said["files"]]
    source = benchmarks if patterns else generators
    read, (n, m, d, k) = getattr(source, said["read"]), said["counts"]
    near = {
        kind: benchmarks.neighbourhood_path(said["stem"], kind)
        for kind in (benchmarks.KINDS if said["published"] else ())
    }
    return Entry(
        name=said["name"],
        title=family.get("title", "{}").format(said["title"]),
        read=partial(read, name=said["name"]) if patterns else read,
        counts=Counts(n, None if m < 0 else m, d, k),
        licence=said["licence"],
        source=said["source"],
        files=tuple(files[path] for one in patterns for path in fnmatch.filter(files, one)),
        notes=(*own.get("notes", ()), *family.get("notes", ())),
        neighbourhoods={kind: files[path] for kind, path in near.items() if path in files},
        tables=own.get("tables", False),
    )


def _catalog() -> Iterator[Entry]:
    said = tomllib.loads(_packaged("catalog.toml"))
    lines = _packaged("FILES").splitlines()
    files = {one.path: one for one in (_file(said["upstream"], said["archives"], x) for x in lines)}
    for family in said["family"]:
        for own in family.pop("data"):
            yield _entry(files, family, own)


CATALOG: dict[str, Entry] = {entry.name: entry for entry in _catalog()}


def lookup(name: str) -> Entry:
    """The entry of that name; DataError, with the closest name, if there is none."""
    if name in CATALOG:
        return CATALOG[name]
    beside = (path.parent.name for path in Path().glob("*/nodes.*"))  # a folder may be misspelt
    others = suggestion(name, [*CATALOG, *beside], "`gcnii data list`")
    raise DataError(f"no data set {name!r}; {others}, or give the path of a folder with nodes.csv")


OGB = "ogbn-"  # what names of the Open Graph Benchmark begin with, and may be given without
# As published: Hu et al. 2020 (OGB); Hamilton et al. 2017 (reddit).  A link counts once.
KNOWN = {
    "ogbn-arxiv": Counts(169_343, 1_166_243, 128, 40),
    "ogbn-products": Counts(2_449_029, 61_859_140, 100, 47),
    "ogbn-papers100m": Counts(111_059_956, 1_615_685_872, 128, 172),
    "reddit": Counts(232_965, 57_307_946, 602, 41),
}
# Of the catalog's sparse features, the share that is stored where the files are not at hand.
DENSITY = 0.02


@dataclass(frozen=True, kw_only=True)
class Size:
    """n nodes with d features in k classes.

    entries  of P̃: each link twice, and a loop for each node
    stored   numbers of X: n · d, or of a sparse X those that are not zero
    sparse   whether X is
    exact    False where it is from counts alone: links that are listed in both directions then
             count twice
    """

    n: int
    entries: int
    d: int
    k: int
    stored: int
    sparse: bool = False
    exact: bool = True

    @property
    def degree(self) -> float:
        """Entries of a row of P̃, on average."""
        return self.entries / self.n


def size_of(graph: Graph) -> Size:
    """The size of a graph at hand; of a directed one, each node gathers over one direction."""
    entries = (1 if graph.directed else 2) * graph.m + graph.n
    X, sparse = graph.X, isinstance(graph.X, sp.csr_array)
    stored = int(X.nnz) if isinstance(X, sp.csr_array) else int(np.prod(X.shape))
    return Size(n=graph.n, entries=entries, d=graph.d, k=graph.k, stored=stored, sparse=sparse)


def counted(name: str) -> Size | None:
    """The size of a graph of the catalog, or of another well-known one; None if it is not known."""
    if name in CATALOG and (counts := CATALOG[name].counts).edges is not None:
        # Files of benchmarks are bags of words; what is generated is dense.
        return _of_counts(counts, DENSITY if CATALOG[name].files else 1.0)
    low = name.lower()
    found = KNOWN.get(low) or KNOWN.get(f"{OGB}{low}")
    return _of_counts(found, 1.0) if found else None


def _of_counts(counts: Counts, density: float) -> Size:
    n, d = counts.nodes, counts.features
    entries, stored = 2 * (counts.edges or 0) + n, round(n * d * density)
    known = {"n": n, "entries": entries, "d": d, "k": counts.classes, "stored": stored}
    return Size(**known, sparse=density < 1, exact=False)
