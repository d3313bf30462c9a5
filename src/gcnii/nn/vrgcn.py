"""VR-GCN (Chen, Zhu & Song 2018): one neighbour is drawn, old activations replace the others.

The network itself is plain; the variance is reduced in `gather`, which on the full graph is nothing
but a product.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from gcnii.dropout import Dropout
from gcnii.nn.model import Model, ModelCard, glorot, glorot_dense
from gcnii.nn.settings import Layers, Rate, Settings, Width
from gcnii.propagation import Propagation, Sparse, to_dense

DENSE = 2  # dense layers after each gathering

RECIPE: Settings = {
    # authors: P X is computed in advance, so that the first gathering is exact; here: it draws all
    # neighbours.
    **{"norm": "mean", "batches": "neighbours", "batch_size": 512},
    **{"fanout": (1, 0), "history": "cv"},
    **{"lr": 0.01, "decay_conv": 0.0, "decay_dense": 0.0, "epochs": 800, "monitor": "last"},
}


class NormedDense(nn.Module):
    """ReLU(scale · (Z - mean) / √(variance + 1e-9) + offset) over each row of Z = H W.

    Cluster-GCN has the same layer.
    """

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


class VRGCN(Model):
    """VR-GCN with CV: H ← two dense layers on concat(H, P H), `layers` times; the last linear."""

    card = ModelCard(
        paper="Chen, Zhu & Song 2018; CV",
        equation="P H ≈ P̂ (H - h̄) + P h̄ with old activations h̄",
        recipe=RECIPE,
    )
    supports_sampling = True
    supports_history = True

    def __init__(
        self, d: int, k: int, *, layers: Layers = 2, width: Width = 512, dropout: Rate = 0.2
    ):
        super().__init__()
        widths = [[2 * (width if l else d), *[width] * DENSE] for l in range(layers)]
        widths[-1].pop()  # the last of them is `decode`
        self.convs = nn.ModuleList(
            nn.ModuleList(NormedDense(*ends) for ends in pairwise(block)) for block in widths
        )
        self.dense = nn.ModuleDict({"decode": glorot_dense(width, k, bias=False)})
        self.drop = Dropout(dropout)

    def embed(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """The last hidden layer (n, width)."""
        H = to_dense(X)
        for l, block in enumerate(self.convs):
            Q = P.at(l)
            H = torch.cat([H[: Q.shape[0]], Q.gather(H)], 1)
            for dense in block.children():
                H = dense(self.drop(H))
        return H

    def forward(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        scores: Tensor = self.dense["decode"](self.drop(self.embed(P, X)))
        return scores


class VRGCNDropout(VRGCN):
    """VR-GCN with CVD: the same network, which also computes M, that is H without dropout."""

    card = ModelCard(
        paper="Chen, Zhu & Song 2018; CVD",
        equation="P H ≈ P̂ (M - h̄) + P h̄ + √R P_drawn (H - M), M being H without dropout",
        recipe=RECIPE,
    )

    def embed(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """The last hidden layer (n, width)."""
        if not self.training:  # M would be H
            return super().embed(P, X)
        H = M = to_dense(X)
        for l, block in enumerate(self.convs):
            Q = P.at(l)
            own, mean = H[: Q.shape[0]], M[: Q.shape[0]]
            H, M = torch.cat([own, Q.gather(H, M)], 1), torch.cat([mean, Q.gather(M)], 1)
            for dense in block.children():
                # authors: no gradient through M; here: through both, because only then it is the
                # gradient of the estimate.
                H, M = dense(self.drop(H)), dense(M)
        return H
