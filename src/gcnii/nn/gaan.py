"""GaAN (Zhang et al. 2018): attention in which every node has a gate for each head."""

from functools import partial

import torch
from torch import Tensor, nn
from torch.func import vmap
from torch.nn.functional import leaky_relu

from gcnii.dropout import Dropout
from gcnii.nn.model import Model, ModelCard, glorot, glorot_dense
from gcnii.nn.settings import Heads, Layers, Rate, Width
from gcnii.propagation import Propagation, Sparse
from gcnii.propagation.attention import attend, row_max, row_softmax
from gcnii.propagation.sparse import dots, row_sums, to_entries

# the authors' sizes for PPI: first layer, a head's keys and values, the gate
EMBED, KEY, VALUE, POOL = 64, 24, 32, 64


class GatedAttention(nn.Module):
    """LeakyReLU(W [x_i, g_i1 Σ_j α_ij1 v_j1, …, g_iK Σ_j α_ijK v_jK] + b) over j ∈ N(i)."""

    # N(i) is without i, as in the paper: the node's own state is concatenated with the heads.
    # authors: a node's link to itself counts where the file has one; here: never, because P̃ has one
    # for each node.
    def __init__(self, d: int, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.value = glorot_dense(d, heads * KEY), glorot_dense(d, heads * VALUE)
        # authors: with a bias; here: without, because it adds the same to all scores of a node,
        # which softmax removes.
        self.key = glorot(d, heads * KEY)
        self.pool, self.context = glorot_dense(d, POOL), glorot_dense(POOL + d, POOL)
        self.gate = glorot_dense(POOL, heads)
        self.out = glorot_dense(d + heads * VALUE, width)

    def forward(self, P: Sparse, H: Tensor) -> Tensor:
        """(d, h) → (n, width)."""
        neighbour = (P.values != 0) & (P.pattern.row_of != P.pattern.columns)
        own = H[: P.shape[0]]
        V = leaky_relu(self.value(H), 0.1).unflatten(1, (self.heads, -1))
        heads = attend(P, self.weights(P, own, H, neighbour), V)
        heads = heads * self.gates(P, H, neighbour)[:, :, None]
        return leaky_relu(self.out(torch.cat([own, heads.flatten(1)], 1)), 0.1)

    def weights(self, P: Sparse, own: Tensor, H: Tensor, neighbour: Tensor) -> Tensor:
        """α (entries, heads): softmax of dot products over the neighbours; 0 at other entries."""
        Q, K = (Z.unflatten(1, (self.heads, -1)) for Z in (self.query(own), H @ self.key))
        # paper: q · k; here: both are divided by √24 first, as in the authors' code.
        E = vmap(partial(dots, P.pattern), in_dims=1, out_dims=1)(Q, K) / KEY
        return row_softmax(P.pattern, E, neighbour)

    def gates(self, P: Sparse, H: Tensor, neighbour: Tensor) -> Tensor:
        """g (n, heads) in (0, 1), from the maximum and mean over the neighbours (0 if none)."""
        # paper: also from x_i, and without a hidden layer; here: the authors' code.
        Z = torch.where(
            neighbour[:, None], to_entries(P.pattern, self.pool(H), end="column"), -torch.inf
        )
        top = row_max(P.pattern, Z)
        top = torch.where(top.isfinite(), top, 0)
        count = row_sums(P.pattern, neighbour.to(H.dtype)).clamp(min=1)
        mean = P.with_values(neighbour / count[P.pattern.row_of]) @ H
        context = leaky_relu(self.context(torch.cat([top, mean], 1)), 0.1)
        return torch.sigmoid(self.gate(context))


class GaAN(Model):
    """GaAN: dense, `layers` layers of gated attention with dropout after each, dense."""

    supports_sampling = True
    card = ModelCard(
        paper="Zhang et al. 2018",
        equation=(
            "x_i ← σ(W [x_i, g_ih Σ_j α_ijh v_jh] + b), α = softmax_j(q_i·k_j), "
            "g_i = sigmoid(pooled neighbours)"
        ),
        recipe={
            **{"lr": 0.01, "decay_conv": 0.0, "decay_dense": 0.0},
            **{"patience": 30, "monitor": "val_score"},
            **{"plateau": 15, "plateau_factor": 0.5, "plateau_floor": 1e-3},
        },
        step_sizes={"gate": 0.1},
        uses_weights=False,
    )

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: Layers = 2,
        width: Width = 128,
        heads: Heads = 8,
        dropout: Rate = 0.1,
    ):
        super().__init__()
        reads = [EMBED, *[width] * (layers - 1)]
        self.dense = nn.ModuleDict(
            {"encode": glorot_dense(d, EMBED), "decode": glorot_dense(width, k)}
        )
        self.convs = nn.ModuleList(GatedAttention(each, width, heads) for each in reads)
        self.drop = Dropout(dropout)

    def embed(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """The last hidden layer (n, width)."""
        H: Tensor = self.dense["encode"](X)
        for l, conv in enumerate(self.convs):
            H = self.drop(conv(P.at(l), H))
        return H

    def forward(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        scores: Tensor = self.dense["decode"](self.embed(P, X))
        return scores
