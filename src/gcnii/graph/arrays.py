"""Arrays of a graph in their standard form, checked and frozen; edges without duplicates."""

from __future__ import annotations

import mmap
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gcnii.errors import GraphError

Features: TypeAlias = NDArray[np.float32 | np.float64] | sp.csr_array
Frozen = TypeVar("Frozen")


def first(wrong: ArrayLike) -> int:
    """The number of the first that is true."""
    return int(np.flatnonzero(wrong)[0])


def freeze(value: Frozen) -> Frozen:
    """The value itself, whose arrays can no longer be changed."""
    parts: tuple[object, ...] = (value,)
    if isinstance(value, sp.csr_array):
        parts = (value.data, value.indices, value.indptr)
    for array in parts:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return value


def own(values: ArrayLike) -> NDArray[Any]:
    """A copy; the array itself if it is one that nobody changes, frozen and no view of another."""
    shared = isinstance(values, np.ndarray) and not values.flags.writeable and values.base is None
    return np.asarray(values) if shared else np.array(values)


def hand_back(values: Features | NDArray[Any]) -> None:
    """Let the system have the pages of a mapped file back; they are read again when needed.

    They count as the process's memory once they were read.  Other arrays are left alone.
    """
    base: object = values.data if isinstance(values, sp.csr_array) else values
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(base, "madvise"):  # not on Windows
        base.madvise(mmap.MADV_DONTNEED)


def mask(values: ArrayLike, role: str) -> NDArray[np.bool_]:
    """The nodes of this role as booleans (n,)."""
    found = own(values)
    if found.ndim != 1 or not np.isin(found, (0, 1)).all():
        raise GraphError(
            f"the {role} mask must be a vector of true and false, one per node, "
            f"got {found.dtype} of shape {found.shape}"
        )
    return freeze(found.astype(bool, copy=False))


def integers(values: ArrayLike, field: str) -> NDArray[np.int64]:
    """Whole numbers as int64."""
    array = own(values)
    whole = array.dtype.kind in "iub" or (
        array.dtype.kind == "f" and bool((array == np.floor(array)).all())
    )
    if whole:
        return array.astype(np.int64, copy=False)
    if array.dtype.kind != "f":
        raise GraphError(f"{field} must hold whole numbers, got {array.dtype}")
    place = tuple(map(int, np.argwhere(array % 1 != 0)[0]))
    raise GraphError(f"{field} must hold whole numbers, got {array[place]} at position {place}")


def feature_array(values: ArrayLike | sp.csr_array) -> Features:
    """X as float32 or float64, dense or CSR, finite."""
    X = sp.csr_array(values, copy=True) if sp.issparse(values) else own(values)
    if isinstance(X, sp.csr_array):
        X.sum_duplicates()
    if X.ndim != 2 or 0 in X.shape:
        raise GraphError(
            f"X must be a matrix with at least one node and one feature, got shape {X.shape}"
        )
    if X.dtype.kind not in "iubf":
        raise GraphError(f"X must hold numbers, got {X.dtype}")
    X = X.astype(np.float64 if X.dtype == np.float64 else np.float32, copy=False)
    finite = np.isfinite(X.data if sp.issparse(X) else X)
    if not finite.all():
        row = sp.coo_array(X).row[first(~finite)] if sp.issparse(X) else first(~finite.all(1))
        raise GraphError(f"X must be finite, got NaN or infinity in row {int(row)}")
    return X


def edge_array(values: ArrayLike, n: int) -> NDArray[np.int64]:
    """Edges (2, m) among n nodes."""
    array = own(values)
    if array.size == 0:
        return np.zeros((2, 0), np.int64)
    if array.ndim != 2 or array.shape[0] != 2:
        raise GraphError(f"edges must have shape (2, m), sources over targets, got {array.shape}")
    edges = integers(array, "edges")
    wrong = ((edges < 0) | (edges >= n)).any(0)
    if wrong.any():
        row = first(wrong)
        u, v = edges[:, row]
        raise GraphError(f"edge {row} joins {u} and {v}, but node ids go from 0 to {n - 1}")
    return edges


def merged(edges: NDArray[np.int64], *, directed: bool = False) -> NDArray[np.int64]:
    """The (2, m) edges sorted and without duplicates, frozen; self-loops are kept.

    An undirected edge is kept in one direction, from the smaller id to the larger.
    """
    size = int(edges.max(initial=0)) + 1
    u, v = edges[0], edges[1]
    codes = np.multiply(u if directed else np.minimum(u, v), size, dtype=np.int64)
    codes += v if directed else np.maximum(u, v)
    del edges, u, v  # of many millions of edges, each copy counts
    codes.sort()  # np.unique takes ten times as long
    codes = codes[np.diff(codes, prepend=-1) > 0]
    found = np.empty((2, len(codes)), np.int64)
    np.floor_divide(codes, size, out=found[0])
    np.remainder(codes, size, out=found[1])
    return freeze(found)


def row_normalised(X: ArrayLike | sp.sparray) -> sp.csr_array:
    """X (n, d) with each row divided by its sum, as a new float32 CSR; rows of zeros stay zero."""
    # A copy: without it the index arrays are the caller's, and eliminate_zeros changes them.
    X = sp.csr_array(X, dtype=np.float64, copy=True)
    X.eliminate_zeros()
    sums = X.sum(1)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums != 0)
    return sp.csr_array(sp.diags_array(scale) @ X, dtype=np.float32)
