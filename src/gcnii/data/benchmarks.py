"""The files of the catalog's data sets, as their authors published them; an entry names its reader.

Geom-GCN (Pei et al. 2020): web graphs and Film, and ten splits for each data set

    out1_node_feature_label.txt   id, features (separated by commas; of Film, the numbers of those
                                  that are 1), label
    out1_graph_edges.txt          source, target; like the above with a header, tab-separated
    NAME_split_0.6_0.2_I.npz      three masks
    outf_nodes_space_relation_NAME_KIND.txt   two nodes (separated by a comma), `graph` or
                                  `latent_space`, and a quadrant from 0 to 3

Planetoid (Yang et al. 2016): Cora, Citeseer and Pubmed, as the authors of GCNII read them.
`ind.NAME.allx` has the features of all nodes but the test nodes, `tx` those of the test nodes in
the order of `test.index`; `ally` and `ty` have the one-hot labels, `y` those of the training nodes
only; `graph` has the neighbours of each node.

Platonov et al. 2023: `edges`, `node_features`, `node_labels` and ten masks of each kind.
Shchur et al. 2018: a zip archive of one .npz file with the adjacency matrix, bags of words and
labels, and no split.

PPI (Zitnik & Leskovec 2017, split by Hamilton et al. 2017): 24 graphs, 121 labels per protein.
For each part of train, valid and test: `PART_feats.npy` (n, 50), `PART_labels.npy` (n, 121),
`PART_graph_id.npy` (n,) and `PART_graph.json`, a networkx node-link document whose ids are the rows
of the arrays.

What the files hold is not checked: their digests are, when they are fetched.
"""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.data.converters.join import join
from gcnii.data.formats import npz
from gcnii.data.splits import stratified_split
from gcnii.errors import DataError
from gcnii.graph import Graph, Role, Split
from gcnii.graph.arrays import Array, merged, row_normalised

Files = Mapping[str, Path]  # what a reader gets: file name → path
SPLITS = 10
NODES, EDGES = "out1_node_feature_label.txt", "out1_graph_edges.txt"
WORDS = {"film": 932}  # where the file names a node's features: how many there are
# geometry: its name in the files
KINDS = {"isomap": "MDS", "poincare": "poincare", "struc2vec": "struc2vec"}


def split_name(stem: str, i: int) -> str:
    """The file name of split i, which says 60/20 though the masks are 48/32."""
    return f"{stem}_split_0.6_0.2_{i}.npz"


def neighbourhood_path(stem: str, geometry: str) -> str:
    """The path of the neighbourhoods in this geometry."""
    name = f"outf_nodes_space_relation_{stem}_{KINDS[geometry]}.txt"
    return f"geom-gcn/structural_neighborhood/{name}"


def read_neighbourhood(path: Path) -> NDArray[np.int64]:
    """(4, lines): the two nodes, 0 for the graph or 1 for the latent space, and the quadrant."""
    _, _, lines = path.read_text("ascii").partition("\n")
    numbers = lines.replace("latent_space", "1").replace("graph", "0").replace(",", "\t")
    return np.fromstring(numbers, dtype=np.int64, sep="\t").reshape(-1, 4).T


def read_web(files: Files, *, name: str) -> Graph:
    """A graph, directed: each line says that page u links to page v."""
    stem = name.removesuffix("-2022")
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


PARTS = ("allx", "tx", "ally", "ty", "graph")


class _Csr:
    """Stands in for scipy's csr_matrix, whose attributes the pickle sets."""


class _Unpickler(pickle.Unpickler):
    """Knows the names in Planetoid's files and no others, so that no foreign code can run."""

    names: Mapping[str, object] = {  # without modules, which numpy and scipy have moved
        "ndarray": np.ndarray,
        "dtype": np.dtype,
        "_reconstruct": np.empty(0).__reduce__()[0],
        "csr_matrix": _Csr,
        "defaultdict": defaultdict,
        "list": list,
    }

    def find_class(self, module: str, name: str) -> object:
        return self.names[name]


def unpickle(path: Path) -> Any:
    """The array, CSR matrix or dict in a pickle written by Python 2."""
    with path.open("rb") as stream:
        value = _Unpickler(stream, encoding="latin1").load()
    if not isinstance(value, _Csr):
        return value
    state = vars(value)
    return sp.csr_array((state["data"], state["indices"], state["indptr"]), shape=state["_shape"])


