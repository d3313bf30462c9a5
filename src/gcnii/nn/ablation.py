"""GCNII's skeleton with other convolutions, or none (Chen et al. 2020, sections 2 and 6.4).

Initial residual alone, identity mapping alone, plain GCN (Kipf & Welling 2017; equation 1), GCN
with residual connections (equation 6), and an MLP.
"""

from __future__ import annotations

from torch import Tensor

from gcnii.nn.engine.skeleton import Conv, GCNIISkeleton
from gcnii.nn.gcnii import betas, blend, identity_mapping
from gcnii.nn.model import ModelCard, uniform
from gcnii.nn.settings import Alpha, Lam, Layers, Rate, Width


class GCNInitialConv(Conv):
    """Equation 5 with β = 1, before σ:  ((1-α) P̃ H + α H0) W."""

    def __init__(self, width: int, alpha: float):
        super().__init__()
        self.alpha: float | Tensor = alpha
        self.W = uniform(width, width)

    def combine(self, PH: Tensor, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        return blend(PH, H0, self.alpha) @ self.W


class GCNIdentityConv(Conv):
    """Equation 5 with α = 0, before σ:  P̃ H ((1-β) I + β W)."""

    def __init__(self, width: int, beta: float):
        super().__init__()
        self.beta: float | Tensor = beta
        self.W = uniform(width, width)

    def combine(self, PH: Tensor, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        return PH @ identity_mapping(self.W, self.beta)


class GCNInitial(GCNIISkeleton):
    """GCN with initial residual, without identity mapping."""

    card = ModelCard(
        paper="Chen et al. 2020, section 6.4",
        equation="H ← σ(((1-α) P̃ H + α H0) W)",
    )
    batched = frozenset({"alpha", "dropout"})

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: Layers = 64,
        width: Width = 64,
        alpha: Alpha = 0.1,
        dropout: Rate = 0.6,
    ):
        super().__init__(
            d, k, (GCNInitialConv(width, alpha) for _ in range(layers)), width, dropout
        )


class GCNIdentity(GCNIISkeleton):
    """GCN with identity mapping, without initial residual."""

    card = ModelCard(
        paper="Chen et al. 2020, section 6.4",
        equation="H ← σ(P̃ H ((1-β) I + β W)), β_l = log(λ/l + 1)",
    )
    batched = frozenset({"lam", "dropout"})

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: Layers = 64,
        width: Width = 64,
        lam: Lam = 0.5,
        dropout: Rate = 0.6,
    ):
        super().__init__(
            d, k, (GCNIdentityConv(width, beta) for beta in betas(layers, lam)), width, dropout
        )


class DeepGCNConv(Conv):
    """Equation 1 before σ:  P̃ H W."""

    def __init__(self, width: int):
        super().__init__()
        self.W = uniform(width, width)

    def combine(self, PH: Tensor, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width); H0 is not used, which is why it over-smooths."""
        return PH @ self.W


class DeepGCN(GCNIISkeleton):
    """GCN in GCNII's skeleton: plain graph convolutions between the two dense layers."""

    card = ModelCard(
        paper="Kipf & Welling 2017, in the skeleton of Chen et al. 2020",
        equation="H ← σ(P̃ H W) between two dense layers",
    )
    conv: type[Conv] = DeepGCNConv

    def __init__(
        self, d: int, k: int, *, layers: Layers = 64, width: Width = 64, dropout: Rate = 0.6
    ):
        super().__init__(d, k, (self.conv(width) for _ in range(layers)), width, dropout)


class GCNResidualConv(DeepGCNConv):
    """Equation 6 before σ:  (P̃ H + H) W."""

    def combine(self, PH: Tensor, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        return (PH + H) @ self.W


class GCNResidual(DeepGCN):
    """GCN with a residual connection around every propagation."""

    card = ModelCard(
        paper="Chen et al. 2020, equation 6",
        equation="H ← σ((P̃ H + H) W)",
    )
    conv = GCNResidualConv


class MLP(GCNIISkeleton):
    """MLP: the two dense layers of GCNII's skeleton, without convolutions between them."""

    card = ModelCard(
        paper="what the features alone give",
        equation="σ(X W + b) W' + b'",
        uses_graph=False,
        when="to see what the features give without the graph",
    )

    def __init__(self, d: int, k: int, *, width: Width = 64, dropout: Rate = 0.6):
        super().__init__(d, k, (), width, dropout)
