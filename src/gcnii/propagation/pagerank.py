"""Personalised PageRank in closed form, for graphs whose inverse fits into memory."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from gcnii.errors import InputError
from gcnii.propagation.sparse import Sparse

LARGEST = 20_000  # nodes: an inverse of 1.6 GB in float32
_INVERSES: WeakKeyDictionary[Sparse, dict[float, Tensor]] = WeakKeyDictionary()


def resolvent(P: Sparse, alpha: float) -> Tensor:
    """α (I - (1-α) P)^-1 (n, n), made once per P."""
    n = P.shape[0]
    if n > LARGEST:
        raise InputError(
            f"ppnp inverts an n × n matrix and takes graphs of up to {LARGEST} nodes, got {n}; "
            "use appnp, which comes to the same by iteration"
        )
    known = _INVERSES.setdefault(P, {})
    if alpha not in known:
        I = torch.eye(n, dtype=P.dtype, device=P.device)
        known[alpha] = torch.linalg.inv((I - (1 - alpha) * P.to_dense()) / alpha)
    return known[alpha]