def read_public(files: Files, *, name: str) -> Graph:
    """The graph with its public split: 20 training nodes per class, 500 for val, 1000 for test."""
    X, edges, y = _planetoid(files, name)
    train, test = len(unpickle(files[f"ind.{name}.y"])), _test_index(files, name)
    roles = np.full(len(y), "", dtype=object)
    roles[:train], roles[train : train + 500], roles[test] = "train", "val", "test"
    return Graph(X=X, edges=edges, y=y, splits=(Split.of_roles(roles),), name=name)


def read_full(files: Files, *, name: str) -> Graph:
    """The graph with the ten splits of Geom-GCN (48/32/20)."""
    stem = name.removesuffix("-full")
    X, edges, y = _planetoid(files, stem)
    # paper: silent; here: the 15 unlabelled nodes of Citeseer are class 0, as the authors' argmax
    # of their zero rows makes them, because the masks of Geom-GCN contain them and the printed
    # numbers count them.
    y = np.maximum(y, 0)
    return Graph(X=X, edges=edges, y=y, splits=ten_splits(files, stem), name=name)


def _planetoid(
    files: Files, stem: str
) -> tuple[sp.csr_array, NDArray[np.int64], NDArray[np.int64]]:
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


FEW = 100  # features of a table; bags of words have more


def read_heterophilous(files: Files, *, name: str) -> Graph:
    """A graph of Platonov et al. with its ten splits; the file's name says if links are one-way."""
    (path,) = files.values()
    graph = npz.read(path, directed=path.stem.endswith("_directed"))
    X = graph.X if graph.d < FEW else sp.csr_array(graph.X)  # words of pages: mostly zeros
    return replace(graph, X=X, name=name, classes=None)


def read_zipped(files: Files, *, name: str) -> Graph:
    """A graph of Shchur et al., undirected, with ten splits drawn by the seeds 0 … 9.

    Links that the file lists in one direction only hold in both, and a word counts once however
    often it occurs, as in the code of the paper.
    """
    (path,) = files.values()
    with zipfile.ZipFile(path) as outer:
        (member,) = outer.namelist()
        content = io.BytesIO(outer.read(member))
    with zipfile.ZipFile(content) as archive:
        return _undirected(npz.Arrays(path, archive), name)


def _undirected(arrays: npz.Arrays, name: str) -> Graph:
    A, X = npz.csr(arrays, "adj_"), npz.csr(arrays, "attr_")
    y = arrays["labels"]
    return Graph(
        X=(X > 0).astype(np.float32),
        edges=merged(np.stack(A.nonzero())),
        y=y,
        splits=tuple(stratified_split(y, seed) for seed in range(SPLITS)),
        name=name,
        nodes=_texts(arrays, "node_names"),
        classes=_texts(arrays, "class_names"),
        features=_texts(arrays, "attr_names"),
    )


def _texts(arrays: npz.Arrays, name: str) -> tuple[str, ...] | None:
    """Names; None if there are none, or only Python objects, which are not read."""
    try:
        return tuple(map(str, arrays[name]))
    except DataError:
        return None


PPI_ROLES: dict[str, Role] = {"train": "train", "valid": "val", "test": "test"}


def read_ppi(files: Files, *, name: str = "ppi") -> Graph:
    """All graphs as one block-diagonal Graph, split by whole graphs.

    Features are used as shipped; upstream is believed to have standardised them already.
    """
    graphs = [(graph, role) for part, role in PPI_ROLES.items() for graph in _graphs(files, part)]
    return join([graph for graph, _ in graphs], [role for _, role in graphs], name=name)


def _graphs(files: Files, part: str) -> list[Graph]:
    """The graphs of one part, in the order of their ids."""
    X, y, graph_id = (
        np.load(files[f"{part}_{kind}.npy"], allow_pickle=False)
        for kind in ("feats", "labels", "graph_id")
    )
    links = json.loads(files[f"{part}_graph.json"].read_bytes())["links"]
    edges = np.array([(link["source"], link["target"]) for link in links], np.int64).T
    return [_block(X, edges, y, graph_id == one) for one in np.unique(graph_id)]


def _block(X: Array, edges: NDArray[np.int64], y: Array, inside: NDArray[np.bool_]) -> Graph:
    row = np.cumsum(inside) - 1  # row of the arrays → row of this graph
    own = row[edges[:, inside[edges[0]]]]
    return Graph(X=X[inside].astype(np.float32), edges=merged(own), y=y[inside])
