"""Who gathers from whom in a graph, and the propagation matrix P̃ made from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.errors import GraphError, InputError
from gcnii.graph import Graph
from gcnii.graph.types import EdgeTypes
from gcnii.graph.weights import EdgeWeights, weighed
from gcnii.propagation.sparse import Pattern, RowNumbers, Sparse, row_sums
from gcnii.propagation.types import TypedMatrix

Direction = Literal["out", "in", "both"]
Geometry = Literal["none", "isomap", "poincare", "struc2vec"]
Loops = Literal["keep", "remove", "none"]
Norm = Literal["symmetric", "walk", "symmetric+I", "first-order", "mean", "enhanced"]

BOTH_SIDES: tuple[Norm, ...] = ("symmetric", "symmetric+I", "first-order")
OWN_LOOPS: tuple[Norm, ...] = ("symmetric+I", "first-order", "enhanced")


def adjacency(
    graph: Graph,
    direction: Direction = "out",
    loops: Loops = "keep",
    edge_weights: EdgeWeights = "raw",
    kind: int | None = None,
) -> sp.csr_array:
    """A (n, n): A[u, v] is the weight with which u gathers from v, 0 if it does not.

    Without edge weights it is 1, however often an edge is repeated; with them, those of a repeated
    edge add up, and the sum counts as `edge_weights` says.

    kind  the type of edges that count; None: all
    """
    # paper: undirected graphs without self-loops; here: the authors' code, which keeps both as the
    # files have them.
    which = np.s_[:] if kind is None else graph.edge_types == kind
    weights = None if graph.weights is None else graph.weights[which]
    A = of_edges(graph.edges[:, which], weights, graph.n)
    if weights is not None and edge_weights != "raw":
        A.data = weighed(A.data, edge_weights, graph.typical_weights)
    return oriented(A, direction if graph.directed else "both", loops)


def adjacency_of_types(
    graph: Graph, direction: Direction, loops: Loops, edge_weights: EdgeWeights
) -> list[sp.csr_array]:
    """`adjacency` of the edges of each type."""
    how = direction, loops, edge_weights
    return [adjacency(graph, *how, kind) for kind in range(graph.type_count)]


def of_edges(edges: NDArray[np.int64], weights: NDArray[np.float64] | None, n: int) -> sp.csr_array:
    """A (n, n) of edges (2, m) as they are listed, from row 0 to row 1."""
    u, v = edges
    A = sp.csr_array((np.ones(len(u)) if weights is None else weights, (u, v)), (n, n))
    if weights is None:
        A.data[:] = 1
    return A


def oriented(A: sp.csr_array, direction: Direction, loops: Loops) -> sp.csr_array:
    """A as it is ("out"), transposed ("in"), or the larger of both; with its loops only if kept."""
    if direction == "both":
        A = sp.csr_array(A.maximum(A.T))
    elif direction == "in":
        A = sp.csr_array(A.T)
    if loops != "keep":
        A = sp.csr_array(A - sp.diags_array(A.diagonal()))
        A.eliminate_zeros()
    return A


def with_diagonal(
    A: sp.csr_array, rows: NDArray[np.int64] | None = None
) -> tuple[sp.csr_array, NDArray[np.bool_]]:
    """A on the entries of A + I, sorted; and (entries,) whether an entry is on the diagonal.

    rows  the numbers of A's rows, where it has but some of n
    """
    count, n = A.shape
    at = np.arange(n) if rows is None else rows
    # A value of A's own on the diagonal, w + 1, is put right below: w + 1 - 1 would round.
    I = sp.csr_array((np.ones(count), at, np.arange(count + 1)), (count, n))
    whole = sp.csr_array(A + I)
    whole.sort_indices()
    diagonal = np.repeat(at, np.diff(whole.indptr)) == whole.indices
    whole.data[diagonal] = A.diagonal() if rows is None else A[np.arange(count), rows]
    return whole, diagonal


def refuse_loops(norm: Norm, loops: Loops) -> None:
    """Raise InputError if a norm needs the loops that are left out."""
    if loops == "none" and norm in OWN_LOOPS:
        raise InputError(
            f"norm {norm} gives every node a self-loop, which loops none leaves out; use norm "
            "symmetric, walk or mean"
        )


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Who gathers from whom, with weights, and how P is made from it.

    It is A on the entries of Ã = A + I, so that some can be dropped and the rest normalised again.

    pattern   the entries of Ã
    weights   (entries,) A's values there
    diagonal  (entries,) 1 on the diagonal, 0 elsewhere
    looped    whether Ã has I; without, Ã = A, on the same entries
    norm      what `matrix` makes from them:

        symmetric     P̃ = D̃^-1/2 Ã D̃^-1/2, where D̃ has the row sums; unless `looped`, those of the
                      columns on the right, because a node may have links to it and none from it
        walk          D̃^-1 Ã
        symmetric+I   P̃ + I
        first-order   I + D^-1/2 A D^-1/2
        mean          D^-1 A, the mean of the neighbours
        enhanced      D̃^-1 Ã + diag(D̃^-1 Ã), of Cluster-GCN
    """

    pattern: Pattern
    weights: Tensor
    diagonal: Tensor
    norm: Norm = "symmetric"
    looped: bool = True

    @classmethod
    def of(cls, A: sp.csr_array, norm: Norm = "symmetric", loops: Loops = "keep") -> Adjacency:
        """From a non-negative A (n, n), of which `loops` says whether I is added; in float64."""
        refuse_loops(norm, loops)
        whole, diagonal = with_diagonal(sp.csr_array(A))
        return cls(
            Pattern.of(whole),
            torch.tensor(whole.data),
            torch.tensor(diagonal).double(),
            norm,
            loops != "none",
        )

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The same on another device or in another dtype; takes what `Tensor.to` takes."""
        return self.moved(self.weights.to(*args, **kwargs))

    def moved(self, weights: Tensor) -> Self:
        """The same where its weights are on another device, or in another dtype."""
        pattern = self.pattern.to(weights.device)
        return replace(self, pattern=pattern, weights=weights, diagonal=self.diagonal.to(weights))

    @cached_property
    def whole(self) -> Sparse:
        """The propagation matrix of all links."""
        return self.matrix()

    def induced(self, nodes: Tensor) -> Self:
        """The links among these nodes, renumbered in the order given."""
        pattern, inside = induced_pattern(self.pattern, nodes)
        weights, diagonal = self.weights[inside], self.diagonal[inside]
        return replace(self, pattern=pattern, weights=weights, diagonal=diagonal)

    @cached_property
    def pairs(self) -> Tensor:
        """(entries,) a number that (u, v) and (v, u) share."""
        row, column = self.pattern.row_of, self.pattern.columns.long()
        codes = torch.minimum(row, column) * self.pattern.shape[0] + torch.maximum(row, column)
        numbers: Tensor = torch.unique(codes, return_inverse=True)[1]
        return numbers

    @property
    def entries(self) -> RowNumbers | None:
        """The numbers of the entries, where several processes share them; None: 0, 1, 2, …"""
        return None

    @property
    def paired(self) -> RowNumbers | None:
        """The same of `pairs`."""
        return None

    def matrix(self, kept: Tensor | None = None) -> Sparse:
        """The propagation matrix, of the links that `kept` (entries,) marks with a one."""
        A = self.weights if kept is None else self.weights * kept
        return Sparse(self.pattern, self._normalised(A))

    def _normalised(self, A: Tensor) -> Tensor:
        pattern, I = self.pattern, self.diagonal
        values = counted(self.norm, A, I, looped=self.looped)
        left = right = inverse_degrees(row_sums(pattern, values))
        if self.norm in BOTH_SIDES:
            if not self.looped:
                right = inverse_degrees(self._column_sums(values))
            right = self._of_columns(right)
        return normalised(self.norm, values, I, pattern.row_of, pattern.columns, left, right)

    def _of_columns(self, each: Tensor) -> Tensor:
        """What each column's node has, from what each row's has: the same, where all are here."""
        return each

    def _column_sums(self, A: Tensor) -> Tensor:
        transposed, order = self.pattern.transposed
        return row_sums(transposed, A.index_select(0, order))


@dataclass(frozen=True, eq=False)
class TypedAdjacency(Adjacency):
    """Links of several types: `weights` are sums over them.

    of_type  (w, entries) A's values, of each type
    """

    of_type: Tensor = field(kw_only=True)

    @classmethod
    def of_types(
        cls, each: Sequence[sp.csr_array], norm: Norm = "symmetric", loops: Loops = "keep"
    ) -> TypedAdjacency:
        """From non-negative A (n, n), one of each type; in float64."""
        links = Adjacency.of(sp.csr_array(sum(each[1:], each[0])), norm, loops)
        n = links.pattern.shape[1]
        places = (links.pattern.row_of * n + links.pattern.columns).numpy()
        values = np.zeros((len(each), len(places)))
        for own, A in zip(values, map(sp.coo_array, each), strict=True):
            own[np.searchsorted(places, A.row.astype(np.int64) * n + A.col)] = A.data
        return cls(
            *(links.pattern, links.weights, links.diagonal, norm, links.looped),
            of_type=torch.from_numpy(values),
        )

    def moved(self, weights: Tensor) -> Self:
        """The same where its weights are on another device, or in another dtype."""
        return replace(super().moved(weights), of_type=self.of_type.to(weights))

    def induced(self, nodes: Tensor) -> Self:
        """The links among these nodes, renumbered in the order given."""
        _, inside = induced_pattern(self.pattern, nodes)
        return replace(super().induced(nodes), of_type=self.of_type[:, inside])

    def matrix(self, kept: Tensor | None = None) -> TypedMatrix:
        """The propagation matrix, of the links that `kept` (entries,) marks with a one.

        A link is left out in all its types.
        """
        each = self.of_type if kept is None else self.of_type * kept
        linked = torch.stack([row_sums(self.pattern, A) for A in each]) > 0
        has = (linked | ~linked.any(0)).to(each.dtype)
        P = torch.stack([self._normalised(A) for A in each])
        return TypedMatrix.of(self.pattern, P * has[:, self.pattern.row_of], has)


def counted(norm: Norm, A: Tensor, I: Tensor, *, looped: bool) -> Tensor:
    """(entries,) what this norm counts as links: A or A + I."""
    return A if norm in ("mean", "first-order") or not looped else A + I


def inverse_degrees(degree: Tensor) -> Tensor:
    """1 / degree; 0 for a node without neighbours."""
    return torch.where(degree > 0, degree, torch.inf).reciprocal()


def normalised(
    norm: Norm, A: Tensor, I: Tensor, row_of: Tensor, columns: Tensor, left: Tensor, right: Tensor
) -> Tensor:
    """(entries,) P's values; `left` and `right` are inverse degrees of rows and of columns."""
    match norm:
        case "symmetric" | "symmetric+I" | "first-order":
            P = A * left.sqrt()[row_of] * right.sqrt()[columns]
            return P if norm == "symmetric" else P + I
        case "walk" | "mean":
            return A * left[row_of]
        case "enhanced":
            return A * left[row_of] * (1 + I)


