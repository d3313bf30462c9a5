"""What attention needs: softmax and maximum over each row's entries, and a sum for each head."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import vmap

from gcnii.propagation.sparse import Pattern, Sparse, row_sums, to_entries


def row_softmax(pattern: Pattern, E: Tensor, present: Tensor | None = None) -> Tensor:
    """E (entries, h) → (entries, h): positive, and summing to 1 over the entries of each row.

    present  (entries,) which entries count; the others get 0 (a link that DropEdge left out is
             stored as zero)
    """
    if present is not None:
        E = torch.where(present[:, None], E, -torch.inf)
    top = row_max(pattern, E.detach())
    top = torch.where(top.isfinite(), top, 0)  # a row with nothing in it
    Z = (E - top.index_select(0, pattern.row_of)).exp()
    total = row_sums(pattern, Z)
    return Z / to_entries(pattern, torch.where(total > 0, total, 1), end="row")


def row_max(pattern: Pattern, E: Tensor) -> Tensor:
    """E (entries, h) → (n, h): the largest of each row's entries, -inf where a row has none.

    Entries that are equally large share the gradient equally, so that no order affects it.
    """
    index = pattern.row_of[:, None].expand(E.shape)
    lowest = E.new_full((pattern.shape[0], E.shape[1]), -torch.inf)
    return lowest.scatter_reduce(0, index, E, "amax")


def attend(P: Sparse, alpha: Tensor, Z: Tensor) -> Tensor:
    """Σ_j α_ij Z_j for each head: alpha (entries, heads), Z (d, heads, h) → (n, heads, h)."""
    sums: Tensor = vmap(lambda alpha, Z: P.with_values(alpha) @ Z, in_dims=1, out_dims=1)(alpha, Z)
    return sums
