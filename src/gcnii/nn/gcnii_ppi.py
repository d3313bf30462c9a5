"""GCNII for PPI, with a "skip connection from layer l to l+1" (section 6.2)."""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from gcnii.nn.fused import Mappings
from gcnii.nn.gcnii import GCNII, GCNIIConv
from gcnii.nn.gcnii_star import GCNIIStarConv
from gcnii.nn.model import ModelCard
from gcnii.propagation import Sparse


class GCNIISkipConv(GCNIIConv):
    """Equation 5 before σ, + H."""

    def forward(self, P: Sparse, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        # paper: does not say which H; here: the one after dropout, which the convolution reads, as
        # in the authors' code.
        return super().forward(P, H, H0) + H

    @staticmethod
    def mappings(convs: Sequence[GCNIIConv]) -> Mappings:
        """The matrices of these layers, for `fused_layers`."""
        return replace(GCNIIConv.mappings(convs), skip=True)


class GCNIIStarSkipConv(GCNIIStarConv):
    """GCNII* as coded, before σ, + H."""

    def forward(self, P: Sparse, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        return super().forward(P, H, H0) + H

    @staticmethod
    def mappings(convs: Sequence[GCNIIStarConv]) -> Mappings:
        """The matrices of these layers, for `fused_layers`."""
        return replace(GCNIIStarConv.mappings(convs), skip=True)


class GCNIIPPI(GCNII):
    """GCNII with a skip connection around every layer."""

    card = ModelCard(
        paper="Chen et al. 2020, section 6.2",
        equation="H ← σ(((1-α) P̃ H + α H0) ((1-β) I + β W) + H)",
    )
    conv = GCNIISkipConv


class GCNIIStarPPI(GCNII):
    """GCNII*, as coded, with a skip connection around every layer."""

    card = ModelCard(
        paper="Chen et al. 2020, section 6.2, as coded",
        equation="H ← σ((1-β) ((1-α) P̃ H + α H0) + β (P̃ H W1 + H0 W2) + H)",
    )
    conv = GCNIIStarSkipConv