def induced_pattern(pattern: Pattern, nodes: Tensor) -> tuple[Pattern, Tensor]:
    """The pattern among some nodes, and the numbers of the entries that it keeps, in its order."""
    place = torch.full((pattern.shape[0],), -1, device=nodes.device, dtype=torch.int32)
    place[nodes] = torch.arange(len(nodes), device=nodes.device, dtype=torch.int32)
    row, column = place[pattern.row_of], place[pattern.columns]
    inside = torch.nonzero((row >= 0) & (column >= 0))[:, 0]
    inside = inside[torch.argsort(row[inside], stable=True)]
    shape = len(nodes), len(nodes)
    return Pattern.from_sorted(row[inside], column[inside], shape), inside


@runtime_checkable
class Propagation(Protocol):
    """What models call P: layer l, counted from 0, gathers over `P.at(l)`.

    A Sparse is the same for all layers; `Hops` has a matrix of sampled neighbours for each.
    """

    def at(self, layer: int) -> Sparse:
        """The matrix of this layer: (nodes that gather, nodes that they gather from)."""


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
    edge_types: EdgeTypes = "use",
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
        See `Adjacency`.
    edge_weights : {"raw", "median", "log", "rank", "none", "auto"}
        What the weights of a Graph count: "raw": as they are, so that their unit matters, because a
        self-loop counts 1; "median": divided by their median; "log": log2(1 + w / median); "rank":
        by their rank, from 0 to 2; "none": 1; "auto": by their rank if they are skewed, else by the
        median.
    edge_types : {"use", "ignore"}
        Of a Graph with edges of several types: a matrix of each, for a model that weighs them
        (`model.over_types(graph.type_count)`); or one of all edges alike.
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
    dtype = dtype or torch.get_default_dtype()
    if isinstance(source, Graph) and source.typed and edge_types == "use":
        _check_size(source.n, n)
        each = adjacency_of_types(source, direction, loops, edge_weights)
        return TypedAdjacency.of_types(each, norm, loops).matrix().to(dtype)
    A = _adjacency(source, n, directed, direction, loops, edge_weights)
    return Adjacency.of(A, norm, loops).matrix().to(device, dtype)


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
