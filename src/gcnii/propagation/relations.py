"""Links of several kinds, normalised together and gathered over separately (Geom-GCN)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcnii.data.geometry import RELATIONS, Neighbourhood
from gcnii.propagation.adjacency import Adjacency, Norm, induced_pattern
from gcnii.propagation.sparse import Pattern, Sparse

DIVISIONS = RELATIONS + 1  # the last one is a node's link to itself


@dataclass(frozen=True, eq=False)
class RelationLayout:
    """Where the entries of P are stored when its divisions are kept apart.

    There, node u has DIVISIONS rows, u · DIVISIONS + r for division r, so that one product serves
    all of them.

    relation  (entries,) the division of each entry of P
    apart     (n · DIVISIONS, n · DIVISIONS): v's row r gathers from u's row r
    order     (entries,) the permutation that brings P's values into the order of `apart`
    merged    (n, n · DIVISIONS): v gathers from u's row r; the entries are in the order of P
    """

    relation: Tensor
    apart: Pattern
    order: Tensor
    merged: Pattern

    @classmethod
    def of(cls, pattern: Pattern, relation: Tensor) -> RelationLayout:
        """The layout of a matrix with this pattern."""
        n, rows = pattern.shape[0], pattern.shape[0] * DIVISIONS
        row, column = (
            end.long() * DIVISIONS + relation for end in (pattern.row_of, pattern.columns)
        )
        order = torch.argsort(row, stable=True)
        apart = Pattern.from_sorted(row[order], column[order], (rows, rows))
        return cls(relation, apart, order, Pattern(pattern.rows, column.int(), (n, rows)))


@dataclass(frozen=True, eq=False, repr=False)
class RelationalMatrix(Sparse):
    """A propagation matrix whose entries belong to divisions; as a matrix, it is their sum."""

    layout: RelationLayout

    @cached_property
    def apart(self) -> Sparse:
        """M (n · DIVISIONS, width) → the same shape: each division by itself."""
        return Sparse(self.layout.apart, self.values[self.layout.order])

    @cached_property
    def merged(self) -> Sparse:
        """M (n · DIVISIONS, width) → (n, width): the sum over the divisions."""
        return Sparse(self.layout.merged, self.values)

    def moved(self, values: Tensor) -> RelationalMatrix:
        """The same matrix where its values are on another device, or in another dtype."""
        P = super().moved(values)
        layout = RelationLayout.of(P.pattern, self.layout.relation.to(P.device))
        return RelationalMatrix(P.pattern, P.values, layout)


@dataclass(frozen=True, eq=False)
class RelationalAdjacency(Adjacency):
    """Links, and the division of each: the neighbour's relation, or the last for the diagonal."""

    relation: Tensor = field(kw_only=True)

    @classmethod
    def of_neighbours(
        cls, neighbourhood: Neighbourhood, n: int, norm: Norm = "symmetric"
    ) -> RelationalAdjacency:
        """In float64; degrees are counted over all divisions, a node's link to itself included."""
        neighbour, node = neighbourhood.edges
        A = sp.csr_array((np.ones(len(node)), (node, neighbour)), (n, n))
        links = Adjacency.of(A, norm)
        relation = torch.full((len(links.weights),), DIVISIONS - 1)
        # Off the diagonal, the entries of Ã are those of A, row by row and sorted.
        sorted_relation = neighbourhood.relation[np.lexsort((neighbour, node))]
        relation[links.diagonal == 0] = torch.tensor(sorted_relation)
        return cls(links.pattern, links.weights, links.diagonal, norm, relation=relation)

    def moved(self, weights: Tensor) -> Self:
        """The same where its weights are on another device, or in another dtype."""
        return replace(super().moved(weights), relation=self.relation.to(weights.device))

    @cached_property
    def layout(self) -> RelationLayout:
        """Where P's entries are stored by division; made once, because no step changes it."""
        return RelationLayout.of(self.pattern, self.relation)

    def matrix(self, kept: Tensor | None = None) -> RelationalMatrix:
        """The propagation matrix, of the links that `kept` (entries,) marks with a one."""
        P = super().matrix(kept)
        return RelationalMatrix(P.pattern, P.values, self.layout)

    def induced(self, nodes: Tensor) -> Self:
        """The links among these nodes, renumbered in the order given."""
        _, inside = induced_pattern(self.pattern, nodes)
        return replace(super().induced(nodes), relation=self.relation[inside])
