"""Edges without duplicates, and features whose rows sum to one."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gcnii.graph.weights import check_weights, sum_repeated


def merged(edges: NDArray[np.int64], *, directed: bool = False) -> NDArray[np.int64]:
    """The (2, m) edges sorted and without duplicates; self-loops are kept.

    An undirected edge is kept in one direction, from the smaller id to the larger.
    """
    u, v = edges.astype(np.int64)
    if not directed:
        u, v = np.minimum(u, v), np.maximum(u, v)
    size = int(edges.max(initial=0)) + 1
    codes = np.sort(u * size + v)  # np.unique takes ten times as long
    return np.stack(np.divmod(codes[np.diff(codes, prepend=-1) > 0], size))


def merged_weighted(
    edges: NDArray[np.int64],
    weights: ArrayLike,
    *,
    directed: bool = False,
    nodes: Sequence[str] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """`merged` for weighted edges: those of duplicates add up, an edge of weight 0 is left out.

    The two directions of an undirected edge count once, and must have the same weight.

    nodes  names, for errors
    """
    edges = edges.astype(np.int64)
    each = check_weights(weights, edges, nodes)
    edges, total = sum_repeated(edges, each, directed=directed, nodes=nodes)
    return edges[:, total > 0], total[total > 0]


def row_normalised(X: ArrayLike | sp.sparray) -> sp.csr_array:
    """X (n, d) with each row divided by its sum, as a new float32 CSR; rows of zeros stay zero."""
    # A copy: without it the index arrays are the caller's, and eliminate_zeros changes them.
    X = sp.csr_array(X, dtype=np.float64, copy=True)
    X.eliminate_zeros()
    sums = X.sum(1)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums != 0)
    return sp.csr_array(sp.diags_array(scale) @ X, dtype=np.float32)
