"""P̃ of a large graph for prediction: made a block of rows at a time, and without its transpose.

The numbers are those of `Adjacency`, to the last bit.  That one holds what training needs as
well: A apart from its loops, the row of each entry, and the transpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.graph import Graph
from gcnii.graph.weights import EdgeWeights
from gcnii.propagation.adjacency import (
    Direction,
    Loops,
    Norm,
    adjacency,
    counted,
    inverse_degrees,
    normalised,
)
from gcnii.propagation.sparse import Pattern, Sparse, row_sums

ENTRIES = 1 << 22  # at a time
NUMBERS = 1 << 22  # of a block of rows of X or H: 16 MiB in float32


def fixed_matrix(
    graph: Graph,
    direction: Direction,
    loops: Loops,
    norm: Norm,
    dtype: torch.dtype,
    edge_weights: EdgeWeights = "raw",
) -> Sparse:
    """P̃ for products alone; `can_be_fixed` must hold."""
    if graph.weights is None or edge_weights == "none":
        pattern, values, own = _unweighted(graph, direction, loops, dtype)
    else:
        pattern, values, own = _weighted(graph, direction, loops, edge_weights, dtype)
    degrees = torch.empty(graph.n, dtype=dtype)
    for part in _parts(pattern):
        A = values[part.entries]
        A[part.diagonal] = own[part.nodes]
        A.copy_(counted(norm, A, part.diagonal.to(dtype), looped=loops != "none"))
        degrees[part.nodes] = row_sums(part.pattern, A)
    inverse = inverse_degrees(degrees)
    for part in _parts(pattern):
        A, I = values[part.entries], part.diagonal.to(dtype)
        A.copy_(normalised(norm, A, I, part.row_of, part.pattern.columns, inverse, inverse))
    return Sparse(pattern, values)


def can_be_fixed(loops: Loops, norm: Norm) -> bool:
    """Whether the degrees of rows are enough: without loops, `symmetric` needs those of columns."""
    return loops != "none" or norm in ("walk", "mean")


def block_height(n: int, width: int) -> int:
    """Rows of a block, for n rows of this width: all blocks are of about one height.

    Of a few rows, a matrix product rounds in another way than of many.
    """
    most = max(1, NUMBERS // max(width, 1))
    return -(-n // -(-n // most))


def row_blocks(P: Sparse, height: int) -> Iterator[tuple[slice, Sparse]]:
    """P in blocks of `height` rows, which share its memory, and where they are."""
    for start in range(0, P.shape[0], height):
        part = _Part.of(P.pattern, start, min(start + height, P.shape[0]))
        yield part.nodes, Sparse(part.pattern, P.values[part.entries])


class _Part(NamedTuple):
    """Some rows of a pattern, and which nodes and entries of the whole they are."""

    pattern: Pattern
    nodes: slice
    entries: slice

    @classmethod
    def of(cls, pattern: Pattern, start: int, stop: int) -> _Part:
        first, last = pattern.rows[[start, stop]].tolist()
        rows = pattern.rows[start : stop + 1] - first
        shape = stop - start, pattern.shape[1]
        part = Pattern(rows, pattern.columns[first:last], shape)
        return cls(part, slice(start, stop), slice(first, last))

    @property
    def row_of(self) -> Tensor:
        """(entries,) the node in whose row each entry is."""
        first: int = self.nodes.start
        return self.pattern.row_of + first

    @property
    def diagonal(self) -> Tensor:
        """(entries,) whether it is on the diagonal."""
        return self.row_of == self.pattern.columns


def _parts(pattern: Pattern) -> Iterator[_Part]:
    """Rows of up to ENTRIES entries; one row, if it has more."""
    start, n = 0, pattern.shape[0]
    while start < n:
        most = pattern.rows[start] + ENTRIES
        stop = max(int(torch.searchsorted(pattern.rows, most, right=True)) - 1, start + 1)
        yield _Part.of(pattern, start, stop)
        start = stop


def _unweighted(
    graph: Graph, direction: Direction, loops: Loops, dtype: torch.dtype
) -> tuple[Pattern, Tensor, Tensor]:
    """Ã's entries, A's values there but for the diagonal's, which are apart (n,)."""
    n, (u, v) = graph.n, graph.edges
    own = np.zeros(n)
    if loops == "keep":
        own[u[u == v]] = 1
    out, back = (u, v), (v, u)
    ways = [back if direction == "in" else out]
    if direction == "both" or not graph.directed:
        ways = [out, back]
    rows, columns = (_with_diagonal([way[end] for way in ways], n) for end in (0, 1))
    # One byte a value: all that counts is where they are.
    A = sp.csr_array((np.ones(len(rows), bool), (rows, columns)), (n, n))
    values = torch.ones(len(A.indices), dtype=dtype)
    return _shared(A), values, torch.from_numpy(own).to(dtype)


def _with_diagonal(ends: list[NDArray[np.int64]], n: int) -> NDArray[np.int32]:
    """These ends of edges, and each node once."""
    return np.concatenate([*ends, np.arange(n)], dtype=np.int32, casting="unsafe")


def _weighted(
    graph: Graph,
    direction: Direction,
    loops: Loops,
    edge_weights: EdgeWeights,
    dtype: torch.dtype,
) -> tuple[Pattern, Tensor, Tensor]:
    """The same where edges have weights."""
    A = adjacency(graph, direction, loops, edge_weights)
    own = torch.from_numpy(A.diagonal()).to(dtype)
    whole = sp.csr_array(A + sp.eye_array(graph.n))
    whole.sort_indices()
    return _shared(whole), torch.from_numpy(whole.data).to(dtype), own


def _shared(A: sp.csr_array) -> Pattern:
    """Its pattern, without a copy."""
    rows, columns = (torch.from_numpy(array).int() for array in (A.indptr, A.indices))
    return Pattern(rows, columns, (int(A.shape[0]), int(A.shape[1])))
