"""GCN (Kipf & Welling 2017; equation 1): the shallow network that everyone compares with.

As Fey & Lenssen (2019) ran it, because the paper quotes their numbers: with biases, and without
dropout on the features.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from gcnii.dropout import Dropout
from gcnii.nn.model import Gathering, Model, ModelCard, glorot
from gcnii.nn.settings import FewLayers, Rate, Width
from gcnii.propagation import Sparse


class GCNConv(Gathering):
    """Equation 1 before σ:  P̃ H W + b."""

    def __init__(self, d: int, width: int):
        super().__init__()
        self.W = glorot(d, width)
        self.b = nn.Parameter(torch.zeros(width))

    def forward(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """(n, d) → (n, width); the product by W comes first, because it narrows H."""
        return self.over(P) @ (H @ self.W) + self.b


class GCN(Model):
    """GCN of Kipf & Welling: `layers` convolutions, with ReLU and dropout between them."""

    card = ModelCard(
        paper="Kipf & Welling 2017; equation 1",
        equation="H ← σ(P̃ H W + b)",
        recipe={"decay_conv": 5e-4, "epochs": 200},
        when="the shallow baseline, 2 or 3 layers",
    )
    can_be_cut = uses_types = True

    def __init__(
        self, d: int, k: int, *, layers: FewLayers = 2, width: Width = 16, dropout: Rate = 0.5
    ):
        super().__init__()
        widths = (d, *[width] * (layers - 1), k)
        self.convs = nn.ModuleList(GCNConv(*ends) for ends in pairwise(widths))
        self.drop = Dropout(dropout)

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor | Sparse:
        """What the last convolution reads: (n, width), or X where there is only one layer."""
        H = X
        for conv in self.convs[:-1]:
            H = self.drop(relu(conv(P, H)))
        return H

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        scores: Tensor = self.convs[-1](P, self.embed(P, X))
        return scores
