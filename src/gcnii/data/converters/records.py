"""Nodes and edges with attributes, as graph libraries and their formats have them, to a Graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.columns import Columns
from gcnii.data.converters.frames import FrameRows
from gcnii.data.tables.assemble import assemble
from gcnii.data.tables.links import WEIGHT
from gcnii.data.tables.nodes import Nodes
from gcnii.data.tables.reading import Reading
from gcnii.errors import DataError, Problems, notice
from gcnii.graph import Features, Graph
from gcnii.graph.weights import merged_weighted

if TYPE_CHECKING:
    import pandas as pd

Attributes: TypeAlias = Mapping[str, object]
Values: TypeAlias = dict[str, list[object]]  # attribute → its value in each row, None if missing
Links: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64] | None]  # (2, m) and weights (m,)
NESTED = (list, tuple, dict, set, np.ndarray)


class RecordRows(FrameRows):
    """A frame whose rows a message calls by their names."""

    def __init__(self, frame: pd.DataFrame, name: str, called: Callable[[int], str]):
        import narwhals as nw

        super().__init__(nw.from_native(frame, eager_only=True), name)
        self.called = called

    def place(self, i: int) -> str:
        """Such as "node 'ann'"."""
        return self.called(i)


@dataclass(frozen=True)
class Records:
    """The nodes and the edges of a graph, each with attributes that not all need to have.

    names     of the nodes
    nodes     the attributes of each node
    edges     the two ends of each edge, as numbers of nodes
    links     the attributes of each edge
    directed  whether edges are one-way
    """

    names: Sequence[str]
    nodes: Sequence[Attributes]
    edges: Sequence[tuple[int, int]]
    links: Sequence[Attributes]
    directed: bool

    def graph(
        self,
        name: str,
        reading: Reading,
        *,
        X: Features | None = None,
        columns: Columns | None = None,
    ) -> Graph:
        """The graph; `reading` says which attributes are what.

        X        the features, instead of the attributes; the identity matrix if there are neither
        columns  what the attributes are, if that was learnt on another graph
        """
        links = self._links(reading)
        attributes = _by_name(self.nodes)
        roles = {role.lower() for role in (reading.split, *reading.labels)}
        known = {key: values for key, values in attributes.items() if key.lower() in roles}
        if X is None and set(attributes) - {*known, *reading.drop}:
            _refuse_nested(attributes, reading.drop)
            return self._assembled(name, attributes, links, reading, columns)
        _refuse_nested(known, ())
        if X is not None:
            self._refuse_height(X)
            return self._with_features(name, X, None, known, links, reading)
        notice(
            "the nodes have no attributes beside their labels, so each is made a feature of its "
            "own: a model of such a graph cannot label new nodes"
        )
        identity = sp.eye_array(len(self.names), format="csr", dtype=np.float32)
        return self._with_features(name, identity, tuple(self.names), known, links, reading)

    def _refuse_height(self, X: Features) -> None:
        if np.shape(X)[:1] != (len(self.names),):
            raise DataError(
                f"X must have one row per node, {len(self.names)} in all, got shape {np.shape(X)}"
            )

    def _assembled(
        self, name: str, attributes: Values, links: Links, reading: Reading, known: Columns | None
    ) -> Graph:
        """With the attributes as features."""
        import pandas as pd

        rows, texts = self._rows(attributes), np.array(self.names, object)
        (u, v), weights = links
        ends = {"source": texts[u], "target": texts[v]}
        edges = pd.DataFrame(ends if weights is None else ends | {WEIGHT: weights})
        elsewhere = set(_names(self.links)) - set(attributes)
        own = replace(
            reading,
            id=rows.header[0],
            source="source",
            target="target",
            weight="" if weights is None else WEIGHT,
            drop=tuple(name for name in reading.hints.drop if name not in elsewhere),
            directed=self.directed,
        )
        nodes = Nodes(rows, own, Problems(), known=known)
        return assemble(nodes, RecordRows(edges, "edges", lambda i: f"edge {i}"), name)

    def _with_features(
        self,
        name: str,
        X: Features,
        features: tuple[str, ...] | None,
        known: Values,
        links: Links,
        reading: Reading,
    ) -> Graph:
        """With these features; of the attributes, only labels and splits are used."""
        nodes = Nodes(self._rows(known), reading, Problems())
        labels = nodes.labels()
        splits = nodes.splits(labels)
        nodes.problems.refuse()
        return Graph(
            X=X,
            edges=links[0],
            weights=links[1],
            y=labels.y,
            splits=splits,
            directed=self.directed,
            name=name,
            nodes=tuple(self.names),
            classes=labels.classes,
            features=features,
        )

    def _rows(self, attributes: Values) -> RecordRows:
        """The names, in the first column, and the attributes."""
        import pandas as pd

        frame = pd.DataFrame({_unused("id", attributes): list(self.names), **attributes})
        return RecordRows(frame, "nodes", lambda i: f"node {self.names[i]!r}")

    def _links(self, reading: Reading) -> Links:
        """Each edge once: the weights of parallel edges add up."""
        wanted = reading.weight or WEIGHT
        known = _names(self.links)
        if reading.weight and reading.weight not in known:
            raise DataError(
                f"no edge has the attribute {wanted!r}; edges have {', '.join(known) or 'none'}"
            )
        used = wanted in known and wanted not in reading.drop
        self._say_what_is_unused([key for key in known if not (used and key == wanted)], reading)
        weights = self._weights(wanted) if used else np.ones(len(self.edges))
        edges = np.array(self.edges, np.int64).reshape(-1, 2).T
        if not self.directed:
            edges = np.sort(edges, 0)  # two directions of an undirected edge are parallel edges
        if not len(self.edges):
            return edges, None
        merged, sums = merged_weighted(edges, weights, directed=True, nodes=self.names)
        if not used and (parallel := len(self.edges) - merged.shape[1]):
            notice(f"{parallel} edges are parallel to others; their number is the edge's weight")
        return merged, None if (sums == 1).all() else sums

    def _weights(self, wanted: str) -> NDArray[np.float64]:
        values = [link.get(wanted) for link in self.links]
        if lacking := values.count(None):
            raise DataError(
                f"{lacking} of {len(values)} edges have no {wanted!r}, first the edge from "
                f"{self._ends(values.index(None))}; give every edge one, or none"
            )
        try:
            return np.array([float(value) for value in values])  # type: ignore[arg-type]
        except (TypeError, ValueError):
            odd = next(i for i, value in enumerate(values) if not _is_number(value))
            raise DataError(
                f"the {wanted} of the edge from {self._ends(odd)} is {values[odd]!r}; "
                "it must be a number"
            ) from None

    def _ends(self, i: int) -> str:
        u, v = self.edges[i]
        return f"{self.names[u]!r} to {self.names[v]!r}"

    def _say_what_is_unused(self, names: Sequence[str], reading: Reading) -> None:
        if unused := [name for name in names if name not in reading.drop]:
            notice(f"the edge attributes {', '.join(unused)} are not used")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _names(rows: Sequence[Attributes]) -> list[str]:
    """All attributes, in the order in which they first occur."""
    return list(dict.fromkeys(key for row in rows for key in row))


def _by_name(rows: Sequence[Attributes]) -> Values:
    return {name: [row.get(name) for row in rows] for name in _names(rows)}


def _unused(name: str, columns: Values) -> str:
    """The name, or one like it that no column has."""
    taken = {column.lower() for column in columns}
    while name in taken:
        name = f"_{name}"
    return name


def _refuse_nested(columns: Values, drop: Sequence[str]) -> None:
    for name, column in columns.items():
        odd = next((value for value in column if isinstance(value, NESTED)), None)
        if odd is not None and name not in drop:
            raise DataError(
                f"the node attribute {name!r} holds values of type {type(odd).__name__}, but a "
                f"feature is one number or text; give a matrix X, or leave it out: drop=[{name!r}]"
            )
