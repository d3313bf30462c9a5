"""GCN with residual connections (section 5, equation 6), as in the paper's figure on degrees."""

from torch import Tensor

from gcnii.nn.deep_gcn import DeepGCN, DeepGCNConv
from gcnii.nn.model import ModelCard
from gcnii.propagation import Sparse


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
