"""What is done to X before a model sees it: columns of the graph's structure, and a scaling.

Structure columns: what its links alone say of a node, beside its features.

degree  log(1 + d) of its in-degree and its out-degree, which are equal in an undirected graph
walk    these, the logarithm of its PageRank, and the probability that a random walk along links in
        both directions is back at the node after two steps, and after three: 0 without triangles

Each is computed on the graph that is asked, and a node's value depends on its surroundings alone,
not on how nodes are numbered or on how many there are: a column means the same on another graph.
Eigenvectors of the Laplacian do not, and are left out: their signs, and their bases where
eigenvalues are equal, are arbitrary, so that weights that fit those of one graph fit no other.

Feature scaling: learnt on the graph of a training, kept with its weights, applied to any graph.

standard  each column less its mean, divided by its standard deviation.  A column of zeros and
          ones stays as it is; one that never changes becomes 0.  Sparse features are divided by
          their root mean square instead, so that their zeros stay zeros
columns   each column divided by its root mean square, that of zeros and ones as well: a rare word
          counts for more than a common one
rows      each row divided by the sum of its absolute values; a row of zeros stays
length    each row divided by its length, the root of the sum of squares; a row of zeros stays
quantile  each number becomes the normal score of its rank in its column: the column's order alone
          counts.  Columns of zeros and ones, and words, stay, as in `standard`; so do columns of
          sparse features that are mostly zeros, divided by their root mean square
auto      length for features ≥ 0, mostly zeros, of columns of about one size, such as word counts;
          else standard

The columns of a user's table mean different things: for `auto` each is scaled by itself, whatever
stands beside it, and the words of a text stay as TF-IDF weighs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor

from gcnii.errors import InputError
from gcnii.files import Document, Maybe, check
from gcnii.graph import Features, Graph
from gcnii.graph.arrays import dense
from gcnii.graph.columns import Columns
from gcnii.propagation import Sparse, adjacency, to_matrix

Structure = Literal["none", "degree", "walk"]
Scale = Literal["auto", "none", "standard", "columns", "rows", "length", "quantile"]
Kind = Literal["none", "standard", "columns", "rows", "length", "quantile"]
Floats: TypeAlias = NDArray[np.float64]
Dense: TypeAlias = NDArray[np.floating[Any]]

COLUMNS = ("in-degree", "out-degree", "PageRank", "return in 2 steps", "return in 3 steps")
WIDTHS: dict[Structure, int] = {"none": 0, "degree": 2, "walk": len(COLUMNS)}  # the first of them
DAMPING, STEPS = 0.85, 50  # of PageRank; 0.85^50 is below 0.001
MOST = 1 << 24  # products of two entries at a time: 200 MiB


def structure_columns(graph: Graph, kind: Structure) -> Floats | None:
    """(n, WIDTHS[kind]) the columns before they are scaled; None of `none`.

    Repeated edges count once, and neither loops nor edge weights count.
    """
    if kind == "none":
        return None
    A = adjacency(graph, "out", "remove", "none")
    columns = [np.log1p(A.sum(0)), np.log1p(A.sum(1))]
    if kind == "walk":
        both = adjacency(graph, "both", "remove", "none") if graph.directed else A
        columns += [np.log(_pagerank(A)), *_returns(both)]
    return np.column_stack(columns)


def _pagerank(A: sp.csr_array) -> Floats:
    """(n,) n times PageRank, as far as walks go on: one that reaches a node without links ends.

    So a graph beside this one changes nothing.
    """
    out = A.sum(1)
    P = sp.csr_array(A.T @ sp.diags_array(1 / np.maximum(out, 1)))
    rank = np.ones(A.shape[0])
    for _ in range(STEPS):
        rank = 1 - DAMPING + DAMPING * (P @ rank)
    return rank


def _returns(A: sp.csr_array) -> tuple[Floats, Floats]:
    """(n,) diag(P²) and diag(P³) of P = D⁻¹A, exactly; A is symmetric, of zeros and ones.

    P is similar to S = D^-1/2 A D^-1/2, so that diag(Pᵏ) = diag(Sᵏ).  A closed walk of three steps
    is a triangle, in one of two directions.  Links point from the lower to the higher degree in U,
    in which hubs have few: each triangle i → j → k, i → k is found without their pairs of
    neighbours.
    """
    degree = A.sum(1)
    root = sp.diags_array(1 / np.sqrt(np.maximum(degree, 1)))
    S = sp.coo_array(root @ A @ root)
    two = np.bincount(S.row, S.data**2, len(degree)).astype(np.float64)  # of no link, integers
    rank = np.empty(len(degree), np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(len(degree))
    up = rank[S.row] < rank[S.col]
    U = sp.csr_array((S.data[up], (S.row[up], S.col[up])), S.shape)
    first, _ = _closed(U, U)
    second, third = _closed(sp.csr_array(U.T), U)
    return two, 2 * (first + second + third)


def _closed(left: sp.csr_array, U: sp.csr_array) -> tuple[Floats, Floats]:
    """(n,) the sums of the rows and of the columns of (left U) ∘ U, a block of rows at a time."""
    n = U.shape[0]
    products = (left != 0) @ np.diff(U.indptr)
    block = np.cumsum(products) // MOST
    rows, columns = np.zeros(n), np.zeros(n)
    for some in np.split(np.arange(n), np.flatnonzero(np.diff(block)) + 1):
        part = (left[some] @ U).multiply(U[some])
        rows[some] = part.sum(1)
        columns += part.sum(0)
    return rows, columns


BY_COLUMN = ("standard", "columns", "quantile")
POWERS = {"rows": 1, "length": 2}  # by which entries are taken into the size of a row
CHUNK = 1 << 22  # numbers at a time in float64: 32 MiB
# A sparse column counts as larger than the others if its mean entry is so many times the median
# column's: rows that are divided by their sums would then hold little beside it.
LARGER = 10
MOSTLY = 0.5  # share of nonzero entries below which features are mostly zeros
QUANTILES = 256  # of a column, at most: numbers between two of them have one score
SHAPE = {
    "kind": set(get_args(Kind)),
    "mean": Maybe([float]),
    "deviation": Maybe([float]),
    "quantiles": Maybe([[float]]),
    "structure": Maybe(dict),
}


def _alone(numbers: Floats) -> Floats:
    return numbers


@dataclass(frozen=True)
class Across:
    """How processes that have some rows each combine their numbers.

    added  the sum of what each process has
    most   the largest that a process has, number by number
    """

    added: Callable[[Floats], Floats] = _alone
    most: Callable[[Floats], Floats] = _alone


ALONE = Across()  # all rows are here


@dataclass(frozen=True, eq=False)
class Scaling:
    """How the features X (n, d) of any graph are scaled.

    mean, deviation  (d,) of scalings by column: 0 and 1 where a column stays as it is
    quantiles        d times those of a column, in ascending order; none of one that has no scores
    structure        of the columns that a Recipe's `structure` adds, if it does
    """

    kind: Kind
    mean: Floats | None = None
    deviation: Floats | None = None
    quantiles: tuple[Floats, ...] = ()
    structure: Scaling | None = None

    @classmethod
    def learn(
        cls, X: Features, scale: Scale, across: Across = ALONE, columns: Columns | None = None
    ) -> Scaling:
        """The scaling of this kind for graphs like the one that has these features.

        across   where several processes have some rows each, how they add up what they find
        columns  what the features were made of, if that is a table
        """
        kind = choose(X, columns) if scale == "auto" else scale
        if kind not in BY_COLUMN:
            return cls(kind)
        if kind == "columns":
            return cls(kind, *_of_sparse(sp.csr_array(X), across, binary_too=True))
        by = _of_sparse if isinstance(X, sp.csr_array) else _of_dense
        mean, deviation = by(X, across)
        words = _words(columns, X.shape[1])
        mean, deviation = np.where(words, 0, mean), np.where(words, 1, deviation)
        quantiles = _quantiles(X, words) if kind == "quantile" else ()
        return cls(kind, mean, deviation, quantiles)

    def apply(self, X: Features, structure: Floats | None = None) -> Features:
        """The features scaled, of the same precision; finite, as X is, which is left alone.

        structure  the columns of the graph's structure, which are scaled and added
        """
        scaled = self._applied(X)
        if structure is None or self.structure is None:
            return scaled
        added = self.structure.apply(structure).astype(X.dtype)
        if isinstance(scaled, sp.csr_array):
            return sp.csr_array(sp.hstack([scaled, sp.csr_array(added)], "csr"))
        return np.hstack([scaled, added])

    def _applied(self, X: Features) -> Features:
        if self.kind == "none":
            return X
        if self.kind in POWERS:
            by = _rows_of_sparse if isinstance(X, sp.csr_array) else _rows_of_dense
            return by(X, POWERS[self.kind])
        assert self.mean is not None
        assert self.deviation is not None
        if isinstance(X, sp.csr_array) and not self.mean.any():
            data = _divided(X.data, self.deviation[X.indices])
            scaled: Features = sp.csr_array((data, X.indices, X.indptr), X.shape)
        else:
            scaled = _standardised(dense(X), self.mean, self.deviation)
        return _with_scores(scaled, X, self.quantiles)

    def document(self) -> Document:
        """The scaling as a JSON object, from which `of` makes the same to the last bit."""
        known = {"mean": self.mean, "deviation": self.deviation}
        arrays = {name: array.tolist() for name, array in known.items() if array is not None}
        if self.quantiles:
            arrays["quantiles"] = [each.tolist() for each in self.quantiles]
        added = {"structure": self.structure.document()} if self.structure else {}
        return {"kind": self.kind, **arrays, **added}

    @classmethod
    def of(cls, document: Document, d: int, structure: int = 0) -> Scaling:
        """The scaling of d features, and columns of structure, that a `document` was made from."""
        check(document, SHAPE, "scaling")
        if structure:
            if "structure" not in document:
                raise InputError("scaling.structure is missing")
            added = cls.of(document["structure"], structure)
            return replace(cls.of(document, d), structure=added)
        if document["kind"] not in BY_COLUMN:
            return cls(document["kind"])
        mean, deviation = (
            np.array(document.get(name, ()), np.float64) for name in ("mean", "deviation")
        )
        if not len(mean) == len(deviation) == d or not (deviation > 0).all():
            raise InputError(f"scaling must have a mean and a positive deviation of {d} features")
        quantiles = tuple(np.array(each, np.float64) for each in document.get("quantiles", ()))
        sorted_ones = all((np.diff(each) >= 0).all() for each in quantiles)
        if len(quantiles) != (d if document["kind"] == "quantile" else 0) or not sorted_ones:
            raise InputError(f"scaling must have ascending quantiles of {d} features")
        return cls(document["kind"], mean, deviation, quantiles)


def scaled_matrix(
    X: Features, scaling: Scaling | None, dtype: torch.dtype, structure: Floats | None = None
) -> Tensor | Sparse:
    """X scaled, as a model takes it; in float64, if that is asked for, from the first operation.

    structure  as for `Scaling.apply`
    """
    if dtype == torch.float64:
        X = X.astype(np.float64, copy=False)
    return to_matrix(X if scaling is None else scaling.apply(X, structure), dtype)


def choose(X: Features, columns: Columns | None = None) -> Kind:
    """What `auto` means for these features, and the columns that they were made of."""
    words = density(X) < MOSTLY and _of_one_sign_and_size(X) and not _of_a_table(columns)
    return "length" if words else "standard"


def _of_a_table(columns: Columns | None) -> bool:
    """Whether columns have meanings of their own; those of a matrix alone may be of one kind."""
    return columns is not None and any(one.kind != "matrix" for one in columns.used)


def _words(columns: Columns | None, d: int) -> NDArray[np.bool_]:
    """(d,) the features that are words of a text."""
    kinds = (
        [one.kind == "words" for one in columns.used for _ in range(one.width)] if columns else ()
    )
    return np.array(kinds, bool) if len(kinds) == d else np.zeros(d, bool)


def density(X: Features) -> float:
    """The share of nonzero entries, whether X is stored dense or sparse."""
    nonzeros = np.count_nonzero(X.data if isinstance(X, sp.csr_array) else X)
    return float(nonzeros / (X.shape[0] * X.shape[1]))


def _of_one_sign_and_size(X: Features) -> bool:
    """Whether no entry is negative and no column much larger than the others.

    Rows can then be divided by their sum or length: no column outweighs the others in them.
    """
    found = sp.csr_array(X)
    return bool((found.data >= 0).all()) and _alike(found)


def _alike(X: sp.csr_array) -> bool:
    """Whether no column's mean entry, zeros left out, is LARGER times the median column's."""
    count = np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    total = np.bincount(X.indices, X.data.astype(np.float64), X.shape[1])
    mean = total[count > 0] / count[count > 0]
    return not len(mean) or bool(mean.max() / LARGER <= np.median(mean))  # * might overflow


def _of_dense(X: Dense, across: Across) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column; 0 and 1 of one that stays as it is."""
    n = across.added(np.array(float(len(X))))
    top = across.most(np.maximum(X.max(0), -X.min(0)).astype(np.float64))
    # In units of the largest entry, neither sums overflow nor squares underflow.
    unit = np.where(top > 0, top, 1)
    zero = np.zeros(X.shape[1])
    mean = across.added(sum(((part / unit).sum(0) for part in _parts(X)), zero)) / n
    squares = (((part / unit - mean) ** 2).sum(0) for part in _parts(X))
    variance = across.added(sum(squares, zero)) / n
    deviation = np.sqrt(variance)
    constant = (deviation <= np.finfo(X.dtype).eps) | ~_usable(deviation * unit)
    binary = across.most((~_is_binary(X)).astype(np.float64)) == 0
    return (np.where(binary, 0, mean * unit), np.where(binary | constant, 1, deviation * unit))


