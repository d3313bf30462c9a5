"""A whole graph in one .safetensors file, which is mapped into memory when it is read.

Arrays are tensors: X (or X.data, X.indices and X.indptr if it is sparse), edges, weights,
edge_types, y, part, times, edge_times, and roles (s, n), which has 1, 2 and 3 for the train, val
and test nodes of split s.  Texts are two tensors each, such as nodes.utf8 and nodes.lengths; the
columns of a table are table.0, table.1, ….
The metadata has one entry, "gcnii": a JSON document with the rest, and the SHA-256 of all of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.errors import DataError, InputError
from gcnii.files import NOTHING, Document, Maybe, atomic_write, check, disk_errors, refuse_replacing
from gcnii.graph import ROLES, Graph, Split
from gcnii.graph.arrays import Array, hand_back
from gcnii.graph.columns import Cells, Columns, Table, is_text

FORM = "a .safetensors file that gcnii.save wrote"
SUFFIX, ENTRY, VERSION = ".safetensors", "gcnii", 1
DTYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1"}
DOCUMENT = {
    "version": int,
    "digest": str,
    "name": str,
    "directed": bool,
    "d": int,
    "table": (NOTHING, {"columns": [[str, {"numbers", "text"}]], "matrix": bool}),
    "columns": (NOTHING, [dict]),
    "dated": Maybe(bool),
}
# Tensors that are fields as they are.
PLAIN = ("edges", "weights", "edge_types", "y", "part", "times", "edge_times")
TEXTS = ("nodes", "classes", "features", "edge_type_names")

Tensors = dict[str, Array]


def save(graph: Graph, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a graph to a .safetensors file, which `load` memory-maps.

    An older file of a graph is replaced; any other file, and the one that the graph was loaded
    from, is left alone, with an error.

    Parameters
    ----------
    graph : Graph
        The graph.
    path : str or Path
        The file, ending in .safetensors.
    overwrite : bool
        Replace a file that is not of a graph, too.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import gcnii
    >>> path = gcnii.save(gcnii.load("csbm", n=60), "small.safetensors")
    >>> gcnii.load(path).n
    60
    """
    from safetensors.numpy import save_file

    path = Path(path).expanduser()
    if not isinstance(graph, Graph):
        raise InputError(f"save takes a Graph, got {type(graph).__name__}")
    refuse_target(path, graph.source, overwrite=overwrite)
    tensors = {name: np.ascontiguousarray(array) for name, array in _tensors(graph).items()}
    document = document_of(graph)
    document["digest"] = _digest(tensors, document)
    with atomic_write(path) as temporary, disk_errors():
        save_file(tensors, temporary, {ENTRY: json.dumps(document)})
        read(temporary)  # or an error, and the file that was there stays
    return path


def refuse_target(path: Path, source: str = "", *, overwrite: bool = False) -> None:
    """Raise InputError unless a graph from this source can be written to this path."""
    if path.suffix.lower() != SUFFIX:
        raise InputError(f"a graph is saved as a {SUFFIX} file, got {path}; end its name so")
    refuse_replacing(path, _is_graph, inputs=[source], overwrite=overwrite)


def _is_graph(path: Path) -> bool:
    """Whether a file is one that `save` wrote."""
    try:
        return bool(metadata(path).get(ENTRY))  # of a part, it is empty
    except DataError:
        return False


def read(path: Path) -> Graph:
    """The graph in a file that `save` wrote; its arrays are views of the mapped file."""
    try:
        text = metadata(path)[ENTRY]
        document = json.loads(text)
        check(document, DOCUMENT)
        if document["version"] > VERSION:
            raise DataError(f"{path.name} was saved by a newer gcnii; update this one")
        tensors = mapped(path)
        if _digest(tensors, document) != document["digest"]:
            raise DataError(f"{path.name} is damaged: its SHA-256 differs; copy or pack it again")
        graph = graph_of(tensors, document)
        hand_back(tensors["edges"])  # every page of the file has just been read
        return graph
    except DataError:
        raise
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        came = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{path.name} is not {FORM} ({came}); pack the graph again") from None


