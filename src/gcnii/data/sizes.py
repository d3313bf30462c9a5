"""The sizes of graphs: of one at hand, and of well-known ones, which need not be at hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gcnii.data.catalog import CATALOG
from gcnii.data.entry import Counts
from gcnii.graph import Graph

OGB = "ogbn-"  # what names of the Open Graph Benchmark begin with, and may be given without
# As published: Hu et al. 2020 (OGB); Hamilton et al. 2017 (reddit).  A link counts once.
KNOWN = {
    "ogbn-arxiv": Counts(169_343, 1_166_243, 128, 40),
    "ogbn-products": Counts(2_449_029, 61_859_140, 100, 47),
    "ogbn-papers100m": Counts(111_059_956, 1_615_685_872, 128, 172),
    "reddit": Counts(232_965, 57_307_946, 602, 41),
}
# Of the catalog's sparse features, the share that is stored where the files are not at hand.
DENSITY = 0.02


@dataclass(frozen=True, kw_only=True)
class Size:
    """n nodes with d features in k classes.

    entries  of P̃: each link twice, and a loop for each node
    stored   numbers of X: n · d, or of a sparse X those that are not zero
    sparse   whether X is
    exact    False where it is from counts alone: links that are listed in both directions then
             count twice
    """

    n: int
    entries: int
    d: int
    k: int
    stored: int
    sparse: bool = False
    exact: bool = True

    @property
    def degree(self) -> float:
        """Entries of a row of P̃, on average."""
        return self.entries / self.n


def size_of(graph: Graph) -> Size:
    """The size of a graph at hand; of a directed one, each node gathers over one direction."""
    entries = (1 if graph.directed else 2) * graph.m + graph.n
    X, sparse = graph.X, isinstance(graph.X, sp.csr_array)
    stored = int(X.nnz) if isinstance(X, sp.csr_array) else int(np.prod(X.shape))
    return Size(n=graph.n, entries=entries, d=graph.d, k=graph.k, stored=stored, sparse=sparse)


def counted(name: str) -> Size | None:
    """The size of a graph of the catalog, or of another well-known one; None if it is not known."""
    if name in CATALOG and (counts := CATALOG[name].counts).edges is not None:
        # Files of benchmarks are bags of words; what is generated is dense.
        return _of_counts(counts, DENSITY if CATALOG[name].files else 1.0)
    low = name.lower()
    found = KNOWN.get(low) or KNOWN.get(f"{OGB}{low}")
    return _of_counts(found, 1.0) if found else None


def _of_counts(counts: Counts, density: float) -> Size:
    n, d = counts.nodes, counts.features
    entries, stored = 2 * (counts.edges or 0) + n, round(n * d * density)
    known = {"n": n, "entries": entries, "d": d, "k": counts.classes, "stored": stored}
    return Size(**known, sparse=density < 1, exact=False)
