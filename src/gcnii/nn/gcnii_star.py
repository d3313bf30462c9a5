"""GCNII*: separate weights for P̃H and the initial residual (section 4), as coded and as printed.

The two differ: in the authors' code, the weights act on P̃H and H0 without the factors (1-α) and α
that the equation prints.  The tables come from the code, so `gcnii-star` is the code's form.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gcnii.nn.fused import Mappings
from gcnii.nn.gcnii import GCNII, each_beta, identity_mapping
from gcnii.nn.model import ModelCard
from gcnii.nn.weights import uniform
from gcnii.propagation import Sparse


class GCNIIStarConv(nn.Module):
    """As coded, before σ:  (1-β) ((1-α) P̃ H + α H0) + β (P̃ H W1 + H0 W2)."""

    def __init__(self, width: int, alpha: float, beta: float):
        super().__init__()
        self.alpha: float | Tensor = alpha
        self.beta: float | Tensor = beta
        self.W1, self.W2 = uniform(width, width), uniform(width, width)

    def forward(self, P: Sparse, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        M1 = identity_mapping(self.W1, self.beta, 1 - self.alpha)
        M2 = identity_mapping(self.W2, self.beta, self.alpha)
        return (P @ H) @ M1 + H0 @ M2

    @staticmethod
    def mappings(convs: Sequence[GCNIIStarConv]) -> Mappings:
        """The matrices of these layers, for `fused_layers`."""
        W1, W2, alpha = *stacked(convs), convs[0].alpha
        beta = each_beta(convs, W1)
        return Mappings(identity_mapping(W1, beta, 1 - alpha), identity_mapping(W2, beta, alpha))


class GCNIIStarPrintedConv(GCNIIStarConv):
    """As printed, before σ:  (1-α) P̃ H ((1-β) I + β W1) + α H0 ((1-β) I + β W2)."""

    def forward(self, P: Sparse, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        M1 = (1 - self.alpha) * identity_mapping(self.W1, self.beta)
        M2 = self.alpha * identity_mapping(self.W2, self.beta)
        return (P @ H) @ M1 + H0 @ M2

    @staticmethod
    def mappings(convs: Sequence[GCNIIStarConv]) -> Mappings:
        """The matrices of these layers, for `fused_layers`."""
        W1, W2, alpha = *stacked(convs), convs[0].alpha
        beta = each_beta(convs, W1)
        return Mappings(
            (1 - alpha) * identity_mapping(W1, beta), alpha * identity_mapping(W2, beta)
        )


def stacked(convs: Sequence[GCNIIStarConv]) -> tuple[Tensor, Tensor]:
    """W1 and W2 (layers, h, h) of these layers."""
    return torch.stack([conv.W1 for conv in convs]), torch.stack([conv.W2 for conv in convs])


class GCNIIStar(GCNII):
    """GCNII* as the authors coded it."""

    card = ModelCard(
        paper="Chen et al. 2020, section 4, as coded",
        equation="H ← σ((1-β) ((1-α) P̃ H + α H0) + β (P̃ H W1 + H0 W2))",
        when="as gcnii with twice the weights: better on the web graphs of the paper",
    )
    conv = GCNIIStarConv


class GCNIIStarPrinted(GCNII):
    """GCNII* as the paper prints it."""

    card = ModelCard(
        paper="Chen et al. 2020, section 4, as printed",
        equation="H ← σ((1-α) P̃ H ((1-β) I + β W1) + α H0 ((1-β) I + β W2))",
    )
    conv = GCNIIStarPrintedConv
