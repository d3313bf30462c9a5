"""New nodes: labels for nodes that were not in the graph when the model was trained.

The new nodes join the training graph by their edges, and the model runs on the whole.  No
weight changes.  A new edge to an old node also changes that node's degree and neighbours, and with
them its own label a little; the table of the old nodes is `label_table`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.data.converters.frames import open_frames
from gcnii.data.formats.folder import open_folder
from gcnii.data.tables.assemble import EdgeList, Edges, FurtherIds, Ids, Nodes, each_once
from gcnii.data.tables.reading import Reading, Rows
from gcnii.errors import GraphError, InputError, notice
from gcnii.graph import Features, Graph
from gcnii.graph.columns import Column, Columns, Texts
from gcnii.graph.types import aligned
from gcnii.inference.intervals import IntervalRule
from gcnii.inference.predict import answered, known_labels, predict_sets, table_of, value_table
from gcnii.inference.training_graph import is_training_graph, load_training_graph
from gcnii.results.trained import Trained
from gcnii.targets.target import Sets

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from pandas import DataFrame

Kind = TypeVar("Kind", bound=np.generic)
ROLES = (
    *("id", "label", "target", "split", "unknown", "multilabel", "time", "time_edges"),
    *("edge_from", "edge_to", "source", "weight", "edge_type", "node_type", "duplicates"),
)


def predict_new(
    result: Trained,
    nodes: IntoDataFrame,
    edges: IntoDataFrame,
    graph: Graph | None = None,
    device: str = "auto",
    *,
    ensemble: bool = True,
    coverage: float | None = None,
    kind: Sets = "lac",
) -> DataFrame:
    """The table of `label_table` for new nodes only, joined to the training graph.

    nodes  a data frame with the names and features of the new nodes, in columns as the training had
           them, and optionally their labels, which are shown as known
    edges  a data frame of edges, which name new nodes or nodes of the graph
    graph  the training graph; default: the one in memory, or from where it was
    coverage, kind  of the sets, as `predict_sets` has them; None: no sets

    A node without links has the basis `features`, unless the model was trained on such nodes: see
    `FeaturesOnly`.
    """
    old = OldNodes(load_training_graph(result) if graph is None else graph)
    tables = open_frames(nodes, edges, old.reading, result.origin.columns)
    return label_new(result, old, old.as_numbers(tables), device, ensemble, coverage, kind)


def read_new(result: Trained, folder: Path, old: OldNodes) -> tuple[Nodes, Rows]:
    """The tables of new nodes in a folder, whose columns are called as in the training."""
    return old.as_numbers(open_folder(folder, old.reading, result.origin.columns))


def label_new(
    result: Trained,
    old: OldNodes,
    tables: tuple[Nodes, Rows],
    device: str = "auto",
    ensemble: bool = True,
    coverage: float | None = None,
    kind: Sets = "lac",
) -> DataFrame:
    """`predict_new` for tables that have been opened already."""
    graph = old.graph
    refuse_another(result, graph)
    arrivals = old.read(*tables)
    joined = arrivals.joined(graph)
    P, basis = answered(result, joined, graph, device, ensemble=ensemble)
    ends = sets = None
    if coverage is not None and result.origin.targets:
        rule = IntervalRule.of(result, graph, coverage, device, ensemble=ensemble)
        ends = rule(P, joined, graph.n)
    elif coverage is not None:
        sets = predict_sets(
            result, joined, coverage, device, kind=kind, ensemble=ensemble, trained_on=graph
        )[graph.n :]
    return arrivals.table(result, P, basis, sets, ends, ensemble=ensemble)


@dataclass(frozen=True, eq=False)
class Arrivals:
    """New nodes, which nothing joins yet, and the edges that came with them.

    nodes  the new nodes alone, with their labels, where some are known
    X      their features, in the columns of the old nodes
    links  edges among the old nodes, which have their numbers, and the new ones, which come next
    """

    nodes: Graph
    X: Features
    links: EdgeList

    def joined(self, graph: Graph) -> Graph:
        """The graph with the new nodes after its own, unlabelled, without splits."""
        return Graph(
            X=stacked(graph.X, self.X),
            edges=np.concatenate([graph.edges, self.links.edges], 1),
            weights=followed(graph.weights, self.links.weights),
            edge_types=followed(graph.edge_types, self.links.edge_types),
            edge_type_names=graph.edge_type_names,
            y=np.concatenate([graph.labels, graph.unknown(self.nodes.n)]),
            directed=graph.directed,
            name=graph.name,
            nodes=(*_names(graph), *(self.nodes.nodes or ())),
            classes=graph.classes,
            targets=graph.targets,
            features=graph.features,
        )

    def table(
        self,
        result: Trained,
        P: NDArray[np.float64],
        basis: Sequence[str],
        sets: NDArray[np.bool_] | None = None,
        ends: NDArray[np.float64] | None = None,
        *,
        ensemble: bool = True,
    ) -> DataFrame:
        """The table of `label_table`, of the probabilities (new, k) of the new nodes, or values."""
        if result.origin.targets:
            return value_table(result, P, self.nodes, [None] * len(P), basis, ends)
        about = (self.nodes.nodes or (), known_labels(self.nodes), [None] * len(P))
        return table_of(result, P, *about, basis, ensemble=ensemble, sets=sets)


@dataclass(frozen=True, eq=False)
class OldNodes:
    """The training graph as new nodes see it: its names are indexed once."""

    graph: Graph

    @cached_property
    def reading(self) -> Reading:
        """How the training graph's tables were read."""
        return reading_of(self.graph.loaded_with, self.graph.directed)

    def read(self, nodes: Nodes, edges: Rows) -> Arrivals:
        """What two tables hold; an error that says all that is wrong with them."""
        graph, problems = self.graph, nodes.problems
        nodes.note_wrong_names(edges.header)
        texts, labels = nodes.ids(), nodes.labels()
        if texts is None:
            raise problems.error()
        self._note_taken(texts, nodes)
        ids = FurtherIds(self.ids, texts)
        table, columns = nodes.features()
        links = Edges(edges, nodes.reading, problems, optional=False).read(ids)
        problems.refuse()  # before the weights, which it has not got if anything is wrong
        if nodes.reading.duplicates:
            links = _combined(graph, links, nodes.reading, ids)
        _refuse_weights(graph, links, edges)
        links = links._replace(edge_types=_types(graph, links, edges))
        X, features = columns.encode(table, nodes.rows.name)
        new = Graph(
            X=X,
            edges=np.zeros((2, 0), np.int64),
            **labels._asdict(),
            nodes=tuple(texts),
            features=features,
        )
        return Arrivals(new, _in_order(graph, new), links)

    def as_numbers(self, tables: tuple[Nodes, Rows]) -> tuple[Nodes, Rows]:
        """Of a graph that was not made of a table, all columns are numbers; a gap is the median."""
        (nodes, edges), graph = tables, self.graph
        if nodes.known is not None or nodes.matrix is not None:
            return tables
        names = graph.features or tuple(nodes.features_named)
        if len(names) != graph.d:
            raise GraphError(
                f"{graph.name} has {graph.d} features per node, the new nodes {len(names)}"
            )
        found = zip(names, self._medians, strict=True)
        known = Columns(tuple(Column(name, "numeric", median=median) for name, median in found))
        return replace(nodes, known=known), edges

    @cached_property
    def _medians(self) -> list[float]:
        return _medians(self.graph.X)

    @cached_property
    def ids(self) -> Ids:
        """The names of the nodes; an error if an edge could not tell two apart."""
        known = Ids(np.array(_names(self.graph), object))
        if known.repeated():
            raise GraphError(
                f"several nodes of {self.graph.name} have the same name, so an edge cannot name "
                "them; rename them"
            )
        return known

    def _note_taken(self, texts: Texts, nodes: Nodes) -> None:
        nodes.problems.add_each(
            np.flatnonzero(self.ids.rows_of(texts) >= 0),
            lambda i: (
                f"{nodes.rows.place(i)}: the new node {texts[i]!r} has the id of a node of "
                f"{self.graph.name}; rename it"
            ),
        )


