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
from dataclasses import replace
from pathlib import Path
from tokenize import TokenError

import numpy as np
import scipy.sparse as sp
from numpy.lib.format import read_array_header_1_0, read_array_header_2_0

from gcnii.data.converters.scipy_matrix import from_scipy
from gcnii.data.tables.assemble import EdgeList, each_once
from gcnii.data.tables.reading import Reading
from gcnii.errors import DataError, GraphError, notice
from gcnii.graph import ROLES, Graph, Split
from gcnii.graph.arrays import WIDE, Array

FORM = "a .npz file with edges, features and labels"
# prefixes of the parts of a CSR matrix
ADJACENCY, ATTRIBUTES = ("adj_", "adj_matrix."), ("attr_", "attr_matrix.", "X_")
EDGES = ("edge_index", "edges")
FEATURES = ("node_features", "features", "X", "x", "attr_matrix")
LABELS = ("node_labels", "labels", "y")
WEIGHTS = ("weights", "edge_weights", "edge_weight")
NAMES = {"nodes": ("node_names",), "classes": ("class_names",), "features": ("attr_names",)}
FLAGS = {"0": False, "False": False, "1": True, "True": True}
REMARKS = {"source", "note", "generated"}  # about the file, not about the graph
SUFFIX = ".npy"
LARGE = 1_000_000  # entries of an array that is read whatever its shape
DENSEST = 1032  # bytes that one byte of a deflated file becomes at most
BROKEN = (
    *(OSError, ValueError, EOFError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)


def read(path: Path, directed: bool | None = None, seed: int = 0, duplicates: str = "") -> Graph:
    """The graph in a .npz file; `seed` draws the split if there are no masks.

    directed    whether edges are one-way; None: as the file says, undirected if it says nothing
    duplicates  as `Reading` has it
    """
    reading = Reading.of(seed=seed, duplicates=duplicates)
    try:
        with zipfile.ZipFile(path) as archive:
            return _graph(Arrays(path, archive), directed, reading)
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
        members = [name for name in archive.namelist() if name.endswith(SUFFIX)]
        self.names = [name.removesuffix(SUFFIX) for name in members]
        self.used: set[str] = set()
        if len(set(self.names)) < len(self.names):
            raise DataError(f"{path.name} has two arrays of one name; it has {self.listed()}")

    def first_of(self, names: Iterable[str]) -> str | None:
        """The first of these names that the file has."""
        return next((name for name in names if name in self.names), None)

    def optional(self, names: Iterable[str], *sizes: int) -> Array | None:
        """The array of the first of these names that the file has."""
        name = self.first_of(names)
        return None if name is None else self.fitting(name, *sizes)

    def __getitem__(self, name: str) -> Array:
        self.shape(name)
        with self.archive.open(name + SUFFIX) as stream:
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))

    def fitting(self, name: str, *sizes: int) -> Array:
        """An array one of whose dimensions is one of these sizes: a large one is else not read."""
        shape = self.shape(name)
        if max(math.prod(shape), *sizes, 0) > LARGE and not set(shape) & set(sizes):
            fit = " or ".join(f"{size:,}" for size in sizes) or "fewer"
            raise DataError(
                f"the array {name!r} of {self.path.name} has the shape {shape}, "
                f"but {fit} would fit the other arrays; save the file again"
            )
        return self[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """As the header says; DataError for objects, and if the file is too short for it."""
        if name not in self.names:
            raise DataError(f"{self.path.name} has no array {name!r}; it has {self.listed()}")
        self.used.add(name)
        about = self.archive.getinfo(name + SUFFIX)
        try:
            with self.archive.open(about) as stream:
                first = np.lib.format.read_magic(stream) == (1, 0)
                header = (read_array_header_1_0 if first else read_array_header_2_0)(stream)
                rest = about.file_size - stream.tell()
        except (*BROKEN, TokenError, TypeError, LookupError) as error:
            raise DataError(
                f"the array {name!r} of {self.path.name} has no header of numpy's ({error}); "
                "save the file again"
            ) from None
        shape, _, dtype = header
        if dtype.hasobject:
            raise DataError(
                f"the array {name!r} of {self.path.name} holds Python objects, which are not read "
                "because they could run code; save it as numbers or as text of a fixed length"
            )
        small = (
            about.compress_type == zipfile.ZIP_DEFLATED and about.compress_size < rest // DENSEST
        )
        if math.prod(shape) * dtype.itemsize != rest or small:
            raise DataError(
                f"the array {name!r} of {self.path.name} must have {rest} bytes for its shape "
                f"{shape}; save the file again"
            )
        return tuple(shape)

    def listed(self) -> str:
        """All names, for a message."""
        return ", ".join(self.names) or "none"


def _graph(arrays: Arrays, directed: bool | None, reading: Reading) -> Graph:
    n, d = _size(arrays)
    y, splits = arrays.optional(LABELS, n), _splits(arrays, n)
    prefix, one_way = _prefix(arrays, ADJACENCY), _directed(arrays, directed)
    reading = replace(reading, directed=one_way)
    A = _matrix(arrays, prefix, n, reading) if prefix else _adjacency(arrays, n, reading)
    sizes = {"nodes": (n,), "features": (d,), "classes": ()}
    names = {field: _names(arrays, known, sizes[field]) for field, known in NAMES.items()}
    X = _features(arrays, n)  # last: by now, the others have as many nodes
    if unused := [name for name in arrays.names if name not in arrays.used | REMARKS]:
        notice(f"{arrays.path.name}: the arrays {', '.join(unused)} are not used")
    seed, name = reading.seed, arrays.path.stem
    return from_scipy(A, X, y, directed=one_way, splits=splits, seed=seed, name=name, **names)


def _directed(arrays: Arrays, wanted: bool | None) -> bool:
    """Whether edges are one-way: as the caller says, else as the file does."""
    said = arrays.optional(("directed",), 1)
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
    n, columns = _shape(arrays, prefix)
    indptr = _numbers(arrays, f"{prefix}indptr", "iu", n + 1)
    data = _numbers(arrays, f"{prefix}data", "iubf", int(indptr[-1]))
    indices = _numbers(arrays, f"{prefix}indices", "iu", int(indptr[-1]))
    try:
        matrix = sp.csr_array((data, indices, indptr), shape=(n, columns))
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise DataError(
            f"{prefix}data, {prefix}indices and {prefix}indptr of {arrays.path.name} are not a "
            f"CSR matrix of {n} × {columns} ({error})"
        ) from None
    return matrix


def _numbers(arrays: Arrays, name: str, kinds: str, size: int) -> Array:
    found = arrays.fitting(name, size)
    if found.dtype.kind not in kinds:
        wanted = "numbers" if "f" in kinds else "whole numbers"
        raise DataError(f"{name} of {arrays.path.name} must be {wanted}, got {found.dtype}")
    return found


def _shape(arrays: Arrays, prefix: str) -> tuple[int, int]:
    """As PREFIXshape says; DataError if PREFIXindptr and PREFIXdata are not of such a matrix."""
    shape = arrays.fitting(f"{prefix}shape", 2)
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or not (shape > 0).all():
        raise DataError(f"{prefix}shape of {arrays.path.name} must be two numbers, got {shape}")
    n, columns = map(int, shape)
    height, stored = (arrays.shape(prefix + part) for part in ("indptr", "data"))
    said = f"{prefix}shape of {arrays.path.name} says {n} × {columns}"
    if height != (n + 1,):
        count = height[0] if height else "no"
        raise DataError(
            f"{said}, but {prefix}indptr has {count} entries, not one more than the rows"
        )
    if columns > max(WIDE, n, math.prod(stored)):
        raise DataError(f"{said}, but it has {math.prod(stored)} values; leave out empty columns")
    return n, columns


def _size(arrays: Arrays) -> tuple[int, int]:
    """The shape of X, which is not read yet."""
    if prefix := _prefix(arrays, ATTRIBUTES):
        return _shape(arrays, prefix)
    name = arrays.first_of(FEATURES)
    if name is None:
        raise DataError(
            f"{arrays.path.name} has no features; it has {arrays.listed()}; add an array X with "
            "one row per node, or make the graph in Python: gcnii.from_scipy(A, X, y)"
        )
    shape = arrays.shape(name)
    if len(shape) != 2:
        raise DataError(f"the features of {arrays.path.name} must be (n, d), got shape {shape}")
    return shape[0], shape[1]


def _features(arrays: Arrays, n: int) -> Array | sp.csr_array:
    if prefix := _prefix(arrays, ATTRIBUTES):
        sparse = csr(arrays, prefix)
        # CSR with few zeros takes twice the memory of an array.
        return sparse.toarray() if 2 * sparse.nnz > math.prod(sparse.shape) else sparse
    X = arrays.optional(FEATURES, n)
    assert X is not None
    return X


def _matrix(arrays: Arrays, prefix: str, n: int, reading: Reading) -> sp.csr_array:
    shape = _shape(arrays, prefix)
    if shape != (n, n):
        raise DataError(
            f"{arrays.path.name}: A must have one row and one column per node, ({n}, {n}) for this "
            f"X, got {shape}"
        )
    A = csr(arrays, prefix)
    if not reading.duplicates:
        return A
    entries = sp.coo_array(A)
    return _combined(np.stack([entries.row, entries.col]), entries.data, n, reading)


def _adjacency(arrays: Arrays, n: int, reading: Reading) -> sp.csr_array:
    edges = _edges(arrays)
    weights = arrays.optional(WEIGHTS, edges.shape[1])
    if edges.size and not 0 <= edges.min() <= edges.max() < n:
        raise DataError(
            f"{arrays.path.name} has edges between nodes {edges.min()} to {edges.max()}, "
            f"but features of nodes 0 to {n - 1}"
        )
    if weights is not None and (
        weights.shape != edges.shape[1:] or weights.dtype.kind not in "iubf"
    ):
        raise DataError(
            f"the weights of {arrays.path.name} must be numbers, one for each of "
            f"{edges.shape[1]} edges, got {weights.dtype} of shape {weights.shape}"
        )
    if reading.duplicates:
        return _combined(edges, weights, n, reading)
    if weights is None:
        edges = np.unique(edges, axis=1)
        weights = np.ones(edges.shape[1])
    return sp.csr_array((weights.astype(float), tuple(edges)), (n, n))


def _combined(edges: Array, weights: Array | None, n: int, reading: Reading) -> sp.csr_array:
    """Each edge once, with the weight that is asked for."""
    once, each, *_ = each_once(EdgeList(edges.astype(np.int64), weights), reading, None)
    each = np.ones(once.shape[1]) if each is None else each
    return sp.csr_array((each, tuple(once)), (n, n))


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
    rows = [_mask_rows(arrays.fitting(name, n), n) for name in names]
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


def _names(arrays: Arrays, known: Iterable[str], sizes: tuple[int, ...]) -> tuple[str, ...] | None:
    name = arrays.first_of(known)
    if name is None:
        return None
    try:
        texts = arrays.fitting(name, *sizes)
        if texts.ndim != 1:
            raise DataError(f"{name} of {arrays.path.name} must be (n,), got shape {texts.shape}")
        return tuple(map(str, texts))
    except DataError as error:
        notice(str(error))
        return None
