"""propagation_matrix: P̃ of a graph, an edge_index or a sparse matrix."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.errors import GraphError
from gcnii.graph import Graph
from gcnii.graph.weights import EdgeWeights
from gcnii.propagation.adjacency import (
    Direction,
    GraphAdjacency,
    Loops,
    Norm,
    adjacency,
    oriented,
)
from gcnii.propagation.sparse import Sparse

Source: TypeAlias = Graph | Tensor | NDArray[np.int64] | sp.sparray | sp.spmatrix

HOW = (
    "make P with gcnii.propagation_matrix(graph), or of an edge_index with "
    "gcnii.propagation_matrix(edge_index, n)"
)
EXPECTED = (
    "a Graph, an edge_index (2, m) with the number of nodes, or a scipy or torch sparse matrix"
)


def propagation_matrix(
    source: Source,
    n: int | None = None,
    *,
    directed: bool = False,
    direction: Direction = "out",
    loops: Loops = "keep",
    norm: Norm = "symmetric",
    edge_weights: EdgeWeights = "raw",
    dtype: torch.dtype | None = None,
) -> Sparse:
    """P̃ = D̃^-1/2 Ã D̃^-1/2 with Ã = A + I and D̃ the row sums of Ã; or another norm of it.

    Parameters
    ----------
    source : Graph, (2, m) array or tensor, or sparse matrix
        A Graph, whose edge weights, if it has any, are A's entries; an edge_index (2, m) of
        integers, for which `n` is the number of nodes; or a scipy or torch sparse matrix A (n, n),
        in which node u gathers from v with the weight A[u, v].
    n : int, optional
        Number of nodes of an edge_index.
    directed : bool
        Whether the edges of an edge_index are one-way; by default each joins both ends, and may be
        listed once or in both directions.
    direction : {"out", "in", "both"}
        Of one-way edges u → v: u gathers from v ("out"), v from u ("in", as in PyG), or each from
        the other ("both"; with the larger weight, if both directions have one).
    loops : {"keep", "remove", "none"}
        "keep": a self-loop of the graph, of weight 1 or its own, is added to the 1 on Ã's diagonal;
        "remove": the diagonal is 1 everywhere; "none": it is 0, and P̃ = D^-1/2 A D^-1/2, in a
        directed graph with row sums on the left and column sums on the right.
    norm : str
        See `GraphAdjacency`.
    edge_weights : {"raw", "median", "log", "rank", "none", "auto"}
        What the weights of a Graph count: "raw": as they are, so that their unit matters, because a
        self-loop counts 1; "median": divided by their median; "log": log2(1 + w / median); "rank":
        by their rank, from 0 to 2; "none": 1; "auto": by their rank if they are skewed, else by the
        median.
    dtype : torch.dtype, optional
        Default: torch's default dtype, as models have it.

    Returns
    -------
    Sparse
        What a model takes as P; `P @ H`, `P.to("cuda")`, `P.to_dense()`.

    Examples
    --------
    >>> import gcnii, torch
    >>> gcnii.propagation_matrix(torch.tensor([[0, 1], [1, 2]]), n=3).to_dense().shape
    torch.Size([3, 3])
    """
    device = source.device if isinstance(source, Tensor) else torch.device("cpu")
    A = _adjacency(source, n, directed, direction, loops, edge_weights)
    return GraphAdjacency.of(A, norm, loops).matrix().to(device, dtype or torch.get_default_dtype())


def _adjacency(
    source: Source,
    n: int | None,
    directed: bool,
    direction: Direction,
    loops: Loops,
    edge_weights: EdgeWeights,
) -> sp.csr_array:
    match source:
        case Graph():
            _check_size(source.n, n)
            return adjacency(source, direction, loops, edge_weights)
        case Tensor(layout=torch.sparse_coo | torch.sparse_csr | torch.sparse_csc):
            return oriented(_weights(_scipy(source), n), direction, loops)
        case sp.sparray() | sp.spmatrix():
            return oriented(_weights(source, n), direction, loops)
        case Tensor() | np.ndarray():
            graph = _graph(np.asarray(source.cpu() if isinstance(source, Tensor) else source), n)
            A = adjacency(graph, direction, loops)
            return A if directed else oriented(A, "both", loops)
    raise GraphError(f"propagation_matrix takes {EXPECTED}; got {type(source).__name__}")


def _graph(edges: NDArray[np.int64], n: int | None) -> Graph:
    """The edges as one-way edges of a graph, which checks them."""
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        came = f"{edges.dtype} of shape {edges.shape}"
        raise GraphError(f"propagation_matrix takes {EXPECTED}; got {came}")
    if n is None:
        raise GraphError(
            "an edge_index does not tell the number of nodes; give it: "
            "gcnii.propagation_matrix(edge_index, n)"
        )
    return Graph(X=np.zeros((n, 1)), edges=edges, directed=True)


def _weights(matrix: sp.sparray | sp.spmatrix, n: int | None) -> sp.csr_array:
    A = sp.csr_array(matrix, dtype=np.float64, copy=True)
    if A.shape[0] != A.shape[1]:
        raise GraphError(f"an adjacency matrix must be square, got shape {A.shape}")
    _check_size(A.shape[0], n)
    if not np.isfinite(A.data).all() or (A.data < 0).any():
        raise GraphError("an adjacency matrix must hold finite weights of 0 or more")
    A.sum_duplicates()
    A.eliminate_zeros()
    return A


def _check_size(found: int, n: int | None) -> None:
    if n is not None and n != found:
        raise GraphError(f"the graph has {found} nodes, but n is {n}; leave n out")


def _scipy(matrix: Tensor) -> sp.coo_array:
    coo = matrix.detach().cpu().to_sparse_coo().coalesce()
    return sp.coo_array((coo.values().numpy(), coo.indices().numpy()), tuple(coo.shape))