def _of_sparse(
    X: sp.csr_array, across: Across, *, binary_too: bool = False
) -> tuple[Floats, Floats]:
    """Zeros, and each column's root mean square; 1 for one that stays as it is."""
    (rows, d), top = X.shape, np.zeros(X.shape[1])
    n = across.added(np.array(float(rows)))
    np.maximum.at(top, X.indices, np.abs(X.data).astype(np.float64))
    top = across.most(top)
    unit = np.where(top > 0, top, 1)
    square = np.bincount(X.indices, (X.data / unit[X.indices]) ** 2, d)
    size = np.sqrt(across.added(square.astype(np.float64)) / n) * unit
    scaled = (X.data != 0) if binary_too else (X.data != 0) & (X.data != 1)
    count = np.bincount(X.indices[scaled], minlength=d).astype(np.float64)
    other = across.most(count) > 0
    return np.zeros(d), np.where(other & _usable(size), size, 1)


def _usable(deviation: Floats) -> NDArray[np.bool_]:
    """Whether dividing by it keeps numbers finite."""
    return deviation >= np.finfo(np.float64).tiny


def _is_binary(X: Dense) -> NDArray[np.bool_]:
    """(d,) which columns hold nothing but zeros and ones."""
    found: NDArray[np.bool_] = np.all([((part == 0) | (part == 1)).all(0) for part in _parts(X)], 0)
    return found


