"""A graph in one .npz file of numpy, in either of two layouts.

matrices   adj_data, adj_indices, adj_indptr, adj_shape: the adjacency matrix as CSR; attr_…: the
           features as CSR, or attr_matrix: dense; labels (Shchur et al. 2018)
arrays     edge_index (2, m), or edges (m, 2) or (2, m); node_features, features, X or x, or X_data,
           X_indices, X_indptr and X_shape as CSR; node_labels, labels or y; and, if given, weights,
           directed, and train_masks, train_mask or train (likewise val and test): (n,), (s, n) or
           (n, s) (Platonov et al. 2023)

Nothing is unpickled: arrays of Python objects are refused.  A label is a number or a text; -1, NaN
and an empty text are unknown.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib.format import read_array_header_1_0, read_array_header_2_0
from numpy.typing import NDArray

from gcnii.data.converters.scipy_matrix import from_scipy
from gcnii.errors import DataError, GraphError, notice
from gcnii.graph import Graph, Split

FORM = "a .npz file with edges, features and labels"
# prefixes of the parts of a CSR matrix
ADJACENCY, ATTRIBUTES = ("adj_", "adj_matrix."), ("attr_", "attr_matrix.", "X_")
EDGES = ("edge_index", "edges")
FEATURES = ("node_features", "features", "X", "x", "attr_matrix")
LABELS = ("node_labels", "labels", "y")
WEIGHTS = ("weights", "edge_weights", "edge_weight")
NAMES = {"nodes": ("node_names",), "classes": ("class_names",), "features": ("attr_names",)}
ROLES = ("train", "val", "test")
FLAGS = {"0": False, "False": False, "1": True, "True": True}
REMARKS = {"source", "note", "generated"}  # about the file, not about the graph
MOST_COLUMNS = 2**31 - 1
BROKEN = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)

Array = NDArray[Any]  # of the type that the file holds


def reads(path: Path) -> bool:
    """Whether the path is a .npz file."""
    return path.suffix.lower() == ".npz" and path.is_file()


def read(path: Path, directed: bool | None = None, seed: int = 0) -> Graph:
    """The graph in a .npz file; `seed` draws the split if there are no masks.

    directed  whether edges are one-way; None: as the file says, undirected if it says nothing
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _graph(Arrays(path, archive), directed, seed)
    except GraphError as error:
        raise DataError(f"{path.name}: {error}") from None
    except DataError:
        raise
    except BROKEN as error:
        raise DataError(
            f"{path.name} is not a complete .npz file ({error}); save it again with numpy.savez"
        ) from None


class Arrays:
    """The arrays of a .npz file, each read when it is asked for."""

    def __init__(self, path: Path, archive: zipfile.ZipFile):
        self.path, self.archive = path, archive
        self.names = [name.removesuffix(".npy") for name in archive.namelist()]
        self.used: set[str] = set()

    def first_of(self, names: Iterable[str]) -> str | None:
        """The first of these names that the file has."""
        return next((name for name in names if name in self.names), None)

    def optional(self, names: Iterable[str]) -> Array | None:
        """The array of the first of these names that the file has."""
        name = self.first_of(names)
        return None if name is None else self[name]

    def __getitem__(self, name: str) -> Array:
        if name not in self.names:
            raise DataError(f"{self.path.name} has no array {name!r}; it has {self.listed()}")
        self.used.add(name)
        self._refuse_header(name)
        with self.archive.open(f"{name}.npy") as stream:
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))

    def _refuse_header(self, name: str) -> None:
        """Refuse objects, and a shape that the file is too short for, before memory is taken."""
        with self.archive.open(f"{name}.npy") as stream:
            first = np.lib.format.read_magic(stream) == (1, 0)
            shape, _, dtype = (read_array_header_1_0 if first else read_array_header_2_0)(stream)
            rest = self.archive.getinfo(f"{name}.npy").file_size - stream.tell()
        if dtype.hasobject:
            raise DataError(
                f"the array {name!r} of {self.path.name} holds Python objects, which are not read "
                "because they could run code; save it as numbers or as text of a fixed length"
            )
        if math.prod(shape) * dtype.itemsize != rest:
            raise DataError(
                f"the array {name!r} of {self.path.name} must have {rest} bytes for its shape "
                f"{shape}; save the file again"
            )

    def listed(self) -> str:
        """All names, for a message."""
        return ", ".join(self.names) or "none"


def _graph(arrays: Arrays, directed: bool | None, seed: int) -> Graph:
    prefix = _prefix(arrays, ADJACENCY)
    X = _features(arrays)
    A = csr(arrays, prefix) if prefix else _adjacency(arrays, X.shape[0])
    y, splits = arrays.optional(LABELS), _splits(arrays, X.shape[0])
    one_way = _directed(arrays, directed)
    names = {field: _names(arrays, known) for field, known in NAMES.items()}
    if unused := [name for name in arrays.names if name not in arrays.used | REMARKS]:
        notice(f"{arrays.path.name}: the arrays {', '.join(unused)} are not used")
    return from_scipy(
        A, X, y, directed=one_way, splits=splits, seed=seed, name=arrays.path.stem, **names
    )


def _directed(arrays: Arrays, wanted: bool | None) -> bool:
    """Whether edges are one-way: as the caller says, else as the file does."""
    said = arrays.optional(("directed",))
    if wanted is not None or said is None:
        return bool(wanted)
    if said.size != 1 or str(said.item()) not in FLAGS:
        raise DataError(
            f"directed of {arrays.path.name} must be one 0 or 1, got {said.dtype} of shape "
            f"{said.shape}; save it so, or say directed=True or directed=False"
        )
    return FLAGS[str(said.item())]


