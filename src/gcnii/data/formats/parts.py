"""A graph cut into parts: a folder from which each of several processes reads its own alone.

parts.json           counts, names of classes and features, the fingerprint of the whole
                     graph, what is known of it, the SHA-256 of each file, and a seal over all of it
part-I.safetensors   of each part, I = 0, 1, …

    rows             (rows,) the numbers of its nodes in the whole graph, sorted
    X, y, part, roles   their rows, as in a graph in one file (`gcnii.data.formats.packed`);
    X.first          where X is sparse, the number of the first stored value of each of its rows
    edges, weights   all edges that touch one of its nodes, in the order of the whole graph
    number           (edges,) their numbers there
    halo, halo.part  the nodes of other parts that they lead to, sorted, and the part of each
    first.DIRECTION  (rows,) the number of the first entry of each row of A + I: DropEdge hashes it
    pairs            (entries,) of these rows, in both directions: a number that (u, v) and (v, u)
                     share
    degree           (rows,) how many of these entries each row has

names.safetensors    names of nodes and the user's table, if there are any; training needs neither
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors.numpy import save_file

from gcnii.data.formats.packed import (
    DOCUMENT,
    ENTRY,
    SUFFIX,
    Tensors,
    document_of,
    graph_of,
    mapped,
    matrix_of,
    matrix_tensors,
    metadata,
    refuse_arrays,
    roles_of,
    table_tensors,
    text_tensors,
)
from gcnii.errors import DataError, InputError, some_of
from gcnii.files import (
    NOTHING,
    Document,
    Maybe,
    atomic_write,
    disk_errors,
    document_key,
    file_sha256,
    read_document,
    write_document,
)
from gcnii.graph import ROLES, GlobalIndices, Graph, Piece, Split, Whole
from gcnii.graph.arrays import Array, freeze, runs_of
from gcnii.graph.columns import Columns
from gcnii.graph.piece import Numbers, refuse_targets

FORM = "a folder that `gcnii data pack --parts` wrote"
MANIFEST, NAMES, PARTS_VERSION = "parts.json", "names.safetensors", 1
PARTS_DOCUMENT = {
    **{name: shape for name, shape in DOCUMENT.items() if name != "digest"},
    **dict.fromkeys(("n", "m", "k"), int),
    "fingerprint": str,
    "weighted": bool,
    "labelled": int,
    "alike": [bool],
    "classes": ([str], NOTHING),
    "features": ([str], NOTHING),
    # `traits` chose the scale in parts of an older gcnii.
    "known": {"scale": str, "traits": Maybe({"sparse": bool}), "weights": Maybe([float])},
    "names": Maybe(str),
    "parts": [{"sha256": str, "nodes": int, "edges": int, "halo": int}],
    "seal": str,
}


def part_name(i: int) -> str:
    """The file of part i."""
    return f"part-{i}.safetensors"


def read_manifest(folder: Path) -> Document:
    """What parts.json holds; DataError unless it is whole and as it was written."""
    path = folder / MANIFEST
    try:
        document = read_document(path, PARTS_DOCUMENT, "list of a graph's parts", dict)
    except DataError:
        raise
    except InputError as error:
        raise DataError(f"{error}; or pack the graph again") from None
    rest = {name: value for name, value in document.items() if name != "seal"}
    if document["seal"] != document_key(rest):
        raise DataError(f"{path} was changed after it was written; pack the graph again")
    if document["version"] > PARTS_VERSION:
        raise DataError(f"{path} was written by a newer gcnii; update this one")
    return document


def open_file(folder: Path, name: str, sha256: str) -> Tensors:
    """The tensors of a file as views of it; DataError unless it is the one that was written."""
    path = folder / name
    try:
        # Read, not mapped: what is mapped counts as this process's memory for as long as it is.
        found = file_sha256(path)
    except FileNotFoundError:
        raise DataError(f"{path} is missing; copy it there, or pack the graph again") from None
    except InputError as error:
        raise DataError(str(error)) from None
    if found != sha256:
        raise DataError(f"{path} is damaged: its SHA-256 differs; copy or pack the graph again")
    metadata(path)
    return mapped(path)


BY_ROW = ("X", "y", "part", "X.first", "first.out", "first.in", "first.both", "degree")
PLACES = ("X.first", "first.", "pairs", "degree", "halo")  # how what only a piece needs begins


def read(path: Path) -> Graph:
    """The whole graph, with its nodes and edges in their order."""
    manifest = read_manifest(path)
    parts = _open(path, manifest, range(len(manifest["parts"])))
    with _fitting(path):
        plain = [{k: v for k, v in one.items() if not k.startswith(PLACES)} for one in parts]
        tensors = _joined(plain, manifest["d"])
        rows, number = tensors.pop("rows"), tensors.pop("number")
        for what, found, size in (("nodes", rows, manifest["n"]), ("edges", number, len(number))):
            if not np.array_equal(found, np.arange(size)):
                raise DataError(f"the parts of {path} lack some {what}; pack the graph again")
        for name in ("classes", "features"):
            if manifest[name] is not None:
                tensors |= text_tensors(name, manifest[name])
        if sha256 := manifest.get("names"):
            tensors |= open_file(path, NAMES, sha256)
        return graph_of(tensors, manifest)


def read_piece(path: Path, rank: int, size: int) -> Piece:
    """The parts of process `rank`, as many as each of the `size` processes has; no others."""
    manifest = read_manifest(path)
    parts = len(manifest["parts"])
    if parts % size:
        able = ", ".join(str(one) for one in range(1, parts + 1) if parts % one == 0)
        raise InputError(
            f"{path} is cut into {parts} parts, which {size} processes cannot share equally; start "
            f"{able}, or cut it again: gcnii data pack {path} OUT --parts {size}"
        )
    each = parts // size
    own = _open(path, manifest, range(rank * each, (rank + 1) * each))
    with _fitting(path):
        return _piece(_joined(own, manifest["d"]), manifest, each)


@contextmanager
def _fitting(path: Path) -> Iterator[None]:
    """Raise DataError for tensors that are not those of parts."""
    try:
        yield
    except DataError:
        raise
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        came = f"a part lacks {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(
            f"{path} does not hold a graph in parts ({came}); pack the graph again"
        ) from None


def _open(path: Path, manifest: Document, parts: Iterable[int]) -> list[Tensors]:
    return [open_file(path, part_name(i), manifest["parts"][i]["sha256"]) for i in parts]


def _piece(tensors: Tensors, manifest: Document, each: int) -> Piece:
    whole = Whole(
        **{name: manifest[name] for name in ("n", "m", "k", "fingerprint", "known", "seal")},
        labelled=manifest["labelled"] > 0,
        alike=tuple(manifest["alike"]),
    )
    first = {
        name.removeprefix("first."): one for name, one in tensors.items() if name[:6] == "first."
    }
    owner = tensors["halo.part"] // each
    where = GlobalIndices(first, tensors["pairs"], tensors["halo"], owner, tensors.get("X.first"))
    classes, features = (one and tuple(one) for one in (manifest["classes"], manifest["features"]))
    columns = manifest["columns"]
    piece = Piece(
        rows=tensors["rows"],
        whole=whole,
        places=where,
        edges=tensors["edges"],
        y=tensors["y"],
        weights=tensors.get("weights"),
        part=tensors.get("part"),
        classes=classes,
        features=features,
        X=matrix_of(tensors, "X", (len(tensors["rows"]), manifest["d"])),
        splits=tuple(
            Split.of_some(**{role: one == i for i, role in enumerate(ROLES, 1)})
            for one in tensors["roles"]
        ),
        directed=manifest["directed"],
        name=manifest["name"],
    )._set(columns=columns and Columns.of_document(columns))
    refuse_arrays(piece)
    _refuse_places(piece, where, tensors["degree"])
    return piece


def _refuse_places(piece: Piece, where: GlobalIndices, degree: Array) -> None:
    """Raise DataError for numbers that do not fit the rows of a piece."""
    n, height = piece.n, len(piece.rows)
    by_row = [piece.labels, degree, *where.first.values(), *(s.train for s in piece.splits)]
    by_row += [one for one in (piece.part, where.values) if one is not None]
    wanted = {"both", "out", "in"} if piece.directed else {"both"}
    every = np.sort(np.concatenate([piece.rows, where.halo]))
    right = {
        "nodes": all(_rising(one, n) for one in (piece.rows, where.halo, every)),
        "rows": height > 0 and all(len(one) == height for one in by_row),
        "links": set(where.first) == wanted and len(where.pairs) == degree.sum(),
        "edges": np.array_equal(every[np.searchsorted(every[:-1], piece.edges)], piece.edges),
    }
    if wrong := [what for what, holds in right.items() if not holds]:
        raise DataError(f"{piece.name}: the {wrong[0]} of a part do not fit; pack the graph again")


def _rising(numbers: Array, n: int) -> bool:
    ends = np.concatenate([[-1], numbers, [n]])
    return bool((np.diff(ends) > 0).all())


def _joined(parts: Sequence[Tensors], d: int) -> Tensors:
    """Several parts as one; a single one as it is, a view of its file."""
    if len(parts) == 1:
        return dict(parts[0])
    rows = np.sort(np.concatenate([one["rows"] for one in parts]))
    places = [np.searchsorted(rows, one["rows"]) for one in parts]
    tensors: Tensors = {"rows": rows}
    for name in BY_ROW:
        if name in parts[0]:
            tensors[name] = _by_row([one[name] for one in parts], places)
    tensors["roles"] = _by_row([one["roles"].T for one in parts], places).T
    if "X.data" in parts[0]:
        each = [matrix_of(one, "X", (len(one["rows"]), d)) for one in parts]
        X = sp.vstack(each, "csr")[np.argsort(np.concatenate(places))]
        tensors |= matrix_tensors("X", sp.csr_array(X))
    tensors |= _joined_edges(parts)
    if "halo" in parts[0]:
        tensors |= _joined_places(parts, places, rows)
    return {name: freeze(one) for name, one in tensors.items()}


def _by_row(arrays: Sequence[Array], places: Sequence[Array]) -> Array:
    """What the parts have for each row, in the order of the rows: copied once."""
    if len({array.dtype for array in arrays}) > 1:
        raise InputError("parts hold numbers of different types")
    height = sum(map(len, arrays))
    found = np.empty((height, *arrays[0].shape[1:]), arrays[0].dtype)
    for array, at in zip(arrays, places, strict=True):
        found[at] = array
    return found


def _joined_edges(parts: Sequence[Tensors]) -> Tensors:
    """The edges of several parts, those between two of them once."""
    number, which = np.unique(np.concatenate([one["number"] for one in parts]), return_index=True)
    found = {
        "number": number,
        "edges": np.concatenate([one["edges"] for one in parts], 1)[:, which],
    }
    if "weights" in parts[0]:
        found["weights"] = np.concatenate([one["weights"] for one in parts])[which]
    return found


def _joined_places(parts: Sequence[Tensors], places: Sequence[Array], rows: Array) -> Tensors:
    nodes, which = np.unique(np.concatenate([one["halo"] for one in parts]), return_index=True)
    owner = np.concatenate([one["halo.part"] for one in parts])[which]
    outside = ~np.isin(nodes, rows, assume_unique=True)
    degree = np.concatenate([one["degree"] for one in parts])
    order = np.argsort(np.concatenate(places))
    begin, count = (np.cumsum(degree) - degree)[order], degree[order]
    pairs = np.concatenate([one["pairs"] for one in parts])
    return {
        "halo": nodes[outside],
        "halo.part": owner[outside],
        "pairs": pairs[runs_of(begin, count)],
    }


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
    refuse_targets(graph)
    if graph.typed:
        raise InputError(
            f"{graph.name} has types of edges, which parts do not hold; read it without them "
            "(--edge-type ''), or pack it whole"
        )
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
        "version": PARTS_VERSION,
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
    return {"edges": edges, "number": number, **weights, "halo": halo, "halo.part": owner[halo]}


def _numbers(numbering: Numbering, rows: Numbers) -> Tensors:
    begin = numbering.starts[rows]
    degree = numbering.starts[rows + 1] - begin
    return {
        **{f"first.{direction}": each[rows] for direction, each in numbering.first.items()},
        "pairs": numbering.pairs[runs_of(begin, degree)],
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
