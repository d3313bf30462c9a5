"""GraphAdjacency: who gathers from whom, and the propagation matrices that are made of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcnii.graph import Graph
from gcnii.propagation.sparse import Pattern, Sparse

Direction = Literal["out", "in", "both"]
Geometry = Literal["none", "isomap", "poincare", "struc2vec"]
Loops = Literal["keep", "remove"]
Norm = Literal["symmetric", "walk", "symmetric+I", "first-order", "mean", "enhanced"]


def propagation_matrix(
    graph: Graph, *, direction: Direction = "out", loops: Loops = "keep", norm: Norm = "symmetric"
) -> Sparse:
    """P̃ = D̃^-1/2 Ã D̃^-1/2 with Ã = A + I and D̃ the row sums of Ã, in float64; or a relative of
    it.

    direction  of a directed graph's edges u → v: u gathers from v ("out"), v from u ("in"), or each
               from the other
    loops      "keep": a self-loop of the graph makes Ã's diagonal 2; "remove": every diagonal entry
               is 1
    norm       see `GraphAdjacency`
    """
    return GraphAdjacency.of(adjacency(graph, direction, loops), norm).matrix()


def adjacency(graph: Graph, direction: Direction = "out", loops: Loops = "keep") -> sp.csr_array:
    """A (n, n) of zeros and ones, A[u, v] = 1 if u gathers from v; an edge that stands twice counts
    once.
    """
    # paper: undirected graphs without self-loops; here: the authors' code, which keeps both as the
    # files have them.
    u, v = graph.edges
    A = sp.csr_array((np.ones(len(u)), (u, v)), (graph.n, graph.n))
    A.data[:] = 1
    if not graph.directed or direction == "both":
        A = sp.csr_array(A.maximum(A.T))
    elif direction == "in":
        A = sp.csr_array(A.T)
    if loops == "remove":
        A = sp.csr_array(A - sp.diags_array(A.diagonal()))
        A.eliminate_zeros()
    return A


@dataclass(frozen=True, eq=False)
class GraphAdjacency:
    """A, laid out on the places of Ã = A + I, so that entries can be dropped and the rest be
    normalised anew.

    pattern   the places of Ã
    weights   (entries,) A's values there
    diagonal  (entries,) 1 on the diagonal, 0 elsewhere
    norm      what `matrix` makes of them:

        symmetric     P̃ = D̃^-1/2 Ã D̃^-1/2
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

    @classmethod
    def of(cls, A: sp.csr_array, norm: Norm = "symmetric") -> GraphAdjacency:
        """In float64; A (n, n) must not be negative."""
        places = sp.csr_array(sp.csr_array(A) + sp.eye_array(A.shape[0]))
        places.sort_indices()
        pattern = Pattern.of(places)
        diagonal = (pattern.row_of == pattern.columns).double()
        return cls(pattern, torch.tensor(places.data) - diagonal, diagonal, norm)

    def to(self, device: torch.device | str, dtype: torch.dtype) -> GraphAdjacency:
        """The same links on another device, in another precision."""
        weights, diagonal = self.weights.to(device, dtype), self.diagonal.to(device, dtype)
        return GraphAdjacency(self.pattern.to(device), weights, diagonal, self.norm)

    @cached_property
    def whole(self) -> Sparse:
        """The propagation matrix of all links."""
        return self.matrix()

    def induced(self, nodes: Tensor) -> GraphAdjacency:
        """The links among these nodes, which are numbered anew in the order given."""
        place = torch.full((self.pattern.shape[0],), -1, device=nodes.device, dtype=torch.int32)
        place[nodes] = torch.arange(len(nodes), device=nodes.device, dtype=torch.int32)
        row, column = place[self.pattern.row_of], place[self.pattern.columns]
        inside = torch.nonzero((row >= 0) & (column >= 0))[:, 0]
        inside = inside[torch.argsort(row[inside], stable=True)]
        ends = torch.bincount(row[inside], minlength=len(nodes)).cumsum(0)
        rows = torch.cat([ends.new_zeros(1), ends]).int()
        pattern = Pattern(rows, column[inside], (len(nodes), len(nodes)))
        return GraphAdjacency(pattern, self.weights[inside], self.diagonal[inside], self.norm)

    @cached_property
    def pairs(self) -> Tensor:
        """(entries,) a number for each entry that (u, v) and (v, u) share."""
        row_of, columns = self.pattern.row_of, self.pattern.columns.long()
        codes = torch.minimum(row_of, columns) * self.pattern.shape[0] + torch.maximum(
            row_of, columns
        )
        numbers: Tensor = torch.unique(codes, return_inverse=True)[1]
        return numbers

    def matrix(self, kept: Tensor | None = None) -> Sparse:
        """The propagation matrix; with `kept` (entries,) zeros and ones, of the links that are
        kept.
        """
        A = self.weights if kept is None else self.weights * kept
        return Sparse.on(self.pattern, self._normalised(A))

    def _normalised(self, A: Tensor) -> Tensor:
        norm = self.norm
        row_of, columns, I = self.pattern.row_of, self.pattern.columns, self.diagonal
        looped = A if norm in ("mean", "first-order") else A + I
        degree = self.pattern.row_sums(looped)
        # A node without neighbours has nothing to share out, and must not divide by zero.
        inverse = torch.where(degree > 0, degree, torch.inf).reciprocal()
        match norm:
            case "symmetric" | "symmetric+I" | "first-order":
                root = inverse.sqrt()
                P = looped * root[row_of] * root[columns]
                return P if norm == "symmetric" else P + I
            case "walk" | "mean":
                return looped * inverse[row_of]
            case "enhanced":
                return looped * inverse[row_of] * (1 + I)
