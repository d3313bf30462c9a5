"""Halos: what METIS, blocks of nodes and a random cut leave to be exchanged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict

import numpy as np
import scipy.sparse as sp

from gcnii import data
from gcnii.cost import Labels, measured_cut
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.propagation import adjacency
from gcnii.train.clusters import metis
from gcnii.train.distributed.shard import blocks
from gcnii_paper.bench.scale.near import near_graph

REAL = ("cora", "pubmed", "amazon-photo")
MILLION = 1_000_000
PARTS = (2, 8, 32)


def graphs() -> Iterator[Graph]:
    """Three of the catalog and a million nodes that are drawn."""
    yield from (data.load(name, offline=True) for name in REAL)
    yield near_graph(MILLION, d=1)


def measured_cuts(sources: Iterator[Graph]) -> Iterator[Document]:
    """Each graph in each number of parts, cut in three ways."""
    for graph in sources:
        A = adjacency(graph)
        for parts in PARTS:
            for how, cutter in WAYS.items():
                start = time.perf_counter()
                labels = cutter(A, parts)
                if labels is None:
                    continue  # METIS is not installed
                spent = time.perf_counter() - start
                found = asdict(measured_cut(A, labels, how))
                about = {"graph": graph.name, "n": graph.n, "entries": int(A.nnz) + graph.n}
                yield about | {"parts": parts, "seconds": spent} | found


def _blocks(A: sp.csr_array, parts: int) -> Labels:
    return blocks(A.shape[0], parts)


def _random(A: sp.csr_array, parts: int) -> Labels:
    return np.random.default_rng(0).permutation(blocks(A.shape[0], parts))


WAYS: dict[str, Callable[[sp.csr_array, int], Labels | None]] = {
    "metis": metis,
    "blocks": _blocks,
    "random": _random,
}
