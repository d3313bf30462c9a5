"""Cluster-GCN (Chiang et al. 2019): more weight for a node's own state, trained by clusters."""

import torch
from torch import Tensor, nn

from gcnii.dropout import Dropout
from gcnii.nn.model import Model, ModelCard, glorot_dense
from gcnii.nn.settings import Layers, Rate, Width
from gcnii.nn.vrgcn import NormedDense
from gcnii.propagation import Sparse, to_dense


class ClusterGCN(Model):
    """Cluster-GCN: ReLU(LayerNorm(concat(P H, H) W)), `layers` times; the last one is linear."""

    card = ModelCard(
        paper="Chiang et al. 2019, with diagonal enhancement",
        equation="H ← σ(LN(concat(A' H, H) W)), A' = D̃^-1 Ã + diag(D̃^-1 Ã)",
        recipe={
            **{"norm": "enhanced", "batches": "clusters", "clusters": 50, "batch_size": 1},
            **{"lr": 0.01, "decay_conv": 0.0, "decay_dense": 0.0, "epochs": 400, "monitor": "last"},
        },
        uses_weights=False,  # the first layer sums over the neighbours as they are
        when="the graph exceeds memory: trains cluster by cluster",
    )

    def __init__(
        self, d: int, k: int, *, layers: Layers = 5, width: Width = 2048, dropout: Rate = 0.2
    ):
        super().__init__()
        self.convs = nn.ModuleList(
            NormedDense(2 * (width if l else d), width) for l in range(layers - 1)
        )
        self.dense = nn.ModuleDict(
            {"decode": glorot_dense(2 * (width if layers > 1 else d), k, bias=False)}
        )
        self.drop = Dropout(dropout)

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """What the last layer reads: concat(P H, H) (n, 2 · width)."""
        H = to_dense(X)
        # paper: the same layer throughout; here: the authors' code, whose first layer sums over the
        # neighbours.
        H = torch.cat([neighbour_sum(P) @ H, H], 1)
        for conv in self.convs:
            H = conv(self.drop(H))
            H = torch.cat([P @ H, H], 1)
        return H

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        scores: Tensor = self.dense["decode"](self.drop(self.embed(P, X)))
        return scores


def neighbour_sum(P: Sparse) -> Sparse:
    """A: ones where P has a link between different nodes."""
    links = (P.values != 0) & (P.pattern.row_of != P.pattern.columns)
    return P.with_values(links.to(P.values.dtype))
