"""Piece: some nodes of a graph, as one of several processes has them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import DataError
from gcnii.graph.arrays import Array
from gcnii.graph.graph import ROLES, Graph, Split

Numbers = NDArray[np.int64]
Gathered = Callable[[Array], Array]


@dataclass(frozen=True)
class Whole:
    """What a piece knows of the graph that it is of.

    n, m, k, fingerprint   as `Graph` has them
    labelled  whether any node has a label
    alike     for each split, whether all its validation nodes have the same labels
    known     what was found out about the graph before it was cut, by name
    seal      the digest of all parts, where it was read from some
    """

    n: int
    m: int
    k: int
    fingerprint: str
    labelled: bool
    alike: tuple[bool, ...]
    known: Mapping[str, object] = field(default_factory=dict)
    seal: str = ""

    @classmethod
    def of(cls, graph: Graph) -> Whole:
        """Of a graph that is at hand."""
        alike = tuple(graph.val_is_alike(i) for i in range(len(graph.splits)))
        about = (graph.n, graph.m, graph.k, graph.fingerprint)
        return cls(*about, graph.has_labels, alike)


@dataclass(frozen=True, eq=False)
class GlobalIndices:
    """Where the links and values of a piece stand in the whole graph.

    first   direction → (rows,) the number of the first entry of each row of A + I, of those that
            are stored row by row
    pairs   (entries,) of the piece's rows of A + I in both directions: a number that (u, v) and
            (v, u) share
    halo    (halo,) the nodes of other pieces that its links lead to, sorted
    owner   (halo,) the processes that have them
    values  (rows,) the number of the first stored value of each row of X, where X is sparse
    """

    first: Mapping[str, Numbers]
    pairs: Numbers
    halo: Numbers
    owner: Numbers
    values: Numbers | None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Piece(Graph):
    """Some nodes of a graph: n, m, k and the fingerprint are those of the whole graph.

    X, y, the masks of splits, and part have a row for each node of the piece; edges are all those
    that touch one of them, by their numbers in the whole graph.  Nodes have no names.  Arrays are
    used as they are: they were checked when the whole graph was made.

    rows    (rows,) the numbers of its nodes, sorted
    places  of its links, where it was read from a file
    """

    rows: Numbers
    whole: Whole
    places: GlobalIndices | None = None

    def __post_init__(self) -> None:
        """Check nothing: a piece is not a graph of its own."""

    @classmethod
    def cut(cls, graph: Graph, rows: Numbers) -> Piece:
        """These nodes of a graph that is at hand, without its edges."""
        refuse_targets(graph)
        same = {one.name: getattr(graph, one.name) for one in fields(Graph)}
        own = {
            "X": graph.X[rows],
            "edges": np.zeros((2, 0), np.int64),
            "weights": None if graph.weights is None else np.zeros(0),
            "y": graph.labels[rows],
            "splits": tuple(split.some(rows) for split in graph.splits),
            "part": None if graph.part is None else graph.part[rows],
        }
        unnamed = {"nodes": None, "table": None}
        return cls._of_checked(**same | own | unnamed, rows=rows, whole=Whole.of(graph))

    def without_features(self) -> Piece:
        """The same piece with zeros for X, which take no memory: a task has features of its own."""
        return copy.copy(self)._set(X=_zeros(len(self.rows), self.d))

    def labelled_only(self, gathered: Gathered, own: Numbers) -> Piece:
        """The labels and splits of some nodes of all pieces, without their features and links.

        gathered  puts what each piece has for `own`, some of its rows, together
        """

        def mask(split: Split, role: str) -> NDArray[np.bool_]:
            return gathered(getattr(split, role)[own].view(np.uint8)).view(bool)

        y, rows = gathered(self.labels[own]), gathered(self.rows[own])
        splits = (Split.of_some(**{role: mask(one, role) for role in ROLES}) for one in self.splits)
        return Piece(
            rows=rows,
            whole=self.whole,
            X=_zeros(len(rows), self.d),
            edges=np.zeros((2, 0), np.int64),
            y=y,
            splits=tuple(splits),
            part=None if self.part is None else gathered(self.part[own]),
            name=self.name,
            classes=self.classes,
            directed=self.directed,
            features=self.features,
        )

    @property
    def n(self) -> int:
        """Number of nodes of the whole graph."""
        return self.whole.n

    @property
    def m(self) -> int:
        """Number of edges of the whole graph, as `Graph` counts them."""
        return self.whole.m

    @property
    def k(self) -> int:
        """Number of classes of the whole graph."""
        return self.whole.k

    @property
    def has_labels(self) -> bool:
        """Whether any node of the whole graph has a label."""
        return self.whole.labelled

    @cached_property
    def fingerprint(self) -> str:
        """That of the whole graph."""
        return self.whole.fingerprint

    @cached_property
    def typical_weights(self) -> NDArray[np.float64]:
        """Those of the whole graph, which it was told."""
        if "weights" not in self.whole.known:
            raise DataError(
                f"the parts of {self.name} were packed by an older gcnii and do not tell how its "
                "edge weights are distributed; pack the graph again, or take edge_weights raw or "
                "none (--edge-weights)"
            )
        return np.array(self.whole.known["weights"], np.float64)

    def val_is_alike(self, split: int) -> bool:
        """Whether all validation nodes of this split have the same labels, in the whole graph."""
        return self.whole.alike[split]


def refuse_targets(graph: Graph) -> None:
    """Raise DataError for numbers to predict, whose spread no process knows of all nodes."""
    if graph.targets:
        raise DataError(
            f"{graph.name} has numbers to predict, which one process trains; start it without "
            "torchrun, and keep the graph in one file"
        )


def _zeros(rows: int, d: int) -> NDArray[np.float32]:
    return np.broadcast_to(np.float32(0), (rows, d))
