"""RelationalAdjacency: links of several kinds, normalised together and gathered over apart
(Geom-GCN).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcnii.data.geometry.neighbourhoods import RELATIONS, Neighbourhood
from gcnii.propagation.adjacency import GraphAdjacency, Norm
from gcnii.propagation.sparse import Pattern, Sparse

DIVISIONS = RELATIONS + 1  # the last one is a node's link to itself


@dataclass(frozen=True, eq=False)
class RelationLayout:
    """Where the entries of P stand when its divisions are kept apart.

    There, node u has DIVISIONS places, u · DIVISIONS + r for division r, so that one product does
    for all of them.

    relation  (entries,) the division of each entry of P
    apart     (n · DIVISIONS, n · DIVISIONS): v's place r gathers from u's place r
    order     (entries,) which brings P's values into the order of `apart`
    merged    (n, n · DIVISIONS): v gathers from u's place r; the entries are in the order of P
    """

    relation: Tensor
    apart: Pattern
    order: Tensor
    merged: Pattern

    @classmethod
    def of(cls, pattern: Pattern, relation: Tensor) -> RelationLayout:
        """Those of a matrix with these places."""
        places = pattern.shape[0] * DIVISIONS
        row, column = (
            end.long() * DIVISIONS + relation for end in (pattern.row_of, pattern.columns)
        )
        order = torch.argsort(row, stable=True)
        ends = torch.bincount(row, minlength=places).cumsum(0)
        rows = torch.cat([ends.new_zeros(1), ends]).int()
        merged = Pattern(pattern.rows, column.int(), (pattern.shape[0], places))
        return cls(relation, Pattern(rows, column[order].int(), (places, places)), order, merged)


@dataclass(frozen=True, eq=False)
class RelationalMatrix(Sparse):
    """A propagation matrix whose entries are in divisions; as a matrix, it is the sum of them."""

    divisions: RelationLayout

    @cached_property
    def apart(self) -> Sparse:
        """M (n · DIVISIONS, width) → the same shape: each division by itself."""
        return Sparse.on(self.divisions.apart, self.values[self.divisions.order])

    @cached_property
    def merged(self) -> Sparse:
        """M (n · DIVISIONS, width) → (n, width): the sum over the divisions."""
        return Sparse.on(self.divisions.merged, self.values)


@dataclass(frozen=True, eq=False)
class RelationalAdjacency:
    """GraphAdjacency, and the division of each of their entries: the neighbour's relation, or the
    last one for the diagonal.
    """

    links: GraphAdjacency
    relation: Tensor

    @classmethod
    def of(
        cls, neighbourhood: Neighbourhood, n: int, norm: Norm = "symmetric"
    ) -> RelationalAdjacency:
        """In float64; degrees are counted over all divisions, a node's link to itself included."""
        neighbour, node = neighbourhood.edges
        A = sp.csr_array((np.ones(len(node)), (node, neighbour)), (n, n))
        links = GraphAdjacency.of(A, norm)
        relation = torch.full((len(links.weights),), DIVISIONS - 1)
        # Off the diagonal, the entries of Ã are those of A, row by row and sorted.
        relation[links.diagonal == 0] = torch.tensor(
            neighbourhood.relation[np.lexsort((neighbour, node))]
        )
        return cls(links, relation)

    def to(self, device: torch.device | str, dtype: torch.dtype) -> RelationalAdjacency:
        """The same on another device, in another precision."""
        return RelationalAdjacency(self.links.to(device, dtype), self.relation.to(device))

    @cached_property
    def divisions(self) -> RelationLayout:
        """Made once, because no step changes it."""
        return RelationLayout.of(self.links.pattern, self.relation)

    @cached_property
    def whole(self) -> RelationalMatrix:
        """The propagation matrix of all links."""
        return self.matrix()

    @property
    def pattern(self) -> Pattern:
        """The places of the links."""
        return self.links.pattern

    @property
    def weights(self) -> Tensor:
        """(entries,) those of the links."""
        return self.links.weights

    @property
    def pairs(self) -> Tensor:
        """(entries,) a number for each entry that (u, v) and (v, u) share."""
        return self.links.pairs

    def matrix(self, kept: Tensor | None = None) -> RelationalMatrix:
        """The propagation matrix; with `kept` (entries,) zeros and ones, of the links that are
        kept.
        """
        P = self.links.matrix(kept)
        return RelationalMatrix(P.pattern, P.values, P.transposed, self.divisions)

    def induced(self, nodes: Tensor) -> RelationalAdjacency:
        """The links among these nodes, which are numbered anew in the order given."""
        links = self.links
        numbered = GraphAdjacency(
            links.pattern, self.relation.to(links.weights.dtype), links.diagonal, links.norm
        )
        return RelationalAdjacency(links.induced(nodes), numbered.induced(nodes).weights.long())
