"""Geom-GCN files (Pei et al. 2020): web graphs and Film, and ten splits for each data set.

`out1_node_feature_label.txt`   id, features (separated by commas; of Film, the numbers of those
                                that are 1), label
`out1_graph_edges.txt`          source, target; like the above with a header, tab-separated
`NAME_split_0.6_0.2_I.npz`      three masks
`outf_nodes_space_relation_NAME_KIND.txt`   two nodes (separated by a comma), `graph` or
                                `latent_space`, and a quadrant from 0 to 3
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gcnii.data.entry import Files
from gcnii.graph import Graph, Split
from gcnii.graph.arrays import merged, row_normalised

SPLITS = 10
NODES, EDGES = "out1_node_feature_label.txt", "out1_graph_edges.txt"
WORDS = {"film": 932}  # where the file names a node's features: how many there are
# geometry: its name in the files
KINDS = {"isomap": "MDS", "poincare": "poincare", "struc2vec": "struc2vec"}


def split_name(stem: str, i: int) -> str:
    """The file name of split i, which says 60/20 though the masks are 48/32."""
    return f"{stem}_split_0.6_0.2_{i}.npz"


def neighbourhood_name(stem: str, geometry: str) -> str:
    """The file name of the neighbourhoods in this geometry."""
    return f"outf_nodes_space_relation_{stem}_{KINDS[geometry]}.txt"


def read_neighbourhood(path: Path) -> NDArray[np.int64]:
    """(4, lines): the two nodes, 0 for the graph or 1 for the latent space, and the quadrant."""
    _, _, lines = path.read_text("ascii").partition("\n")
    numbers = lines.replace("latent_space", "1").replace("graph", "0").replace(",", "\t")
    return np.fromstring(numbers, dtype=np.int64, sep="\t").reshape(-1, 4).T


def read_web(files: Files, *, stem: str, name: str) -> Graph:
    """A graph, directed: each line says that page u links to page v."""
    lines = files[NODES].read_text("ascii").splitlines()[1:]
    ids, features, labels = zip(*(line.split("\t") for line in lines), strict=True)
    order = np.argsort(np.array(ids, dtype=np.int64))
    X = np.stack([_row(text, WORDS.get(stem)) for text in features])
    edges = np.loadtxt(files[EDGES], dtype=np.int64, skiprows=1).T
    return Graph(
        X=row_normalised(X[order]),
        edges=merged(edges, directed=True),
        y=np.array(labels, dtype=np.int64)[order],
        splits=ten_splits(files, stem),
        directed=True,
        name=name,
    )


def _row(text: str, words: int | None) -> NDArray[np.float32]:
    """A node's features; if there are `words` of them, the text names those that are 1."""
    if words is None:
        return np.fromstring(text, dtype=np.float32, sep=",")
    row = np.zeros(words, np.float32)
    row[np.fromstring(text, dtype=np.int64, sep=",")] = 1
    return row


def ten_splits(files: Files, stem: str) -> tuple[Split, ...]:
    """The ten splits of a data set."""
    return tuple(_split(files, split_name(stem, i)) for i in range(SPLITS))


def _split(files: Files, name: str) -> Split:
    with np.load(files[name], allow_pickle=False) as masks:
        return Split(train=masks["train_mask"], val=masks["val_mask"], test=masks["test_mask"])
