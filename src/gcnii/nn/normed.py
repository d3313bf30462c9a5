"""The dense layer with layer normalisation of VR-GCN and Cluster-GCN."""

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from gcnii.nn.weights import glorot


class NormedDense(nn.Module):
    """ReLU(scale · (Z - mean) / √(variance + 1e-9) + offset) over each row of Z = H W."""

    def __init__(self, d: int, width: int):
        super().__init__()
        self.W = glorot(d, width)
        self.scale, self.offset = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, H: Tensor) -> Tensor:
        """(n, d) → (n, width)."""
        Z = H @ self.W
        Z = Z - Z.mean(1, keepdim=True)
        return relu(
            Z * (Z.square().mean(1, keepdim=True) + 1e-9).rsqrt() * self.scale + self.offset
        )