def reading_of(loaded_with: Mapping[str, object], directed: bool) -> Reading:
    """The columns' roles are called as in the training."""
    options = {name: loaded_with[name] for name in ROLES if name in loaded_with}
    return Reading.of(**options, directed=directed)


def refuse_another(result: Trained, graph: Graph) -> None:
    """Raise InputError unless new nodes can join this graph."""
    if not is_training_graph(result, graph):
        raise InputError(
            f"new nodes join the graph that the model was trained on, but {graph.name} has changed "
            "since, or is another graph; restore it, or label a whole graph (predict)"
        )
    if result.recipe.geometry != "none":
        raise InputError(
            f"{result.model} places all nodes in a plane, where new nodes would move the old "
            "ones; train again with them"
        )


def _medians(X: Features) -> list[float]:
    """The median of each column, in float64, where the sum of two middle values is finite."""
    from sklearn.utils.sparsefuncs import csc_median_axis_0

    if isinstance(X, sp.csr_array):
        return [float(median) for median in csc_median_axis_0(X.tocsc().astype(np.float64))]
    return [float(np.median(column.astype(np.float64))) for column in X.T]


def _names(graph: Graph) -> Sequence[str]:
    return graph.nodes or tuple(map(str, range(graph.n)))


def _combined(graph: Graph, links: EdgeList, reading: Reading, ids: Ids) -> EdgeList:
    """Each new edge once; where the number of edges was the weight in training, one weighs 1."""
    if graph.weights is not None and links.weights is None and reading.duplicates == "add":
        links = links._replace(weights=np.ones(links.edges.shape[1]))
    return each_once(links, reading, ids.texts.tolist())


