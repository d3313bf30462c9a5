"""Personalised PageRank in closed form, for graphs whose inverse fits into memory."""

from __future__ import annotations

import torch
from torch import Tensor

from gcnii.errors import InputError
from gcnii.propagation.sparse import Sparse

LARGEST = 20_000  # nodes: an inverse of 1.6 GB in float32


def resolvent(P: Sparse, alpha: float) -> Tensor:
    """α (I - (1-α) P)^-1 (n, n), made once for a P."""
    n = P.shape[0]
    if n > LARGEST:
        raise InputError(
            f"ppnp inverts an n × n matrix and takes graphs of up to {LARGEST} nodes, got {n}; "
            "use appnp, which comes to the same by iteration"
        )
    made: dict[float, Tensor] = P.__dict__.setdefault("resolvents", {})
    if alpha not in made:
        I = torch.eye(n, dtype=P.values.dtype, device=P.values.device)
        made[alpha] = torch.linalg.inv((I - (1 - alpha) * P.to_dense()) / alpha)
    return made[alpha]
