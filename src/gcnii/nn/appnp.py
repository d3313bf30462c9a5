"""APPNP (Klicpera et al. 2019; equation 3): an MLP's scores, spread by personalised PageRank.

As Fey & Lenssen (2019) ran it, because the paper quotes their numbers: biases, no dropout on the edges.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from gcnii.dropout import Dropout, Rate
from gcnii.nn.deep import Layers, Width
from gcnii.nn.gcnii import Alpha
from gcnii.propagation import Sparse


class APPNP(nn.Module):
    """APPNP: Z ← (1-α) P̃ Z + α f(X), `layers` times, from Z = f(X), a two-layer MLP."""

    def __init__(
        self, d: int, k: int, *, layers: Layers = 10, width: Width = 64, alpha: Alpha = 0.1, dropout: Rate = 0.5
    ):
        super().__init__()
        self.layers, self.alpha = layers, alpha
        self.dense = nn.ModuleDict({"encode": nn.Linear(d, width), "decode": nn.Linear(width, k)})
        self.drop = Dropout(dropout)

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """The hidden layer of f (n, width), before anything is spread."""
        return relu(self.dense["encode"](self.drop(X)))

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        Z: Tensor = self.dense["decode"](self.drop(self.embed(P, X)))
        Z0 = Z
        for _ in range(self.layers):
            Z = torch.lerp(P @ Z, Z0, self.alpha)
        return Z