def _quantiles(X: Features, words: NDArray[np.bool_]) -> tuple[Floats, ...]:
    """Of each column; none of words, of zeros and ones, and of a sparse one mostly of zeros."""
    n, d = X.shape
    chosen = ~words
    if isinstance(X, sp.csr_array):
        chosen &= np.bincount(X.indices, minlength=d) >= MOSTLY * n
    places = np.flatnonzero(chosen).tolist()
    found = dict(zip(places, map(_spaced, _columns(X, places)), strict=True))
    return tuple(found.get(j, np.zeros(0)) for j in range(d))


def _spaced(column: Dense) -> Floats:
    """At most QUANTILES of its numbers, evenly spaced in their order; one, if all are equal."""
    order = np.sort(column).astype(np.float64)
    if ((order == 0) | (order == 1)).all():
        return order[:0]
    count = min(QUANTILES, len(order)) if order[0] < order[-1] else 1
    return order[np.linspace(0, len(order) - 1, count).round().astype(np.int64)]


def _columns(X: Features, places: Sequence[int]) -> Iterator[Dense]:
    """(n,) these columns, one after the other."""
    if isinstance(X, sp.csr_array):
        by_column = X.tocsc()
        yield from (by_column[:, [j]].toarray().ravel() for j in places)
    else:
        yield from (X[:, j] for j in places)


