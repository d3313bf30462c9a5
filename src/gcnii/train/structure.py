"""Structure columns: what its links alone say of a node, beside its features.

degree  log(1 + d) of its in-degree and its out-degree, which are equal in an undirected graph
walk    these, the logarithm of its PageRank, and the probability that a random walk along links in
        both directions is back at the node after two steps, and after three: 0 without triangles

Each is computed on the graph that is asked, and a node's value depends on its surroundings alone,
not on how nodes are numbered or on how many there are: a column means the same on another graph.
Eigenvectors of the Laplacian do not, and are left out: their signs, and their bases where
eigenvalues are equal, are arbitrary, so that weights that fit those of one graph fit no other.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.graph import Graph
from gcnii.propagation import adjacency

Structure = Literal["none", "degree", "walk"]
Floats: TypeAlias = NDArray[np.float64]

COLUMNS = ("in-degree", "out-degree", "PageRank", "return in 2 steps", "return in 3 steps")
WIDTHS: dict[Structure, int] = {"none": 0, "degree": 2, "walk": len(COLUMNS)}  # the first of them
DAMPING, STEPS = 0.85, 50  # of PageRank; 0.85^50 is below 0.001
MOST = 1 << 24  # products of two entries at a time: 200 MiB


def structure_columns(graph: Graph, kind: Structure) -> Floats | None:
    """(n, WIDTHS[kind]) the columns before they are scaled; None of `none`.

    Repeated edges count once, and neither loops nor edge weights count.
    """
    if kind == "none":
        return None
    A = adjacency(graph, "out", "remove", "none")
    columns = [np.log1p(A.sum(0)), np.log1p(A.sum(1))]
    if kind == "walk":
        both = adjacency(graph, "both", "remove", "none") if graph.directed else A
        columns += [np.log(_pagerank(A)), *_returns(both)]
    return np.column_stack(columns)


def _pagerank(A: sp.csr_array) -> Floats:
    """(n,) n times PageRank, as far as walks go on: one that reaches a node without links ends.

    So a graph beside this one changes nothing.
    """
    out = A.sum(1)
    P = sp.csr_array(A.T @ sp.diags_array(1 / np.maximum(out, 1)))
    rank = np.ones(A.shape[0])
    for _ in range(STEPS):
        rank = 1 - DAMPING + DAMPING * (P @ rank)
    return rank


def _returns(A: sp.csr_array) -> tuple[Floats, Floats]:
    """(n,) diag(P²) and diag(P³) of P = D⁻¹A, exactly; A is symmetric, of zeros and ones.

    P is similar to S = D^-1/2 A D^-1/2, so that diag(Pᵏ) = diag(Sᵏ).  A closed walk of three steps
    is a triangle, in one of two directions.  Links point from the lower to the higher degree in U,
    in which hubs have few: each triangle i → j → k, i → k is found without their pairs of
    neighbours.
    """
    degree = A.sum(1)
    root = sp.diags_array(1 / np.sqrt(np.maximum(degree, 1)))
    S = sp.coo_array(root @ A @ root)
    two = np.bincount(S.row, S.data**2, len(degree)).astype(np.float64)  # of no link, integers
    rank = np.empty(len(degree), np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(len(degree))
    up = rank[S.row] < rank[S.col]
    U = sp.csr_array((S.data[up], (S.row[up], S.col[up])), S.shape)
    first, _ = _closed(U, U)
    second, third = _closed(sp.csr_array(U.T), U)
    return two, 2 * (first + second + third)


def _closed(left: sp.csr_array, U: sp.csr_array) -> tuple[Floats, Floats]:
    """(n,) the sums of the rows and of the columns of (left U) ∘ U, a block of rows at a time."""
    n = U.shape[0]
    products = (left != 0) @ np.diff(U.indptr)
    block = np.cumsum(products) // MOST
    rows, columns = np.zeros(n), np.zeros(n)
    for some in np.split(np.arange(n), np.flatnonzero(np.diff(block)) + 1):
        part = (left[some] @ U).multiply(U[some])
        rows[some] = part.sum(1)
        columns += part.sum(0)
    return rows, columns
