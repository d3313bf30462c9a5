"""The folder of a graph in parts, and parts.json, which says what its files hold.

parts.json           counts, names of classes and features, the fingerprint and traits of the whole
                     graph, the SHA-256 of each file, and a seal over all of it
part-I.safetensors   of each part, I = 0, 1, …

    rows             (rows,) the numbers of its nodes in the whole graph, sorted
    X, y, part, roles   their rows, as in a graph in one file (`gcnii.data.readers.packed`);
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

from pathlib import Path

from gcnii.data.readers.packed import SHAPE as WHOLE
from gcnii.data.readers.packed import Tensors, mapped, metadata
from gcnii.errors import DataError, InputError
from gcnii.files import NOTHING, Document, Maybe, document_key, file_sha256, read_document

FORM = "a folder that `gcnii data pack --parts` wrote"
MANIFEST, NAMES, VERSION = "parts.json", "names.safetensors", 1
TRAITS = {
    **{"sparse": bool, "multilabel": bool, "homophily": float},
    **{"links": Maybe(float), "features": Maybe(float)},
}
SHAPE = {
    **{name: shape for name, shape in WHOLE.items() if name != "digest"},
    **dict.fromkeys(("n", "m", "k"), int),
    "fingerprint": str,
    "weighted": bool,
    "labelled": int,
    "alike": [bool],
    "classes": ([str], NOTHING),
    "features": ([str], NOTHING),
    "known": {
        "scale": str,
        "traits": {**dict.fromkeys(("n", "d", "train"), int), **TRAITS},
        "weights": Maybe([float]),
    },
    "names": Maybe(str),
    "parts": [{"sha256": str, "nodes": int, "edges": int, "halo": int}],
    "seal": str,
}


def reads(path: Path) -> bool:
    """Whether the path is a folder of parts."""
    return (path / MANIFEST).is_file()


def part_name(i: int) -> str:
    """The file of part i."""
    return f"part-{i}.safetensors"


def read_manifest(folder: Path) -> Document:
    """What parts.json holds; DataError unless it is whole and as it was written."""
    path = folder / MANIFEST
    try:
        document = read_document(path, SHAPE, "list of a graph's parts", dict)
    except DataError:
        raise
    except InputError as error:
        raise DataError(f"{error}; or pack the graph again") from None
    rest = {name: value for name, value in document.items() if name != "seal"}
    if document["seal"] != document_key(rest):
        raise DataError(f"{path} was changed after it was written; pack the graph again")
    if document["version"] > VERSION:
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
