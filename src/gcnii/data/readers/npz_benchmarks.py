"""Benchmarks that were published as .npz files, with the preparation that the field gives them.

Platonov et al. 2023: `edges`, `node_features`, `node_labels` and ten masks of each kind.
Shchur et al. 2018: a zip archive of one .npz file with the adjacency matrix, bags of words and
labels, and no split.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from gcnii.data.entry import Files
from gcnii.data.readers import npz
from gcnii.data.splits import stratified_split
from gcnii.errors import DataError
from gcnii.graph import Graph
from gcnii.graph.arrays import merged

SPLITS = 10
FEW = 100  # features of a table; bags of words have more


def read_heterophilous(files: Files, *, name: str, directed: bool = False) -> Graph:
    """A graph of Platonov et al. with its ten splits; `directed` says whether links are one-way."""
    (path,) = files.values()
    graph = npz.read(path, directed=directed)
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
