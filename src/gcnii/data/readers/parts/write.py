"""Writing a graph in parts: the whole folder, or nothing."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors.numpy import save_file

from gcnii.data.readers.packed import (
    ENTRY,
    SUFFIX,
    Tensors,
    document_of,
    matrix_tensors,
    roles_of,
    table_tensors,
    text_tensors,
)
from gcnii.data.readers.parts.manifest import (
    MANIFEST,
    NAMES,
    VERSION,
    part_name,
    read_manifest,
)
from gcnii.errors import DataError, InputError, some_of
from gcnii.files import (
    Document,
    atomic_write,
    disk_errors,
    document_key,
    file_sha256,
    write_document,
)
from gcnii.graph import Graph
from gcnii.graph.piece import Numbers, Whole


@dataclass(frozen=True, eq=False)
class Numbering:
    """The numbers of the entries of A + I in the whole graph, row by row.

    first    direction → (n,) that of the first entry of each row
    pairs    (entries,) in both directions: a number that (u, v) and (v, u) share
    starts   (n + 1,) where the rows of `pairs` begin
    """

    first: Mapping[str, Numbers]
    pairs: Numbers
    starts: Numbers


def refuse_folder(path: Path, source: str = "") -> None:
    """Raise InputError unless a graph from this source can be written to this path in parts.

    A folder takes the place of another, so that there must be nothing in that one but parts, which
    its parts.json names; no flag says otherwise.
    """
    if path.suffix.lower() == SUFFIX:
        raise InputError(f"parts are written to a folder, got {path}; leave out its ending")
    if not path.exists():
        return
    if path.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise InputError(f"{path} is the folder that you are in; name one of the parts' own")
    if source and Path(source).exists() and path.samefile(source):
        raise InputError(f"{path} is read by this command, so it is not replaced; name another")
    names = sorted(one.name for one in path.iterdir()) if path.is_dir() else [path.name]
    if foreign := [name for name in names if name not in _written(path)]:
        raise InputError(
            f"{path} exists and is not a graph in parts, for gcnii did not write "
            f"{some_of(foreign)}; choose another name, or move that away"
        )


def _written(folder: Path) -> set[str]:
    """The files of a graph in parts; none if parts.json is not one that `write` has written."""
    try:
        manifest = read_manifest(folder)
    except (DataError, OSError):
        return set()
    parts = {part_name(i) for i in range(len(manifest["parts"]))}
    return parts | {MANIFEST} | ({NAMES} if "names" in manifest else set())


def write(
    graph: Graph,
    path: Path,
    owner: NDArray[np.int64],
    numbering: Numbering,
    known: Mapping[str, object],
) -> Document:
    """Write the graph, cut by `owner` (n,), to this folder; return what parts.json holds.

    Beside the graph, memory holds one part at a time.

    known  what is found out about the whole graph, for processes that have but a part of it
    """
    refuse_folder(path, graph.source)
    with _whole_folder(path) as folder, disk_errors():
        manifest = _about(graph, known)
        if names := _names(graph):
            manifest["names"] = _save(names, folder / NAMES)
        for part in range(int(owner.max()) + 1):
            tensors = _part(graph, owner, part, numbering)
            counts = {"nodes": len(tensors["rows"]), "edges": len(tensors["number"])}
            counts["halo"] = len(tensors["halo"])
            sha256 = _save(tensors, folder / part_name(part))
            manifest["parts"].append({"sha256": sha256, **counts})
        write_document(folder / MANIFEST, manifest | {"seal": document_key(manifest)})
        read_manifest(folder)  # or an error, and the folder that was there stays
    return manifest


def _about(graph: Graph, known: Mapping[str, object]) -> Document:
    whole = Whole.of(graph)
    counts = {"n": whole.n, "m": whole.m, "k": whole.k, "labelled": int(graph.labelled.sum())}
    texts = {name: getattr(graph, name) for name in ("classes", "features")}
    return {
        **document_of(graph),
        **counts,
        **{name: one if one is None else list(one) for name, one in texts.items()},
        "version": VERSION,
        "fingerprint": whole.fingerprint,
        "weighted": graph.weighted,
        "alike": list(whole.alike),
        "known": dict(known),
        "parts": [],
    }


def _names(graph: Graph) -> Tensors:
    names = {} if graph.nodes is None else text_tensors("nodes", graph.nodes)
    return names | ({} if graph.table is None else table_tensors(graph.table))


def _part(graph: Graph, owner: NDArray[np.int64], part: int, numbering: Numbering) -> Tensors:
    rows = np.flatnonzero(owner == part)
    tensors: Tensors = {"rows": rows, "y": graph.labels[rows]}
    tensors |= matrix_tensors("X", graph.X[rows])
    if isinstance(graph.X, sp.csr_array):
        tensors["X.first"] = graph.X.indptr[rows].astype(np.int64)
    if graph.part is not None:
        tensors["part"] = graph.part[rows]
    roles = [roles_of(split)[rows] for split in graph.splits]
    tensors["roles"] = np.array(roles, np.uint8).reshape(-1, len(rows))
    return tensors | _edges(graph, owner, part) | _numbers(numbering, rows)


def _edges(graph: Graph, owner: NDArray[np.int64], part: int) -> Tensors:
    mine = owner == part
    number = np.flatnonzero(mine[graph.edges[0]] | mine[graph.edges[1]])
    edges = graph.edges[:, number]
    halo = np.unique(edges[~mine[edges]])
    weights = {} if graph.weights is None else {"weights": graph.weights[number]}
    return {
        "edges": edges,
        "number": number,
        **weights,
        "halo": halo,
        "halo.part": owner[halo],
    }


def _numbers(numbering: Numbering, rows: Numbers) -> Tensors:
    begin = numbering.starts[rows]
    degree = numbering.starts[rows + 1] - begin
    step = np.arange(degree.sum()) - np.repeat(np.cumsum(degree) - degree, degree)
    return {
        **{f"first.{direction}": each[rows] for direction, each in numbering.first.items()},
        "pairs": numbering.pairs[np.repeat(begin, degree) + step],
        "degree": degree,
    }


def _save(tensors: Tensors, path: Path) -> str:
    """Write a file; its SHA-256."""
    with atomic_write(path) as temporary:
        own = {name: np.ascontiguousarray(one) for name, one in tensors.items()}
        save_file(own, temporary, {ENTRY: ""})
        return file_sha256(temporary)


@contextmanager
def _whole_folder(path: Path) -> Iterator[Path]:
    """A hidden folder to write to; it takes the place of `path` on success, and is else removed."""
    path = path.resolve()  # of . and of links, too
    mark = f"{os.getpid()}.{secrets.token_hex(4)}"
    fresh, old = (path.with_name(f".{path.name}.{mark}{end}") for end in ("", ".old"))
    fresh.mkdir(parents=True)
    try:
        yield fresh
        if path.exists():
            refuse_folder(path)  # again: someone may have put a file there
            path.replace(old)
        fresh.replace(path)
    finally:
        for folder in (fresh, old):
            shutil.rmtree(folder, ignore_errors=True)
