"""GCN (Kipf & Welling 2017; equation 1) in GCNII's skeleton: only the convolution differs."""

from __future__ import annotations

from torch import Tensor, nn

from gcnii.nn.model import ModelCard
from gcnii.nn.settings import Layers, Rate, Width
from gcnii.nn.skeleton import GCNIISkeleton
from gcnii.nn.weights import uniform
from gcnii.propagation import Sparse


class DeepGCNConv(nn.Module):
    """Equation 1 before σ:  P̃ H W."""

    def __init__(self, width: int):
        super().__init__()
        self.W = uniform(width, width)

    def forward(self, P: Sparse, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width); H0 is not used, which is why it over-smooths."""
        return (P @ H) @ self.W


class DeepGCN(GCNIISkeleton):
    """GCN in GCNII's skeleton: plain graph convolutions between the two dense layers."""

    card = ModelCard(
        paper="Kipf & Welling 2017, in the skeleton of Chen et al. 2020",
        equation="H ← σ(P̃ H W) between two dense layers",
    )
    conv: type[nn.Module] = DeepGCNConv

    def __init__(
        self, d: int, k: int, *, layers: Layers = 64, width: Width = 64, dropout: Rate = 0.6
    ):
        super().__init__(d, k, (self.conv(width) for _ in range(layers)), width, dropout)


class GCNResidualConv(DeepGCNConv):
    """Equation 6 before σ:  (P̃ H + H) W."""

    def forward(self, P: Sparse, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        return (P @ H + H) @ self.W


class GCNResidual(DeepGCN):
    """GCN with a residual connection around every propagation."""

    card = ModelCard(
        paper="Chen et al. 2020, equation 6",
        equation="H ← σ((P̃ H + H) W)",
    )
    conv = GCNResidualConv
