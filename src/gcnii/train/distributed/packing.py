"""pack: a partitioned graph, in a folder from which each process reads its own part."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from gcnii.data.readers.parts.write import Numbering, refuse_folder, write
from gcnii.errors import InputError
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.graph.piece import Numbers
from gcnii.propagation import Direction, adjacency, with_diagonal
from gcnii.train.distributed.cut import cut
from gcnii.train.presets.traits import Traits
from gcnii.train.scaling import choose

ONE_WAY: tuple[Direction, ...] = ("out", "in")  # in which a training may gather over such links


def pack(graph: Graph, folder: Path, parts: int) -> Document:
    """Write a graph in this number of parts, cut as `torchrun` would cut it; return its list.

    Beside the graph, memory holds its links twice and one part at a time.
    """
    refuse_folder(folder, graph.source)
    if not 1 <= parts <= graph.n:
        raise InputError(f"{graph.name} has {graph.n} nodes and cannot be cut into {parts} parts")
    both, _ = with_diagonal(adjacency(graph, "both"))
    owner = cut(both, parts) if parts > 1 else np.zeros(graph.n, np.int64)
    numbering = Numbering(_first(graph, both), pair_numbers(both), both.indptr.astype(np.int64))
    known: Document = {"traits": asdict(Traits.of(graph)), "scale": choose(graph.X)}
    if graph.weighted:
        known["weights"] = graph.typical_weights.tolist()
    return write(graph, folder, owner, numbering, known)


def _first(graph: Graph, both: sp.csr_array) -> dict[str, Numbers]:
    """Where the rows of Ã begin, for each direction that a training may choose."""
    first: dict[str, Numbers] = {"both": both.indptr[:-1].astype(np.int64)}
    for direction in ONE_WAY if graph.directed else ():
        one, _ = with_diagonal(adjacency(graph, direction))
        first[direction] = one.indptr[:-1].astype(np.int64)
    return first


def pair_numbers(both: sp.csr_array) -> Numbers:
    """(entries,) of a symmetric pattern, sorted: a number that (u, v) and (v, u) share.

    Pairs u ≤ v are numbered in the order of their codes u n + v, which is that of the entries.
    """
    row = np.repeat(np.arange(both.shape[0]), np.diff(both.indptr))
    upper = both.indices >= row
    numbers = np.cumsum(upper, dtype=np.int64)  # from 1, because a sparse sum keeps no zeros
    U = sp.csr_array((numbers[upper], (row[upper], both.indices[upper])), both.shape)
    whole = sp.csr_array(U + sp.triu(U, 1).T)
    whole.sort_indices()
    return np.asarray(whole.data - 1, np.int64)
