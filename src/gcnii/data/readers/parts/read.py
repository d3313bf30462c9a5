"""Reading a graph in parts: all of it, or what one of several processes has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gcnii.columns import Columns
from gcnii.data.readers.packed import (
    ROLES,
    Array,
    Tensors,
    graph_of,
    matrix_of,
    matrix_tensors,
    refuse_arrays,
    text_tensors,
)
from gcnii.data.readers.parts.manifest import NAMES, open_file, part_name, read_manifest
from gcnii.errors import DataError, InputError
from gcnii.files import Document
from gcnii.graph import Graph, Piece, Places, Split, Whole
from gcnii.graph.arrays import freeze

BY_ROW = ("X", "y", "part", "X.first", "first.out", "first.in", "first.both", "degree")
PLACES = ("X.first", "first.", "pairs", "degree", "halo")  # how what only a piece needs begins
UNFIT = (LookupError, TypeError, ValueError, OverflowError)


def read(path: Path) -> Graph:
    """The whole graph, with its nodes and edges in their order."""
    manifest = read_manifest(path)
    parts = _open(path, manifest, range(len(manifest["parts"])))
    try:
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
    except DataError:
        raise
    except UNFIT as error:
        raise _unfit(path, error) from None


def read_piece(path: Path, rank: int, size: int) -> Piece:
    """What process `rank` of so many has: as many parts as each of the others; no other is read."""
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
    try:
        return _piece(_joined(own, manifest["d"]), manifest, each)
    except DataError:
        raise
    except UNFIT as error:
        raise _unfit(path, error) from None


def _unfit(path: Path, error: Exception) -> DataError:
    came = f"a part lacks {error}" if isinstance(error, KeyError) else str(error)
    return DataError(f"{path} does not hold a graph in parts ({came}); pack the graph again")


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
    where = Places(first, tensors["pairs"], tensors["halo"], owner, tensors.get("X.first"))
    names = {name: manifest[name] and tuple(manifest[name]) for name in ("classes", "features")}
    columns = manifest["columns"]
    piece = Piece.of(
        tensors["rows"],
        whole,
        where,
        **{name: tensors[name] for name in ("edges", "y")},
        **{name: tensors.get(name) for name in ("weights", "part")},
        **names,
        X=matrix_of(tensors, "X", (len(tensors["rows"]), manifest["d"])),
        splits=tuple(_split(roles) for roles in tensors["roles"]),
        directed=manifest["directed"],
        name=manifest["name"],
        columns=columns and Columns.of_document(columns),
    )
    refuse_arrays(piece)
    _refuse_places(piece, where, tensors["degree"])
    return piece


def _refuse_places(piece: Piece, where: Places, degree: Array) -> None:
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


def _split(roles: Array) -> Split:
    return Split.of_some(**{role: roles == i for i, role in enumerate(ROLES, 1)})


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
        tensors |= matrix_tensors("X", _sparse_rows(parts, places, d))
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


def _sparse_rows(parts: Sequence[Tensors], places: Sequence[Array], d: int) -> sp.csr_array:
    each = [matrix_of(one, "X", (len(one["rows"]), d)) for one in parts]
    return sp.csr_array(sp.vstack(each, "csr")[np.argsort(np.concatenate(places))])


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
    step = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    pairs = np.concatenate([one["pairs"] for one in parts])
    return {
        "halo": nodes[outside],
        "halo.part": owner[outside],
        "pairs": pairs[np.repeat(begin, count) + step],
    }
