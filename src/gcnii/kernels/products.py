"""Gradients of weights: sums over all nodes, which are long products of narrow matrices."""

import torch
from torch import Tensor

NARROW = 128  # columns of the result; a batch of wider products fills a GPU anyway
# products are faster one by one where each has at least this many rows per product in the batch
LONG = 1000
MANY = 64  # from this many products on, a batch is faster, however long they are


def gradients(S: Tensor, dZ: Tensor) -> Tensor:
    """Sᵀ dZ for S (b, n, d) and dZ (b, n, h).

    A few long products go one by one, because cuBLAS splits only single ones into parts.
    """
    if len(S) < min(S.shape[1] // LONG, MANY) and dZ.shape[2] <= NARROW:
        return torch.stack([s.mT @ z for s, z in zip(S, dZ, strict=True)])
    return torch.bmm(S.mT, dZ)