def metadata(path: Path) -> Mapping[str, str]:
    """The metadata of a safetensors file, whose header and length are checked."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            return file.metadata() or {}
    except SafetensorError as error:
        raise DataError(f"{path.name} is damaged or not a safetensors file ({error})") from None


def mapped(path: Path) -> Tensors:
    """The tensors as views of the file, whose header safetensors has checked."""
    memory = np.asarray(np.memmap(path, np.uint8, "r"))
    start = 8 + int.from_bytes(memory[:8].tobytes(), "little")
    header = json.loads(memory[8:start].tobytes())
    header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        piece = memory[start + first : start + last].view(DTYPES[entry["dtype"]])
        tensors[name] = np.require(piece.reshape(entry["shape"]), requirements="A")
    return tensors


def _digest(tensors: Tensors, document: Document) -> str:
    rest = {key: value for key, value in document.items() if key != "digest"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


# From a graph to tensors


def _tensors(graph: Graph) -> Tensors:
    tensors = matrix_tensors("X", graph.X)
    for name in PLAIN:
        if (array := getattr(graph, name)) is not None:
            tensors[name] = array
    for name in TEXTS:
        if (texts := getattr(graph, name)) is not None:
            tensors |= text_tensors(name, texts)
    if graph.targets:
        tensors |= text_tensors("targets", graph.targets)
    tensors["roles"] = np.array([roles_of(s) for s in graph.splits], np.uint8).reshape(-1, graph.n)
    return tensors | ({} if graph.table is None else table_tensors(graph.table))


def roles_of(split: Split) -> NDArray[np.uint8]:
    """(n,) 1, 2 or 3 for the train, val and test nodes of a split, else 0."""
    roles = np.zeros(len(split.train), np.uint8)
    for number, role in enumerate(ROLES, 1):
        roles[getattr(split, role)] = number
    return roles


def matrix_tensors(name: str, matrix: Array | sp.csr_array) -> Tensors:
    """A dense matrix as it is, a sparse one as three arrays."""
    if not isinstance(matrix, sp.csr_array):
        return {name: matrix}
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return {f"{name}.{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}


def text_tensors(name: str, texts: Iterable[str | None]) -> Tensors:
    """All texts in a row, and the number of characters of each; -1 for None."""
    texts = list(texts)
    joined = "".join(text or "" for text in texts).encode("utf-8", "surrogatepass")
    lengths = [-1 if text is None else len(text) for text in texts]
    return {
        f"{name}.utf8": np.frombuffer(joined, np.uint8),
        f"{name}.lengths": np.array(lengths, np.int64),
    }


def table_tensors(table: Table) -> Tensors:
    """The columns of a user's table."""
    tensors: Tensors = {}
    for j, cells in enumerate(table.columns.values()):
        own = f"table.{j}"
        tensors |= text_tensors(own, cells) if is_text(cells) else {own: cells}
    if table.matrix is not None:
        tensors |= matrix_tensors("table.matrix", table.matrix)
        tensors |= text_tensors("table.names", table.names)
    return tensors


def document_of(graph: Graph) -> Document:
    """What a graph has beside arrays and texts."""
    table = graph.table
    own: Document = {"dated": True} if graph.dated else {}
    return own | {
        "version": VERSION,
        "name": graph.name,
        "directed": graph.directed,
        "d": graph.d,
        "table": None
        if table is None
        else {
            "columns": [
                [name, "text" if is_text(cells) else "numbers"]
                for name, cells in table.columns.items()
            ],
            "matrix": table.matrix is not None,
        },
        "columns": None if graph.columns is None else graph.columns.document(),
    }


# From tensors to a graph