def _with_scores(scaled: Features, X: Features, quantiles: tuple[Floats, ...]) -> Features:
    """The scaled features with normal scores of X in the columns that have quantiles."""
    chosen = [j for j, each in enumerate(quantiles) if len(each)]
    scores = map(_scores, _columns(X, chosen), (quantiles[j] for j in chosen))
    if not isinstance(scaled, sp.csr_array):
        for j, own in zip(chosen, scores, strict=True):
            scaled[:, j] = own
        return scaled
    if not chosen:
        return scaled
    others = np.ones(X.shape[1])
    others[chosen] = 0
    block = sp.csr_array(np.stack(list(scores), 1))
    block = sp.csr_array((block.data, np.array(chosen)[block.indices], block.indptr), X.shape)
    return sp.csr_array(scaled @ sp.diags_array(others) + block, dtype=X.dtype)


def _scores(column: Dense, quantiles: Floats) -> Floats:
    """(n,) Φ⁻¹ of the share of quantiles below each entry, with half of those that equal it.

    No entry is beyond half a quantile of either end, so that all are finite; where there is but one
    quantile, all are 0.
    """
    count = len(quantiles)
    below = np.searchsorted(quantiles, column, "left") + np.searchsorted(quantiles, column, "right")
    return np.asarray(ndtri(np.clip(below / 2, 0.5, count - 0.5) / count))