def _refuse_weights(graph: Graph, links: EdgeList, edges: Rows) -> None:
    """Raise InputError where either the old edges or the new ones alone have weights."""
    if graph.weights is None and links.weights is not None:
        raise InputError(
            f"{edges.name} has weights, but the edges of {graph.name} had none in training; "
            "leave the column out"
        )
    if graph.weights is not None and links.weights is None:
        raise InputError(f"the edges of {graph.name} have weights; {edges.name} needs them, too")


def _types(graph: Graph, links: EdgeList, edges: Rows) -> NDArray[np.int64] | None:
    """Of the new edges, as the graph names them; InputError where one of both alone has types."""
    own, known = links.edge_type_names or (), graph.type_names
    if not known and own:
        raise InputError(
            f"{edges.name} has types of edges, but those of {graph.name} had none in training; "
            "leave the column out"
        )
    m = links.edges.shape[1]
    if known and not own and m:
        raise InputError(
            f"the edges of {graph.name} are of the types {', '.join(known)}; {edges.name} needs "
            "a column of types, too"
        )
    return aligned(links.edge_types, m, own, known, edges.name) if known else None


def _in_order(graph: Graph, new: Graph) -> Features:
    """X of the new nodes, in the columns of the graph."""
    if graph.features is not None:
        return new.with_features(graph.features).X
    if new.d != graph.d:
        raise GraphError(f"{graph.name} has {graph.d} features per node, the new nodes {new.d}")
    notice(
        f"{graph.name} does not name its feature columns, so those of the new nodes are "
        "matched by position; check that they are in the same order"
    )
    return new.X


def followed(old: NDArray[Kind] | None, own: NDArray[Kind] | None) -> NDArray[Kind] | None:
    """The weights or types of old edges, and those of new ones after them, where there are both."""
    return None if old is None or own is None else np.concatenate([old, own])


def stacked(old: Features, new: Features) -> Features:
    """The rows of both."""
    sparse = sp.issparse(old) or sp.issparse(new)
    return sp.csr_array(sp.vstack([old, new], "csr")) if sparse else np.concatenate([old, new])