def graph_of(tensors: Tensors, document: Document) -> Graph:
    """The graph of which these were made, checked as far as reading it needs."""
    roles = tensors["roles"]
    n = roles.shape[1]
    values = {name: tensors[name] for name in PLAIN if name in tensors or name in ("edges", "y")}
    texts = {
        name: texts_of(tensors, name) for name in (*TEXTS, "targets") if f"{name}.utf8" in tensors
    }
    graph = Graph._of_checked(
        **values,
        **texts,
        X=matrix_of(tensors, "X", (n, document["d"])),
        splits=tuple(Split(**{r: row == i for i, r in enumerate(ROLES, 1)}) for row in roles),
        directed=document["directed"],
        name=document["name"],
        dated=document.get("dated", False),
    )
    # What would read outside an array is checked again.
    refuse_arrays(graph)
    graph._set_times()
    graph._check()
    graph._set_types()
    if document["table"] is None or document["columns"] is None:
        return graph
    return graph._with_table(
        table_of(tensors, document["table"], n), Columns.of_document(document["columns"])
    )


def refuse_arrays(graph: Graph) -> None:
    """Raise DataError for arrays that no graph has: reading them would end outside an array."""
    edges, weights, n = graph.edges, graph.weights, graph.n
    numbers = graph.X.data if isinstance(graph.X, sp.csr_array) else graph.X
    right = {
        "X must be (n, d) finite floats": graph.X.ndim == 2
        and graph.d > 0
        and numbers.dtype.kind == "f"
        and np.isfinite([numbers.min(initial=0), numbers.max(initial=0)]).all(),
        "edges must be (2, m) rows of X": edges.dtype == np.int64
        and edges.shape[:1] == (2,)
        and edges.ndim == 2
        and edges.min(initial=0) >= 0
        and edges.max(initial=0) < n,
        "y must hold whole numbers": graph.labels.dtype == np.int64 or bool(graph.targets),
        "y must hold finite numbers": not graph.targets
        or (
            graph.labels.dtype == np.float64
            and graph.labels.ndim == 2
            and not np.isinf(graph.labels).any()
        ),
        "weights must be (m,) positive and finite": weights is None
        or (
            weights.shape == edges.shape[1:]
            and weights.dtype == np.float64
            and weights.min(initial=1) > 0
            and np.isfinite(weights.max(initial=1))
        ),
    }
    if wrong := [sentence for sentence, holds in right.items() if not holds]:
        raise DataError(f"{graph.name}: {wrong[0]}; pack the graph again")


def matrix_of(tensors: Tensors, name: str, shape: tuple[int, int]) -> Array | sp.csr_array:
    """The matrix of which `matrix_tensors` were made."""
    if name in tensors:
        return tensors[name]
    parts = tuple(tensors[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    matrix = sp.csr_array(parts, shape=shape)
    matrix.check_format(full_check=True)
    if not matrix.has_canonical_format:
        raise DataError(f"{name} has entries twice or out of order; pack the graph again")
    return matrix


def texts_of(tensors: Tensors, name: str) -> tuple[str | None, ...]:
    """The texts of which `text_tensors` were made."""
    joined = tensors[f"{name}.utf8"].tobytes().decode("utf-8", "surrogatepass")
    lengths = tensors[f"{name}.lengths"]
    ends = np.cumsum(np.maximum(lengths, 0))
    if ends[-1:].tolist() not in ([], [len(joined)]) or lengths.min(initial=0) < -1:
        raise DataError(f"the lengths of {name} do not fit its text; pack the graph again")
    starts = ends - np.maximum(lengths, 0)
    places = zip(starts.tolist(), ends.tolist(), strict=True)
    texts: list[str | None] = [joined[first:last] for first, last in places]
    for i in np.flatnonzero(lengths < 0):
        texts[i] = None
    return tuple(texts)


def table_of(tensors: Tensors, document: Document, n: int) -> Table:
    """The table of which `table_tensors` were made."""
    columns: dict[str, Cells] = {}
    for j, (name, kind) in enumerate(document["columns"]):
        own = f"table.{j}"
        columns[name] = np.array(texts_of(tensors, own), object) if kind == "text" else tensors[own]
        if columns[name].shape != (n,):
            raise DataError(f"the column {name!r} does not have {n} cells; pack the graph again")
    if not document["matrix"]:
        return Table(n, columns)
    names = tuple(map(str, texts_of(tensors, "table.names")))
    matrix = matrix_of(tensors, "table.matrix", (n, len(names)))
    return Table(n, columns, sp.csr_array(matrix), names)
