"""PPI (Zitnik & Leskovec 2017, split by Hamilton et al. 2017): 24 graphs, 121 labels per protein.

For each part of train, valid and test: `PART_feats.npy` (n, 50), `PART_labels.npy` (n, 121),
`PART_graph_id.npy` (n,) and `PART_graph.json`, a networkx node-link document whose ids are the rows
of the arrays.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcnii.data.converters.join import join
from gcnii.data.entry import Files
from gcnii.errors import DataError
from gcnii.graph import Graph, Role
from gcnii.graph.arrays import merged

Array = NDArray[Any]  # of the type that its file holds
ROLES: dict[str, Role] = {"train": "train", "valid": "val", "test": "test"}


def read(files: Files) -> Graph:
    """All graphs as one block-diagonal Graph, split by whole graphs.

    Features are used as shipped; upstream is believed to have standardised them already.
    """
    graphs = [(graph, role) for part, role in ROLES.items() for graph in _graphs(files, part)]
    return join([graph for graph, _ in graphs], [role for _, role in graphs], name="ppi")


def _graphs(files: Files, part: str) -> list[Graph]:
    """The graphs of one part, in the order of their ids."""
    X, y, graph_id = (
        _array(files, f"{part}_{kind}") for kind in ("feats.npy", "labels.npy", "graph_id.npy")
    )
    edges = _links(files, f"{part}_graph.json", len(X))
    if not len(X) == len(y) == len(graph_id):
        raise DataError(
            f"PPI's {part} arrays must have the same number of rows, "
            f"got {len(X)}, {len(y)} and {len(graph_id)}"
        )
    if (graph_id[edges[0]] != graph_id[edges[1]]).any():
        raise DataError(
            f"{part}_graph.json joins nodes that are in different graphs in {part}_graph_id.npy; "
            "fetch both again"
        )
    return [_block(X, edges, y, graph_id == one) for one in np.unique(graph_id)]


def _block(X: Array, edges: NDArray[np.int64], y: Array, inside: NDArray[np.bool_]) -> Graph:
    row = np.cumsum(inside) - 1  # row of the arrays → row of this graph
    own = row[edges[:, inside[edges[0]]]]
    return Graph(X=X[inside].astype(np.float32), edges=merged(own), y=y[inside])


def _array(files: Files, name: str) -> Array:
    try:
        return np.asarray(np.load(files[name], allow_pickle=False))
    except ValueError as error:
        raise DataError(f"{name} is not a plain array ({error}); fetch it again") from error


def _links(files: Files, name: str, n: int) -> NDArray[np.int64]:
    try:
        document = json.loads(files[name].read_bytes())
        ids = {node["id"] for node in document["nodes"]}
        pairs = [(link["source"], link["target"]) for link in document["links"]]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{name} is not a node-link document ({error!r}); fetch it again"
        ) from error
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    if ids != set(range(n)) or not ((edges >= 0) & (edges < n)).all():
        raise DataError(
            f"{name} must have the node ids 0…{n - 1}, one for each row of the features, "
            "but has others; fetch it again"
        )
    return edges
