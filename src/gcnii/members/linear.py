"""Linear: ridge regression of numbers on a node's own columns, without the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gcnii.errors import InputError
from gcnii.files import Document, Only, check
from gcnii.graph import Features, Graph, Split
from gcnii.targets import target_of
from gcnii.targets.target import Floats, Ints

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
ROWS, WORK = 20_000, 50_000_000  # rows that are fitted to; times their entries and columns of Y
FEWEST = 1000
SHAPE = Only(
    {"W": [[float]], "b": [float], "centre": [float], "by_length": bool, "strength": float}
)
ARRAYS = ("W", "b", "centre")


@dataclass(frozen=True, eq=False)
class Linear:
    """Y = (X - c) W + b, of W (d, q) whose squares are held down, by columns of one size.

    centre     (d,) c, the means of the columns; zeros of sparse ones
    by_length  whether each row of X is divided by its length first, which can suit sparse ones
    strength   by which the squares count
    """

    W: Floats
    b: Floats
    centre: Floats
    by_length: bool
    strength: float

    @classmethod
    def fit(cls, graph: Graph, split: Split, like: Linear | None = None) -> Linear:
        """That with the lowest squared error on the validation nodes.

        like  what was chosen before; it is fitted anew
        """
        rows = affordable_rows(graph, split)
        y, strengths = graph.labels[rows], STRENGTHS if like is None else (like.strength,)
        ways = (False, True) if sp.issparse(graph.X) else (False,)
        ways = ways if like is None else (like.by_length,)
        X = graph.X[rows].astype(np.float64)
        tried = [one for way in ways for one in _ridge(X, y, way, strengths)]
        if len(tried) == 1 or not split.val.any():
            return tried[0]
        X, y, target = graph.X[split.val], graph.labels[split.val], target_of(graph)
        losses = [target.badness(one.answers(X), y).sum() for one in tried]
        return tried[int(np.argmin(losses))]

    def answers(self, X: Features) -> Floats:
        """(n, q) values of the rows of X (n, d)."""
        if X.shape[1] != len(self.W):
            raise InputError(
                f"linear regression takes {len(self.W)} features, but X has {X.shape[1]}"
            )
        return np.asarray(_rows(X, self.by_length) @ self.W + (self.b - self.centre @ self.W))

    def terms(self, X: Features, label: int) -> Floats:
        """(d,) what each feature of one row adds to a number."""
        row = sp.csr_array(_rows(X, self.by_length)).toarray().ravel()
        return np.asarray((row - self.centre) * self.W[:, label])

    def document(self) -> Document:
        arrays = {name: getattr(self, name).tolist() for name in ARRAYS}
        return arrays | {"by_length": self.by_length, "strength": self.strength}

    @classmethod
    def of(cls, document: Document) -> Linear:
        """What `document` gave; InputError for anything else."""
        check(document, SHAPE)
        W, q, d = document["W"], len(document["b"]), len(document["centre"])
        if not q or not d or len(W) != d or any(len(row) != q for row in W):
            raise InputError(f"W must have a row of {q} numbers for each of {d} features")
        arrays = {name: np.array(document[name], np.float64) for name in ARRAYS}
        return cls(**document | arrays)


def _rows(X: Features, by_length: bool) -> Features:
    if not by_length:
        return X
    from sklearn.preprocessing import normalize

    return normalize(X)


def _ridge(X: Features, y: Floats, by_length: bool, strengths: Sequence[float]) -> Iterator[Linear]:
    """One of each strength.

    Columns are brought to one size for the fit: of sparse ones, the largest entry becomes 1, so
    that zeros stay zeros.
    """
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler
    from threadpoolctl import threadpool_limits

    X, mean = _rows(X, by_length), y.mean(0)
    scaler = (MaxAbsScaler if sp.issparse(X) else StandardScaler)().fit(X)
    A, size = scaler.transform(X), np.where(y.std(0) > 0, y.std(0), 1.0)
    for strength in strengths:
        with threadpool_limits(1):  # the same numbers on any machine
            V = Ridge(alpha=strength).fit(A, (y - mean) / size).coef_
        W = np.reshape(V, (y.shape[1], -1)).T * size / scaler.scale_[:, None]
        centre = getattr(scaler, "mean_", np.zeros(X.shape[1]))
        b = mean - (np.asarray(X.mean(0)) - centre) @ W
        yield Linear(W, b, centre, by_length, strength)


def affordable_rows(graph: Graph, split: Split) -> Ints:
    """The training nodes that are fitted to; nodes of no other kind have a say in it."""
    rows = np.flatnonzero(split.train)
    return rows[affordable(np.arange(len(rows)), graph.X[rows], graph.k)]


def affordable(rows: Ints, X: Features, k: int) -> Ints:
    """These rows of X, or a sample of them where a regression on k columns would take long."""
    entries = X.nnz / X.shape[0] if isinstance(X, sp.csr_array) else X.shape[1]
    most = int(np.clip(WORK / (max(entries, 1) * k), FEWEST, ROWS))
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
