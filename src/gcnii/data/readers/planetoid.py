"""Planetoid files (Yang et al. 2016): Cora, Citeseer and Pubmed, as the authors of GCNII read them.

`ind.NAME.allx` holds the features of all nodes but the test nodes, `tx` those of the test nodes in
the order of `test.index`; `ally` and `ty` hold the one-hot labels, `y` those of the training nodes
only; `graph` holds the neighbours of each node.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.data.entry import Files
from gcnii.data.readers.geom_gcn import ten_splits
from gcnii.data.readers.unpickle import unpickle
from gcnii.graph import Graph, Split
from gcnii.graph.arrays import merged, row_normalised

PARTS = ("allx", "tx", "ally", "ty", "graph")


def read_public(files: Files, *, stem: str) -> Graph:
    """The graph with its public split: 20 training nodes per class, 500 for val, 1000 for test."""
    X, edges, y = _read(files, stem)
    train, test = len(unpickle(files[f"ind.{stem}.y"])), _test_index(files, stem)
    roles = np.full(len(y), "", dtype=object)
    roles[:train], roles[train : train + 500], roles[test] = "train", "val", "test"
    return Graph(X=X, edges=edges, y=y, splits=(Split.of_roles(roles),), name=stem)


def read_full(files: Files, *, stem: str) -> Graph:
    """The graph with the ten splits of Geom-GCN (48/32/20)."""
    X, edges, y = _read(files, stem)
    # paper: silent; here: the 15 unlabelled nodes of Citeseer are class 0, as the authors' argmax
    # of their zero rows makes them, because the masks of Geom-GCN contain them and the printed
    # numbers count them.
    y = np.maximum(y, 0)
    return Graph(X=X, edges=edges, y=y, splits=ten_splits(files, stem), name=f"{stem}-full")


def _read(files: Files, stem: str) -> tuple[sp.csr_array, NDArray[np.int64], NDArray[np.int64]]:
    allx, tx, ally, ty, neighbours = (unpickle(files[f"ind.{stem}.{part}"]) for part in PARTS)
    test = _test_index(files, stem)
    place = np.concatenate([np.arange(allx.shape[0]), test])  # row of the stacked files → node
    n = int(place.max()) + 1
    # Citeseer lacks 15 test ids; those nodes get rows of zeros and the label -1.
    stacked = sp.coo_array(sp.vstack([allx, tx]))
    X = sp.csr_array((stacked.data, (place[stacked.row], stacked.col)), shape=(n, allx.shape[1]))
    y = np.full(n, -1)
    y[place] = np.concatenate([ally, ty]).argmax(1)
    pairs = [(u, v) for u, others in neighbours.items() for v in others]
    return row_normalised(X), merged(np.array(pairs).T), y


def _test_index(files: Files, stem: str) -> NDArray[np.int64]:
    return np.loadtxt(files[f"ind.{stem}.test.index"], dtype=np.int64)
