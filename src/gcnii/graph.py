"""Graph and Split: what a graph is.  Frozen; each checks itself when made, so that every later room
can trust it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gcnii.errors import GraphError

Role = Literal["train", "val", "test"]
Features: TypeAlias = NDArray[np.floating[Any]] | sp.csr_array


@dataclass(frozen=True, eq=False, kw_only=True)
class Split:
    """Three disjoint boolean masks (n,): who is learnt from, who decides when to stop, who is
    graded.

    `test` may be empty (there is nothing to grade); `train` and `val` may not.
    """

    train: NDArray[np.bool_]
    val: NDArray[np.bool_]
    test: NDArray[np.bool_]

    def __post_init__(self) -> None:
        """Turn the masks into frozen boolean arrays and refuse overlaps and empty ones."""
        for role in ("train", "val", "test"):
            object.__setattr__(self, role, _mask(getattr(self, role), role))
        if not len(self.train) == len(self.val) == len(self.test):
            lengths = f"{len(self.train)}, {len(self.val)} and {len(self.test)}"
            raise GraphError(
                f"the masks train, val and test must have one entry a node, got lengths {lengths}"
            )
        for role in ("train", "val"):
            if not getattr(self, role).any():
                raise GraphError(f"the {role} mask is empty; put at least one node into it")
        for one, other in (("train", "val"), ("train", "test"), ("val", "test")):
            both = getattr(self, one) & getattr(self, other)
            if both.any():
                raise GraphError(
                    f"the masks {one} and {other} overlap, first at row {_first(both)}; a node has one role"
                )

    @classmethod
    def of_roles(cls, roles: Sequence[str | None] | NDArray[Any]) -> Split:
        """The split in which node i has the role roles[i]: 'train', 'val', 'test' or anything else
        for none.
        """
        roles = np.asarray(roles, dtype=object)
        return cls(train=roles == "train", val=roles == "val", test=roles == "test")


@dataclass(frozen=True, eq=False, kw_only=True)
class Graph:
    """n nodes with features X (n, d), joined by edges (2, m), labelled by y.

    X        dense, or scipy CSR where most entries are zero
    edges    row 0 points to row 1; an undirected edge may stand once or in both directions;
             repetitions count once
    y        (n,) class ids with -1 for unknown, or (n, k) zeros and ones, with a row of -1 for
             unknown
    splits   the train/val/test masks to choose from
    directed whether the edge u → v says nothing of v → u
    nodes, classes   names, for reading results
    part     (n,) which of several disjoint graphs a node belongs to (see `join`)
    source   where `load` found it
    """

    X: Features
    edges: NDArray[np.int64]
    y: NDArray[np.int64] | None = None
    splits: tuple[Split, ...] = ()
    directed: bool = False
    name: str = "graph"
    nodes: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    part: NDArray[np.int64] | None = None
    source: str = ""

    def __post_init__(self) -> None:
        """Bring every field into its one form, check it, and freeze the arrays."""
        X = _features(self.X)
        n = X.shape[0]
        y = np.full(n, -1) if self.y is None else _integers(self.y, "y")
        part = None if self.part is None else _integers(self.part, "part")
        fields = {
            "X": X,
            "edges": _edges(self.edges, n),
            "y": y,
            "splits": tuple(self.splits),
            "part": part,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, _freeze(value))
        for field in ("nodes", "classes"):
            names = getattr(self, field)
            object.__setattr__(self, field, None if names is None else tuple(map(str, names)))
        self._check_heights()
        self._check_labels()
        self._check_splits()

    def _check_heights(self) -> None:
        heights = {"y": self.y, "nodes": self.nodes, "part": self.part}
        for field, value in heights.items():
            if value is not None and len(value) != self.n:
                raise GraphError(
                    f"X has {self.n} rows but {field} has {len(value)}; both need one a node"
                )

    def _check_labels(self) -> None:
        y = self.labels
        if y.ndim > 2:
            raise GraphError(
                f"y must be (n,) class ids or (n, k) zeros and ones, got {y.ndim} dimensions"
            )
        low, high = -1, (1 if y.ndim == 2 else max(self.k - 1, -1))
        wrong = ((y < low) | (y > high)).reshape(self.n, -1).any(1)
        if wrong.any():
            row = _first(wrong)
            raise GraphError(
                f"labels must lie in {low}…{high} (-1 = unknown), got {y[row]!s} at row {row} of y"
            )
        if y.ndim == 2 and self.classes is not None and len(self.classes) != y.shape[1]:
            raise GraphError(
                f"y has {y.shape[1]} columns but {len(self.classes)} classes are named"
            )

    def _check_splits(self) -> None:
        for i, split in enumerate(self.splits):
            if len(split.train) != self.n:
                raise GraphError(
                    f"split {i} has masks of {len(split.train)} nodes, but the graph has {self.n}"
                )
            unknown = (split.train | split.val | split.test) & ~self.labelled
            if unknown.any():
                raise GraphError(
                    f"split {i} uses node {_first(unknown)}, whose label is unknown; leave it out of the masks"
                )

    @property
    def n(self) -> int:
        """Number of nodes."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def m(self) -> int:
        """Number of undirected edges (directed ones, if `directed`), without repetitions and
        self-loops.
        """
        u, v = self.edges[:, self.edges[0] != self.edges[1]]
        u, v = (u, v) if self.directed else (np.minimum(u, v), np.maximum(u, v))
        codes = np.sort(u * self.n + v)  # np.unique takes ten times as long
        return int((np.diff(codes, prepend=-1) > 0).sum())

    @property
    def k(self) -> int:
        """Number of classes, or of labels a node can have."""
        if self.labels.ndim == 2:
            return int(self.labels.shape[1])
        return (
            len(self.classes) if self.classes is not None else int(self.labels.max(initial=-1)) + 1
        )

    @property
    def labels(self) -> NDArray[np.int64]:
        """`y`, which is never None once the graph is made."""
        assert self.y is not None
        return self.y

    @property
    def multilabel(self) -> bool:
        """Whether a node can have several labels at once."""
        return self.labels.ndim == 2

    @cached_property
    def labelled(self) -> NDArray[np.bool_]:
        """(n,) whether a node's label is known."""
        return np.asarray((self.labels >= 0).reshape(self.n, -1).all(1))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything a model can learn from: features, edges, labels, splits, direction."""
        digest = hashlib.sha256(repr((self.n, self.d, self.directed, self.labels.shape)).encode())
        for array in self._arrays():
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _arrays(self) -> Iterable[NDArray[Any]]:
        X = self.X
        yield from (
            (X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data)
            if isinstance(X, sp.csr_array)
            else (X,)
        )
        yield from (self.edges, self.labels)
        for split in self.splits:
            yield from (split.train, split.val, split.test)

    def __repr__(self) -> str:
        """One line: name and counts."""
        kind = "directed" if self.directed else "undirected"
        return f"Graph({self.name}: {self.n} nodes, {self.m} {kind} edges, {self.d} features, {self.k} classes)"


def join(graphs: Sequence[Graph], roles: Sequence[Role], name: str = "graph") -> Graph:
    """Several graphs as one block-diagonal Graph with one split in which whole graphs are train,
    val or test.
    """
    if len(graphs) != len(roles) or not graphs:
        raise GraphError(
            f"join needs one role a graph, got {len(graphs)} graphs and {len(roles)} roles"
        )
    sizes = [graph.n for graph in graphs]
    starts = np.cumsum([0, *sizes[:-1]])
    sparse = any(sp.issparse(graph.X) for graph in graphs)
    X = (
        sp.vstack([graph.X for graph in graphs], "csr")
        if sparse
        else np.concatenate([graph.X for graph in graphs])
    )
    return Graph(
        X=X,
        edges=np.concatenate(
            [graph.edges + start for graph, start in zip(graphs, starts, strict=True)], 1
        ),
        y=np.concatenate([graph.labels for graph in graphs]),
        splits=(Split.of_roles(np.repeat(np.array(roles, dtype=object), sizes)),),
        directed=any(graph.directed for graph in graphs),
        name=name,
        classes=graphs[0].classes,
        part=np.repeat(np.arange(len(graphs)), sizes),
    )


def _first(wrong: Any) -> int:
    return int(np.flatnonzero(wrong)[0])


def _freeze(value: Any) -> Any:
    for array in (value.data, value.indices, value.indptr) if sp.issparse(value) else (value,):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return value


def _mask(values: ArrayLike, role: str) -> NDArray[np.bool_]:
    mask = np.array(values)
    if mask.ndim != 1 or not np.isin(mask, (0, 1)).all():
        raise GraphError(
            f"the {role} mask must be one true or false a node, got {mask.dtype} of shape {mask.shape}"
        )
    return _freeze(mask.astype(bool))  # type: ignore[no-any-return]


def _integers(values: ArrayLike, field: str) -> NDArray[np.int64]:
    array = np.array(values)
    whole = array.dtype.kind in "iub" or (
        array.dtype.kind == "f" and bool((array == np.floor(array)).all())
    )
    if whole:
        return array.astype(np.int64)
    if array.dtype.kind != "f":
        raise GraphError(f"{field} must hold whole numbers, got {array.dtype}")
    place = tuple(map(int, np.argwhere(array % 1 != 0)[0]))
    raise GraphError(f"{field} must hold whole numbers, got {array[place]} at position {place}")


def _features(values: Any) -> Features:
    X: Any = sp.csr_array(values, copy=True) if sp.issparse(values) else np.array(values)
    if isinstance(X, sp.csr_array):
        X.sum_duplicates()
    if X.ndim != 2 or 0 in X.shape:
        raise GraphError(
            f"X must be a matrix of at least one node and one feature, got shape {X.shape}"
        )
    if X.dtype.kind not in "iubf":
        raise GraphError(f"X must hold numbers, got {X.dtype}")
    X = X.astype(np.float64 if X.dtype == np.float64 else np.float32)
    finite = np.isfinite(X.data if sp.issparse(X) else X)
    if not finite.all():
        row = X.tocoo().row[_first(~finite)] if sp.issparse(X) else _first(~finite.all(1))
        raise GraphError(f"X must be finite, got NaN or infinity in row {int(row)}")
    return X


def _edges(values: ArrayLike, n: int) -> NDArray[np.int64]:
    array = np.array(values)
    if array.size == 0:
        return np.zeros((2, 0), np.int64)
    if array.ndim != 2 or array.shape[0] != 2:
        raise GraphError(f"edges must have shape (2, m), sources over targets, got {array.shape}")
    edges = _integers(array, "edges")
    wrong = ((edges < 0) | (edges >= n)).any(0)
    if wrong.any():
        row = _first(wrong)
        u, v = edges[:, row]
        raise GraphError(f"edge {row} joins {u} and {v}, but node ids go from 0 to {n - 1}")
    return edges
