"""GAT (Veličković et al. 2018): each node learns how much of each neighbour it gathers.

On citations as Fey & Lenssen (2019) ran it, because the paper quotes their numbers; and a wider
network for PPI.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, leaky_relu

from gcnii.dropout import Dropout
from gcnii.nn.model import Model, ModelCard, glorot
from gcnii.nn.settings import FewLayers, Heads, HeadWidth, OutHeads, Rate
from gcnii.propagation import Propagation, Sparse
from gcnii.propagation.attention import attend, row_softmax
from gcnii.propagation.sparse import to_entries


class Attention(nn.Module):
    """Σ_j α_ij W h_j per head, α_ij = softmax_j(LeakyReLU(a1·W h_i + a2·W h_j)) over N(i) ∪ {i}."""

    # authors: e_ij has two constants more, and W h is dropped out, too; here: neither, as in Fey &
    # Lenssen's runs.
    def __init__(self, d: int, width: int, heads: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.W = glorot(d, heads * width)
        self.a1, self.a2 = glorot(heads, width), glorot(heads, width)
        self.drop = Dropout(dropout)

    def forward(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """(d, h) → (n, heads, width); of P's values, it only matters which are zero."""
        Z = (H @ self.W).unflatten(1, (self.heads, -1))
        own = to_entries(P.pattern, (Z[: P.shape[0]] * self.a1).sum(-1), end="row")
        theirs = to_entries(P.pattern, (Z * self.a2).sum(-1), end="column")
        alpha = row_softmax(P.pattern, leaky_relu(own + theirs, 0.2), P.values != 0)
        return attend(P, self.drop(alpha), Z)


class GATConv(Attention):
    """Attention with the heads side by side, + b."""

    def __init__(self, d: int, width: int, heads: int, dropout: float):
        super().__init__(d, width, heads, dropout)
        self.b = nn.Parameter(torch.zeros(heads * width))

    def forward(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """→ (n, heads · width)."""
        return super().forward(P, H).flatten(1) + self.b


class GATMean(Attention):
    """Attention averaged over the heads, + b."""

    def __init__(self, d: int, width: int, heads: int, dropout: float):
        super().__init__(d, width, heads, dropout)
        self.b = nn.Parameter(torch.zeros(width))

    def forward(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """→ (n, width)."""
        return super().forward(P, H).mean(1) + self.b


class GAT(Model):
    """GAT: `layers` layers of attention, ELU and dropout between them."""

    supports_sampling = True
    card = ModelCard(
        paper="Veličković et al. 2018",
        equation="h_i ← σ(Σ_j α_ij W h_j + b), α_ij = softmax_j(LeakyReLU(a1·W h_i + a2·W h_j))",
        recipe={
            **{"lr": 0.005, "decay_conv": 5e-4, "decay_dense": 5e-4, "epochs": 1000},
            **{"patience": 1000, "monitor": "val_loss", "window": 100, "window_from": 500},
        },
        uses_weights=False,
        when="some neighbours matter more than others: attention",
    )

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: FewLayers = 2,
        width: HeadWidth = 8,
        heads: Heads = 8,
        out_heads: OutHeads = 1,
        dropout: Rate = 0.6,
    ):
        super().__init__()
        self.widths = (d, *[heads * width] * (layers - 1))  # what each layer reads
        self.convs = nn.ModuleList(
            GATConv(each, width, heads, dropout) for each in self.widths[:-1]
        )
        self.convs.append(GATMean(self.widths[-1], k, out_heads, dropout))
        self.drop = Dropout(dropout)

    def layer(self, l: int, P: Propagation, H: Tensor | Sparse) -> Tensor:
        """Layer l, counted from 0, before σ."""
        scores: Tensor = self.convs[l](P.at(l), self.drop(H))
        return scores

    def embed(self, P: Propagation, X: Tensor | Sparse) -> Tensor | Sparse:
        """What the last layer reads: (n, heads · width), or X where there is only one layer."""
        H = X
        for l in range(len(self.convs) - 1):
            H = elu(self.layer(l, P, H))
        return H

    def forward(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        return self.layer(len(self.convs) - 1, P, self.embed(P, X))


class GATPPI(GAT):
    """GAT with a linear skip connection around every layer, for PPI."""

    # paper: a skip around the middle layer alone; here: around each, as in PyG's example.
    card = ModelCard(
        paper="Veličković et al. 2018, section 3.3",
        equation="h_i ← σ(Σ_j α_ij W h_j + b + W' h_i + b'), α_ij as in gat",
        recipe={
            **{"lr": 0.005, "decay_conv": 0.0, "decay_dense": 0.0, "epochs": 100_000},
            **{"patience": 100, "monitor": "val_either"},
        },
        uses_weights=False,
    )

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: FewLayers = 3,
        width: HeadWidth = 256,
        heads: Heads = 4,
        out_heads: OutHeads = 6,
        dropout: Rate = 0.0,
    ):
        super().__init__(
            d, k, layers=layers, width=width, heads=heads, out_heads=out_heads, dropout=dropout
        )
        ends = zip(self.widths, (*self.widths[1:], k), strict=True)
        self.dense = nn.ModuleList(nn.Linear(*both) for both in ends)

    def layer(self, l: int, P: Propagation, H: Tensor | Sparse) -> Tensor:
        """Layer l, counted from 0, before σ."""
        H = self.drop(H)
        gathered, skipped = self.convs[l](P.at(l), H), self.dense[l](H)
        scores: Tensor = gathered + skipped[: len(gathered)]
        return scores
