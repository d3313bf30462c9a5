"""from_scipy: a Graph of an adjacency matrix and a feature matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gcnii.data.labels import array_labels, array_numbers, splits_or_stratified, target_names
from gcnii.errors import GraphError
from gcnii.graph import Graph, Split
from gcnii.graph.arrays import merged, own, true_or_false
from gcnii.graph.weights import merged_weighted

Matrix: TypeAlias = sp.sparray | sp.spmatrix | ArrayLike
ROUNDING = 1e-5  # by which the weights of an edge's two directions may differ


def from_scipy(
    A: Matrix,
    X: Matrix,
    y: ArrayLike | None = None,
    *,
    directed: bool | None = None,
    splits: Split | Sequence[Split] | None = (),
    seed: int = 0,
    nodes: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    name: str = "graph",
) -> Graph:
    """Make a graph from an adjacency matrix and features, sparse or dense.

    Parameters
    ----------
    A : (n, n) matrix
        A[u, v] is the weight of the edge u → v; if all are 1, the graph has no weights.
    X : (n, d) matrix
        The features.
    y : array, optional
        (n,) numbers or texts, one per class, or (n, k) zeros and ones; -1, NaN and None are
        unknown.  With `targets`, (n,) or (n, q) numbers to predict.
    directed : bool or None
        Whether edges are one-way.  None: A must be symmetric.  False: an edge may be listed in one
        direction or in both.
    splits : Split or list of Split
        The splits; default: the labelled nodes of each class are split 60/20/20.
    seed : int
        The seed of that split.
    nodes : list of str, optional
        The names of the nodes.
    classes : list of str, optional
        The names of the classes.
    targets : list of str, optional
        The names of the numbers to predict, one for each column of y, in the place of classes.
    features : list of str, optional
        The names of the features.
    name : str
        The name of the graph.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import gcnii
    >>> import numpy as np
    >>> ring = np.roll(np.eye(12), 1, axis=0)
    >>> gcnii.from_scipy(ring + ring.T, np.ones((12, 2)), y=[0, 1] * 6)
    Graph(graph: 12 nodes, 12 undirected edges, 2 features, 2 classes)
    """
    X = X if sp.issparse(X) else own(X, "X")
    shape = np.shape(X)
    if len(shape) != 2:
        raise GraphError(f"X must be a matrix with one row per node, got shape {shape}")
    matrix = _adjacency(A, shape[0])
    if directed is not None:
        directed = true_or_false(directed, "directed")
    if directed is None and not is_symmetric(matrix):
        raise GraphError(
            "A is not symmetric; say directed=True if its edges are one-way, or directed=False "
            "if each edge is in A in one direction only"
        )
    edges, weights = edges_of(matrix, directed=bool(directed))
    n = shape[0]
    numbers = target_names(targets)
    labels = array_numbers(y, n, numbers) if numbers else array_labels(y, n, classes)
    return Graph(
        X=X,
        edges=edges,
        weights=weights,
        **labels._asdict(),
        splits=splits_or_stratified(splits, labels, seed),
        directed=bool(directed),
        name=name,
        nodes=nodes,  # type: ignore[arg-type] # Graph takes any list of names
        features=features,  # type: ignore[arg-type]
    )


def _adjacency(matrix: Matrix, n: int) -> sp.csr_array:
    """A without zeros; GraphError unless it is an (n, n) matrix of numbers."""
    A = sp.coo_array(matrix) if sp.issparse(matrix) else own(matrix, "A")
    if A.shape != (n, n):
        raise GraphError(
            f"A must have one row and one column per node, ({n}, {n}) for this X, got {A.shape}"
        )
    if A.dtype.kind not in "iubf":
        raise GraphError(f"A must hold numbers, got {A.dtype}")
    found = sp.csr_array(A, dtype=np.float64, copy=True)
    found.sum_duplicates()
    found.eliminate_zeros()
    return found


def is_symmetric(A: sp.csr_array) -> bool:
    """Whether A[u, v] = A[v, u], up to rounding."""
    both = sp.csr_array(A.T)
    return not (abs(A - both) > ROUNDING * abs(A).maximum(abs(both))).nnz


def edges_of(
    A: sp.csr_array, *, directed: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """The edges of A, each once, and their weights if they are not all 1."""
    entries = sp.coo_array(A)
    edges = np.stack([entries.row, entries.col]).astype(np.int64)
    if (entries.data == 1).all():
        return merged(edges, directed=directed), None
    return merged_weighted(edges, entries.data, directed=directed)
