"""Edges of several types: a matrix for each, and the one that a layer gathers over.

Each type's adjacency is normalised by itself: P_1 … P_w, all on the entries of Ã, the union of
types.  A layer's matrix is their mean with the layer's shares, over the types that a node has:

    P[i, j] = Σ_t s_t P_t[i, j] / Σ_{t ∈ types of i} s_t,   s = softmax of the layer's weights

so that w types cost one product, and a combination of values.  A node without links keeps itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from gcnii.propagation.sparse import Pattern, Sparse, to_entries


@dataclass(frozen=True, eq=False, repr=False)
class TypedMatrix(Sparse):
    """P_1 … P_w on the same entries; as a matrix, it is that of equal shares.

    each  (w, entries) their values; those of a node without links of a type are 0
    has   (w, n) 1 where a node has links of a type; of a node that has none at all, everywhere
    """

    each: Tensor
    has: Tensor

    @classmethod
    def of(cls, pattern: Pattern, each: Tensor, has: Tensor) -> TypedMatrix:
        """With the values of equal shares."""
        equal = each.new_full((len(each),), 1 / len(each))
        return cls(pattern, _mixed(pattern, each, has, equal), each, has)

    def mixed(self, weights: Tensor) -> Sparse:
        """The matrix of a layer with these weights (w,)."""
        shares = weights.softmax(-1)
        return Sparse(self.pattern, _mixed(self.pattern, self.each, self.has, shares))

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Its numbers; with others of their shapes, `holding` makes a matrix again."""
        return self.values, self.each, self.has

    def holding(self, tensors: Sequence[Tensor]) -> TypedMatrix:
        """The matrix with these in the place of `tensors`."""
        values, each, has = tensors
        return replace(self, values=values, each=each, has=has)

    def moved(self, values: Tensor) -> TypedMatrix:
        """The same matrix where its values are on another device, or in another dtype."""
        each, has = self.each.to(values), self.has.to(values)
        return TypedMatrix.of(self.pattern.to(values.device), each, has)


def _mixed(pattern: Pattern, each: Tensor, has: Tensor, shares: Tensor) -> Tensor:
    """(entries,) the values of P with these shares (w,)."""
    # Type by type, so that one replica and many add up in the same order.
    values, whole = each[0] * shares[0], has[0] * shares[0]
    for t in range(1, len(each)):
        values, whole = values + each[t] * shares[t], whole + has[t] * shares[t]
    return values / to_entries(pattern, whole[:, None], end="row")[:, 0]
