"""Sums over all nodes, as the gradients of weights are: long products of narrow matrices."""

import torch
from torch import Tensor

NARROW = 128  # columns of the result; wider ones fill a GPU also where all are taken at once
# rows of a product, for each that is to be taken, from which on they are faster one by one
LONG = 1000
MANY = 64  # products that are faster at once, however long


def gradients(S: Tensor, dZ: Tensor) -> Tensor:
    """Sᵀ dZ for S (b, n, d) and dZ (b, n, h).  A few long ones go one by one: cuBLAS cuts up single
    ones alone.
    """
    if len(S) < min(S.shape[1] // LONG, MANY) and dZ.shape[2] <= NARROW:
        return torch.stack([s.mT @ z for s, z in zip(S, dZ, strict=True)])
    return torch.bmm(S.mT, dZ)
