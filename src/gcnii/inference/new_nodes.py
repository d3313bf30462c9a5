"""New nodes: labels for nodes that were not in the graph when the model was trained.

The new nodes join the graph of the training by their edges, and the model runs on the whole.  No
weight changes.  A new edge to an old node also changes that node's degree and neighbours, and with
them its own label a little; the table of the old nodes is `label_table`'s.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from gcnii.data import CATALOG, load
from gcnii.data.readers import folder
from gcnii.data.readers.table import Table
from gcnii.errors import DataError, GraphError, InputError
from gcnii.graph import Features, Graph
from gcnii.inference.labels import is_training_graph, known_labels, table_of
from gcnii.train.predictor import Predictor

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class NewNodes:
    """Nodes and edges that are to join a graph.

    nodes   the new nodes, named, without edges
    edges   pairs of names, of new nodes or of nodes of the graph that they join
    place   where edge i was read, for a message: "row 3 of edges.csv"
    header  the names of the two columns that the edges were read from
    """

    nodes: Graph
    edges: Sequence[tuple[str, str]]
    place: Callable[[int], str] = "edge {}".format
    header: tuple[str, ...] = ()


def predict_new(
    result: Predictor,
    nodes: DataFrame,
    edges: DataFrame,
    graph: Graph | None = None,
    device: str = "auto",
    *,
    ensemble: bool = True,
) -> DataFrame:
    """The table of `label_table` for new nodes only, joined to the graph of the training.

    nodes  the columns of a nodes.csv: id, features, and optionally label, which is shown as known
    edges  the columns of an edges.csv, which name new nodes or nodes of the graph
    graph  the graph of the training; default: loaded again from where it was
    """
    new = read_new(_as_table(nodes, "nodes"), _as_table(edges, "edges"))
    whole = _training_graph(result) if graph is None else graph
    return label_new(result, whole, new, device, ensemble=ensemble)


def label_new(
    result: Predictor, graph: Graph, new: NewNodes, device: str = "auto", *, ensemble: bool = True
) -> DataFrame:
    """`predict_new` for nodes that have been read already."""
    _refuse_another(result, graph)
    whole = joined(graph, new)
    P = result.predict_proba(whole, device, ensemble=ensemble)[graph.n :]
    names = whole.nodes or ()
    none = [None] * len(P)
    return table_of(result, P, names[graph.n :], known_labels(new.nodes), none)


def joined(graph: Graph, new: NewNodes) -> Graph:
    """The graph with the new nodes after its own, unlabelled, and without splits."""
    nodes = _with_columns_of(graph, new.nodes)
    ids = _ids(graph, nodes)
    if new.header and all(name in ids for name in new.header):
        raise DataError(
            f"the header of the edges, {','.join(new.header)}, holds node ids; begin the table "
            "with the header source,target"
        )
    ends = [_ends(new, i, ids, graph) for i in range(len(new.edges))]
    unknown = np.full((nodes.n, *graph.labels.shape[1:]), -1)
    return Graph(
        X=_stacked(graph.X, nodes.X),
        edges=np.concatenate([graph.edges, np.array(ends, np.int64).reshape(-1, 2).T], 1),
        y=np.concatenate([graph.labels, unknown]),
        directed=graph.directed,
        name=graph.name,
        nodes=tuple(ids),
        classes=graph.classes,
        features=graph.features,
    )


def _refuse_another(result: Predictor, graph: Graph) -> None:
    if not is_training_graph(result, graph):
        raise InputError(
            f"new nodes join the graph that the model was trained on, but {graph.name} has changed "
            "since, or is another graph; restore it, or label a whole graph (predict --graph)"
        )
    if result.plan.recipe.geometry != "none":
        raise InputError(
            f"{result.plan.model} places all nodes in a plane, where new nodes would move the old "
            "ones; train again with them"
        )


def _with_columns_of(graph: Graph, nodes: Graph) -> Graph:
    """The new nodes with the feature columns of the graph, by name if it has names."""
    if graph.features is not None:
        return nodes.with_features(graph.features)
    if nodes.d != graph.d:
        raise GraphError(f"{graph.name} has {graph.d} features per node, the new nodes {nodes.d}")
    if nodes.features is not None:
        warnings.warn(
            f"{graph.name} does not name its feature columns, so those of the new nodes are "
            "matched by position; check that they are in the same order",
            stacklevel=5,
        )
    return replace(nodes, features=None)


def _ids(graph: Graph, new: Graph) -> dict[str, int]:
    """Name → row of the joined graph, of the nodes of both."""
    old = graph.nodes or tuple(map(str, range(graph.n)))
    ids = {name: i for i, name in enumerate(old)}
    if len(ids) < graph.n:
        raise GraphError(
            f"several nodes of {graph.name} have the same name, so an edge cannot name them; "
            "rename them"
        )
    for i, name in enumerate(new.nodes or ()):
        if name in ids:
            where = graph.name if ids[name] < graph.n else "another new node"
            raise GraphError(f"the new node {name!r} has the id of a node of {where}; rename it")
        ids[name] = graph.n + i
    if len(ids) < graph.n + new.n:
        raise GraphError("new nodes need names; give each an id")
    return ids


def _ends(new: NewNodes, i: int, ids: dict[str, int], graph: Graph) -> tuple[int, int]:
    source, target = new.edges[i]
    for name in (source, target):
        if name not in ids:
            raise DataError(
                f"{new.place(i)} names the node {name!r}, which is neither a new node nor one of "
                f"{graph.name}"
            )
    return ids[source], ids[target]


def _stacked(old: Features, new: Features) -> Features:
    sparse = sp.issparse(old) or sp.issparse(new)
    return sp.csr_array(sp.vstack([old, new], "csr")) if sparse else np.concatenate([old, new])


def _training_graph(result: Predictor) -> Graph:
    source = result.graph.source
    if not source:
        raise InputError("the model was trained on a graph made in Python; give it as graph=")
    return load(source, **({} if source in CATALOG else {"directed": result.graph.directed}))


def read_folder(path: Path) -> NewNodes:
    """The new nodes in a folder with nodes.csv and edges.csv."""
    return read_new(*folder._tables(path))


def read_new(nodes: Table, edges: Table) -> NewNodes:
    """The new nodes in two tables, whose columns are those of nodes.csv and edges.csv."""
    y, classes = folder._labels(nodes, unknown="")
    graph = Graph(
        X=folder._features(nodes),
        features=tuple(name for name in nodes.header if name.lower() not in folder.NOT_FEATURES),
        edges=np.zeros((2, 0), np.int64),
        y=y,
        name=nodes.name,
        nodes=tuple(folder._ids(nodes)),
        classes=classes,
    )
    header = folder._end_columns(edges)
    if ignored := [name for name in edges.header if name not in header]:
        warnings.warn(f"{edges.name}: the columns {', '.join(ignored)} are not used", stacklevel=3)
    ends = zip(*(edges.column(name) for name in header), strict=True)
    return NewNodes(graph, [(u, v) for u, v in ends], edges.place, header)


def _as_table(frame: DataFrame, name: str) -> Table:
    """A data frame as text, in rows numbered from 0."""
    import pandas as pd

    rows = frame.itertuples(index=False, name=None)
    cells = [["" if pd.isna(cell) else str(cell) for cell in row] for row in rows]
    return Table(name, list(map(str, frame.columns)), cells, list(range(len(frame))))
