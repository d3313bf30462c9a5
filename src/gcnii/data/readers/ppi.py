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
# The hash of the archive is not published; these are the git blob hashes of its members.
BLOBS = {
    "test_feats.npy": "007ffeffe490a05f3d560e4434558398e1dbc1dd",
    "test_graph.json": "6b78a646c24030fa136ec7964eea6abe003b9db1",
    "test_graph_id.npy": "08ce2a7353e397c65c83084d53feaac4979d029c",
    "test_labels.npy": "43d0b45144862ef437186c8183b1247dcbdab436",
    "train_feats.npy": "c3df4929f38f82f3d43bb57ceca1bb182f4ddc95",
    "train_graph.json": "5612b7255e92e2796b4f9cd9b6c803313d60c792",
    "train_graph_id.npy": "f71a82e1e8186119dcf4c80768a9c91a708791f2",
    "train_labels.npy": "92eadf5360f0fc0a48a3f96d79e4a4bd305bce7d",
    "valid_feats.npy": "a9e9b379a2f1f4a83f0f9869f5579aadd1edd380",
    "valid_graph.json": "62fe4f9ed39f35a658561a861e2ddcbf3acbbdba",
    "valid_graph_id.npy": "886ae156536a05fc843055f832185b008080267f",
    "valid_labels.npy": "64b58e8b2f866487ad6fc437ad129bc06b9634da",
}
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
