"""Arrays of a graph in their standard form, checked and frozen; edges without duplicates."""

from __future__ import annotations

import mmap
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gcnii.errors import GraphError

Array: TypeAlias = NDArray[Any]  # of the type that a file or a caller gives
Features: TypeAlias = NDArray[np.float32 | np.float64] | sp.csr_array
Labels: TypeAlias = Array  # int64 of classes, or float64 of numbers to predict
Frozen = TypeVar("Frozen")
WIDE = 2**21  # columns of a sparse X: each has a name and a row of weights, also an empty one
BEYOND = 2**63  # the first whole number that int64 cannot hold


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


def own(values: ArrayLike, field: str) -> Array:
    """A copy; the array itself if it is one that nobody changes, frozen and no view of another."""
    refuse_masked(values, field)
    shared = isinstance(values, np.ndarray) and not values.flags.writeable and values.base is None
    try:
        if hasattr(values, "detach"):  # a tensor, which may have a gradient
            values = values.detach().cpu().numpy()
        return np.asarray(values) if shared else np.array(values)
    except (TypeError, ValueError, RuntimeError) as error:  # such as rows of different lengths
        raise GraphError(f"{field} must be an array of numbers ({error})") from None


def _own_csr(values: sp.sparray) -> sp.csr_array:
    try:
        return sp.csr_array(values, copy=True)
    except ValueError as error:  # such as numbers in the other order of bytes
        raise GraphError(f"X must hold numbers ({error})") from None


def refuse_masked(values: object, field: str) -> None:
    """Raise GraphError if entries of numpy's masked arrays are masked: numpy would use them."""
    for one in values if isinstance(values, list | tuple) else (values,):
        if isinstance(one, np.ma.MaskedArray) and np.ma.getmaskarray(one).any():
            raise GraphError(
                f"{field} has masked entries, which have no value; fill them first (array.filled)"
            )


def true_or_false(value: object, name: str) -> bool:
    """The value as Python's own; GraphError if it is another: the text "no" counts as true."""
    if not isinstance(value, bool | np.bool_):
        raise GraphError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def hand_back(values: Features | Array) -> None:
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
    found = own(values, f"the {role} mask")
    if found.ndim != 1 or not np.isin(found, (0, 1)).all():
        raise GraphError(
            f"the {role} mask must be a vector of true and false, one per node, "
            f"got {found.dtype} of shape {found.shape}"
        )
    return freeze(found.astype(bool, copy=False))


def integers(values: ArrayLike, field: str) -> NDArray[np.int64]:
    """Whole numbers as int64."""
    array = own(values, field)
    if not array.ndim:
        raise GraphError(f"{field} must hold whole numbers, got {values!r}")
    whole = array.dtype.kind in "iub" or (
        array.dtype.kind == "f" and bool((array == np.floor(array)).all())
    )
    if whole:
        _refuse_beyond(array, field)
        return array.astype(np.int64, copy=False)
    if array.dtype.kind != "f":
        raise GraphError(f"{field} must hold whole numbers, got {array.dtype}")
    place = tuple(map(int, np.argwhere(array % 1 != 0)[0]))
    raise GraphError(f"{field} must hold whole numbers, got {array[place]} at position {place}")


def _refuse_beyond(array: Array, field: str) -> None:
    """Numbers that int64 cannot hold would become others: 2^64 - 1 becomes -1."""
    if array.dtype.kind not in "uf":
        return
    limit = np.uint64(BEYOND) if array.dtype.kind == "u" else float(BEYOND)
    beyond = (array >= limit) | (array < -float(BEYOND))
    if beyond.any():
        place = tuple(map(int, np.argwhere(beyond)[0]))
        raise GraphError(
            f"{field} must hold whole numbers below 2^63, got {array[place]} at position {place}"
        )


def target_array(values: ArrayLike) -> NDArray[np.float64]:
    """Numbers to predict as (n, q) float64, NaN where unknown; a vector is one column."""
    array = own(values, "y")
    if array.dtype.kind not in "iubf":
        raise GraphError(f"y must hold numbers where targets are named, got {array.dtype}")
    if array.ndim not in (1, 2):
        raise GraphError(f"y must be (n,) or (n, q) numbers, got {array.ndim} dimensions")
    numbers = array.astype(np.float64, copy=False).reshape(len(array), -1)
    if np.isinf(numbers).any():
        row = first(np.isinf(numbers).any(1))
        raise GraphError(f"y must be finite, or NaN where it is unknown, got infinity in row {row}")
    return numbers


def known_rows(y: Labels) -> NDArray[np.bool_]:
    """(n,) whether all labels or numbers (n, …) of a node are known: neither negative nor NaN."""
    there = ~np.isnan(y) if y.dtype.kind == "f" else y >= 0
    return np.asarray(there.reshape(len(y), -1).all(1))


def feature_array(values: ArrayLike | sp.csr_array) -> Features:
    """X as float32 or float64, dense or CSR, finite."""
    X = _own_csr(values) if sp.issparse(values) else own(values, "X")
    if isinstance(X, sp.csr_array):
        refuse_empty_columns(X.shape, X.nnz)
        X.sum_duplicates()
    if X.ndim != 2 or 0 in X.shape:
        raise GraphError(
            f"X must be a matrix with at least one node and one feature, got shape {X.shape}"
        )
    if X.dtype.kind not in "iubf":
        raise GraphError(f"X must hold numbers, got {X.dtype}")
    double = X.dtype.kind == "f" and X.dtype.itemsize >= 8  # in any order of bytes
    with np.errstate(over="ignore"):
        X = X.astype(np.float64 if double else np.float32, copy=False)
    finite = np.isfinite(X.data if sp.issparse(X) else X)
    if not finite.all():
        row = sp.coo_array(X).row[first(~finite)] if sp.issparse(X) else first(~finite.all(1))
        raise GraphError(f"X must be finite, got NaN or infinity in row {int(row)}")
    return X


def refuse_empty_columns(shape: tuple[int, ...], stored: int) -> None:
    """Raise GraphError for a sparse X so wide that most of its columns are empty."""
    if shape[1] > max(WIDE, stored):
        raise GraphError(
            f"X must have at most {WIDE:,} columns, or as many as it has values, got {shape[1]:,} "
            f"columns with {stored:,} values; leave out the empty ones"
        )


def edge_array(values: ArrayLike, n: int) -> NDArray[np.int64]:
    """Edges (2, m) among n nodes."""
    array = own(values, "edges")
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


def runs_of(start: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """start, start + 1, … (`count` of them), for each start and count, one after the other."""
    runs = np.repeat(start - (np.cumsum(count) - count), count)
    runs += np.arange(len(runs))
    return runs


def dense(X: Features) -> NDArray[np.float32 | np.float64]:
    """X as an array."""
    return X.toarray() if isinstance(X, sp.csr_array) else X


def row_normalised(X: ArrayLike | sp.sparray) -> sp.csr_array:
    """X (n, d) with each row divided by its sum, as a new float32 CSR; rows of zeros stay zero."""
    # A copy: without it the index arrays are the caller's, and eliminate_zeros changes them.
    X = sp.csr_array(X, dtype=np.float64, copy=True)
    X.eliminate_zeros()
    sums = X.sum(1)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums != 0)
    return sp.csr_array(sp.diags_array(scale) @ X, dtype=np.float32)