def _prefix(arrays: Arrays, prefixes: Iterable[str]) -> str | None:
    return next((prefix for prefix in prefixes if f"{prefix}data" in arrays.names), None)


def csr(arrays: Arrays, prefix: str) -> sp.csr_array:
    """The matrix of the arrays PREFIXdata, PREFIXindices, PREFIXindptr and PREFIXshape."""
    data, indices, indptr, shape = (
        arrays[prefix + part] for part in ("data", "indices", "indptr", "shape")
    )
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or not (shape > 0).all():
        raise DataError(f"{prefix}shape of {arrays.path.name} must be two numbers, got {shape}")
    if data.dtype.kind not in "iubf":
        raise DataError(f"{prefix}data of {arrays.path.name} must be numbers, got {data.dtype}")
    n, columns = map(int, shape)
    if len(indptr) != n + 1 or columns > MOST_COLUMNS:
        raise DataError(
            f"{prefix}shape of {arrays.path.name} says {n} × {columns}, "
            f"but {prefix}indptr has {len(indptr)} entries, not one more than the rows"
        )
    try:
        matrix = sp.csr_array((data, indices, indptr), shape=(n, columns))
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise DataError(
            f"{prefix}data, {prefix}indices and {prefix}indptr of {arrays.path.name} are not a "
            f"CSR matrix of {n} × {columns} ({error})"
        ) from None
    return matrix


def _features(arrays: Arrays) -> Array | sp.csr_array:
    prefix = _prefix(arrays, ATTRIBUTES)
    if prefix:
        sparse = csr(arrays, prefix)
        # CSR with few zeros takes twice the memory of an array.
        return sparse.toarray() if 2 * sparse.nnz > math.prod(sparse.shape) else sparse
    X = arrays.optional(FEATURES)
    if X is None:
        raise DataError(
            f"{arrays.path.name} has no features; it has {arrays.listed()}; add an array X with "
            "one row per node, or make the graph in Python: gcnii.from_scipy(A, X, y)"
        )
    if X.ndim != 2:
        raise DataError(f"the features of {arrays.path.name} must be (n, d), got shape {X.shape}")
    return X


def _adjacency(arrays: Arrays, n: int) -> sp.csr_array:
    edges, weights = _edges(arrays), arrays.optional(WEIGHTS)
    if edges.size and not 0 <= edges.min() <= edges.max() < n:
        raise DataError(
            f"{arrays.path.name} has edges between nodes {edges.min()} to {edges.max()}, "
            f"but features of nodes 0 to {n - 1}"
        )
    if weights is None:
        edges = np.unique(edges, axis=1)
        weights = np.ones(edges.shape[1])
    if weights.shape != edges.shape[1:] or weights.dtype.kind not in "iubf":
        raise DataError(
            f"the weights of {arrays.path.name} must be numbers, one for each of "
            f"{edges.shape[1]} edges, got {weights.dtype} of shape {weights.shape}"
        )
    return sp.csr_array((weights.astype(float), tuple(edges)), (n, n))


def _edges(arrays: Arrays) -> Array:
    """(2, m)"""
    name = arrays.first_of(EDGES)
    if name is None:
        raise DataError(
            f"{arrays.path.name} has neither adj_data nor edge_index nor edges; "
            f"it has {arrays.listed()}"
        )
    edges = arrays[name]
    if edges.ndim != 2 or 2 not in edges.shape or edges.dtype.kind not in "iu":
        raise DataError(
            f"{name} of {arrays.path.name} must hold whole numbers in the shape (2, m) or (m, 2), "
            f"got {edges.dtype} of shape {edges.shape}"
        )
    # Two edges can be read either way: as the layout has them that the other names are of.
    in_rows = name == "edge_index" or arrays.first_of(("X_data", "train", "directed"))
    transposed = not in_rows if edges.shape == (2, 2) else edges.shape[0] != 2
    return edges.T if transposed else edges


def _splits(arrays: Arrays, n: int) -> tuple[Split, ...]:
    found = {role: arrays.first_of((f"{role}_masks", f"{role}_mask", role)) for role in ROLES}
    names = [name for name in found.values() if name]
    if not names:
        return ()
    if lacking := [role for role, name in found.items() if not name]:
        raise DataError(
            f"{arrays.path.name} has masks but no {lacking[0]}_masks; add it, or remove the others"
        )
    rows = [_mask_rows(arrays[name], n) for name in names]
    if len({row.shape for row in rows}) > 1:
        shapes = ", ".join(str(row.shape) for row in rows)
        raise DataError(f"the masks of {arrays.path.name} must have one shape, got {shapes}")
    return tuple(
        Split(train=train, val=val, test=test) for train, val, test in zip(*rows, strict=True)
    )


def _mask_rows(masks: Array, n: int) -> Array:
    """(s, n) of masks that are (n,), (s, n) or (n, s); one row per split."""
    rows = np.atleast_2d(masks)
    columns = rows.ndim == 2 and rows.shape[0] == n != rows.shape[1]
    return rows.T if columns else rows


def _names(arrays: Arrays, known: Iterable[str]) -> tuple[str, ...] | None:
    name = arrays.first_of(known)
    if name is None:
        return None
    try:
        texts = arrays[name]
        if texts.ndim != 1:
            raise DataError(f"{name} of {arrays.path.name} must be (n,), got shape {texts.shape}")
        return tuple(map(str, texts))
    except DataError as error:
        notice(str(error))
        return None
