"""Do types of edges help?  ACM, DBLP and IMDB of the HGB benchmark (Lv et al. 2021).

    python -m gcnii_paper.hgb FOLDER [GRAPH …] [--seeds 5] [--out results/typed]

trains GCNII, with the settings that a graph of one's own has, on ACM.zip, DBLP.zip and IMDB.zip of
FOLDER: once with `edge_types use`, once with `ignore`, once per seed.  Training and test labels are
the benchmark's, and each seed draws its own fifth of the training labels to validate on.
results/typed becomes a table for docs/.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.graph import Graph, Split
from gcnii.graph.graph import hold_out

FIFTH = 0.2


def hgb_graph(path: Path, seeds: int = 5) -> Graph:
    """The graph of a zip file of HGB, with a split for each seed.

    Links have the types of link.dat, each with its reverse as another, so that a node gathers from
    what its links of a type point to.  X has a block of columns for each type of nodes: those that
    they have in node.dat, and one for each node of a type that has none.
    """
    with zipfile.ZipFile(path) as archive:
        folder = path.stem

        def table(name: str) -> list[list[str]]:
            text = archive.read(f"{folder}/{name}").decode("utf-8", "replace")
            return [line.split("\t") for line in text.splitlines() if line]

        nodes, links = table("node.dat"), np.array([row[:3] for row in table("link.dat")], np.int64)
        labels = {role: table(name) for role, name in LABELS.items()}
        about = json.loads(archive.read(f"{folder}/info.dat"))
    kinds = about["link.dat"]["link type"]
    names = tuple(kinds[str(t)]["meaning"] for t in range(len(kinds)))
    y, train = _labels(labels, len(nodes))
    tested = (y >= 0).reshape(len(y), -1).all(1) & ~train
    return Graph(
        X=_features(nodes),
        edges=links[:, :2].T,
        edge_types=links[:, 2],
        edge_type_names=names,
        directed=True,
        y=y,
        splits=tuple(_split(y, train, tested, seed) for seed in range(seeds)),
        name=folder,
    )


# Those of label.dat.test_full are drawn by chance: no model finds more than frequencies in them.
LABELS = {"train": "label.dat", "test": "label.dat.test"}


def _labels(
    tables: dict[str, list[list[str]]], n: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """y, (n,) or (n, k) where nodes have several labels; (n,) which nodes are for training."""
    found = {
        role: {int(row[0]): [int(one) for one in row[3].split(",")] for row in rows}
        for role, rows in tables.items()
    }
    each = {node: own for by_node in found.values() for node, own in by_node.items()}
    k = 1 + max(max(own) for own in each.values())
    several = any(len(own) > 1 for own in each.values())
    y = np.full((n, k) if several else n, -1)
    for node, own in each.items():
        y[node] = np.isin(np.arange(k), own) if several else own[0]
    train = np.zeros(n, bool)
    train[list(found["train"])] = True
    return y, train


def _split(
    y: NDArray[np.int64], train: NDArray[np.bool_], test: NDArray[np.bool_], seed: int
) -> Split:
    """A fifth of the training nodes of each class, drawn by the seed, validates."""
    strata = y if y.ndim == 1 else np.where((y >= 0).all(1), 0, -1)
    val = hold_out(np.where(train, strata, -1), FIFTH, np.random.default_rng(seed))
    return Split(train=train & ~val, val=val, test=test)


def _features(nodes: list[list[str]]) -> sp.csr_array:
    """(n, …) a block of columns for each type of nodes."""
    kinds = np.array([int(row[2]) for row in nodes])
    order, blocks = [], []
    for kind in range(kinds.max() + 1):
        own = np.flatnonzero(kinds == kind)
        order.append(own)
        given = [nodes[i][3] for i in own if len(nodes[i]) > 3]
        if len(given) == len(own):
            blocks.append(sp.csr_array(np.array([row.split(",") for row in given], np.float32)))
        else:
            blocks.append(sp.eye_array(len(own), dtype=np.float32, format="csr"))
    stacked = sp.block_diag(blocks, "csr")
    return sp.csr_array(stacked[np.argsort(np.concatenate(order))])
