"""A graph in one .npz file of numpy, in either of two layouts.

matrices   adj_data, adj_indices, adj_indptr, adj_shape: the adjacency matrix as CSR; attr_…: the
           features as CSR, or attr_matrix: dense; labels (Shchur et al. 2018)
arrays     edge_index (2, m) or edges (m, 2); node_features, features, X or x; node_labels, labels
           or y; and, if given, weights, train_masks, val_masks and test_masks (s, n)
           (Platonov et al. 2023)

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
ADJACENCY, ATTRIBUTES = ("adj_", "adj_matrix."), ("attr_", "attr_matrix.")  # prefixes
EDGES = ("edge_index", "edges")
FEATURES = ("node_features", "features", "X", "x", "attr_matrix")
LABELS = ("node_labels", "labels", "y")
WEIGHTS = ("weights", "edge_weights", "edge_weight")
NAMES = {"nodes": ("node_names",), "classes": ("class_names",), "features": ("attr_names",)}
ROLES = ("train", "val", "test")
MOST_COLUMNS = 2**31 - 1
BROKEN = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)

Array = NDArray[Any]  # of the type that the file holds


def reads(path: Path) -> bool:
    """Whether the path is a .npz file."""
    return path.suffix.lower() == ".npz" and path.is_file()


def read(path: Path, directed: bool = False, seed: int = 0) -> Graph:
    """The graph in a .npz file; `seed` draws the split if there are no masks."""
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


def _graph(arrays: Arrays, directed: bool, seed: int) -> Graph:
    prefix = _prefix(arrays, ADJACENCY)
    X = _features(arrays)
    A = _csr(arrays, prefix) if prefix else _adjacency(arrays, X.shape[0])
    y, splits = arrays.optional(LABELS), _splits(arrays)
    names = {field: _names(arrays, known) for field, known in NAMES.items()}
    if unused := [name for name in arrays.names if name not in arrays.used]:
        notice(f"{arrays.path.name}: the arrays {', '.join(unused)} are not used")
    return from_scipy(
        A, X, y, directed=directed, splits=splits, seed=seed, name=arrays.path.stem, **names
    )


def _prefix(arrays: Arrays, prefixes: Iterable[str]) -> str | None:
    return next((prefix for prefix in prefixes if f"{prefix}data" in arrays.names), None)


def _csr(arrays: Arrays, prefix: str) -> sp.csr_array:
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
        return _csr(arrays, prefix)
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
    # Two edges can be read either way; each name has the layout of its own tradition.
    transposed = name == "edges" if edges.shape == (2, 2) else edges.shape[0] != 2
    return edges.T if transposed else edges


def _splits(arrays: Arrays) -> tuple[Split, ...]:
    found = {role: arrays.first_of((f"{role}_masks", f"{role}_mask")) for role in ROLES}
    names = [name for name in found.values() if name]
    if not names:
        return ()
    if lacking := [role for role, name in found.items() if not name]:
        raise DataError(
            f"{arrays.path.name} has masks but no {lacking[0]}_masks; add it, or remove the others"
        )
    rows = [np.atleast_2d(arrays[name]) for name in names]
    if len({row.shape for row in rows}) > 1:
        shapes = ", ".join(str(row.shape) for row in rows)
        raise DataError(f"the masks of {arrays.path.name} must have one shape, got {shapes}")
    return tuple(
        Split(train=train, val=val, test=test) for train, val, test in zip(*rows, strict=True)
    )


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