def _standardised(X: Dense, mean: Floats, deviation: Floats) -> Dense:
    shift = mean / deviation  # x - mean might overflow
    scaled = np.empty_like(X)
    for rows, part in zip(_parts(scaled), _parts(X), strict=True):
        rows[:] = _divided(part, deviation, shift)
    return scaled


def _divided(X: Dense, deviation: Floats, shift: Floats | float = 0.0) -> Dense:
    """X / deviation - shift; what exceeds X's dtype becomes its largest number."""
    largest = np.finfo(X.dtype).max
    with np.errstate(over="ignore"):
        scaled = X / deviation - shift
    return np.clip(scaled, -largest, largest).astype(X.dtype)


def _rows_of_dense(X: Dense, power: int) -> Dense:
    scaled = np.empty_like(X)
    for rows, part in zip(_parts(scaled), _parts(X), strict=True):
        top = np.abs(part).max(1, keepdims=True).astype(np.float64)
        shares = part / np.where(top > 0, top, 1)
        total = (np.abs(shares) ** power).sum(1, keepdims=True) ** (1 / power)
        rows[:] = shares / np.maximum(total, 1)
    return scaled


def _rows_of_sparse(X: sp.csr_array, power: int) -> sp.csr_array:
    row, size = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), np.abs(X.data)
    top = np.zeros(X.shape[0])
    np.maximum.at(top, row, size.astype(np.float64))
    shares = X.data / np.where(top > 0, top, 1)[row]
    total = np.bincount(row, np.abs(shares) ** power, X.shape[0]) ** (1 / power)
    total = np.maximum(total, 1)
    data = (shares / total[row]).astype(X.dtype)
    return sp.csr_array((data, X.indices, X.indptr), X.shape)


def _parts(X: Dense) -> Iterator[Dense]:
    """X in blocks of rows, to save memory."""
    height = max(1, CHUNK // X.shape[1])
    return (X[start : start + height] for start in range(0, len(X), height))
