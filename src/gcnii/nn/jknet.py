"""JKNet (Xu et al. 2018): the scores are read from all layers, not only from the last one.

`jknet` is the form of DropEdge (Rong et al. 2020), whose numbers the paper quotes: the layers are
concatenated, and a last graph convolution reads them.  The others are Xu et al.'s own: GCN layers,
one of three ways to join them, and a linear map.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from gcnii.dropout import Dropout
from gcnii.nn.dropedge import RECIPE, DropEdgeConv, DropEdgeNetwork, between
from gcnii.nn.gcn import GCNConv
from gcnii.nn.model import Model, ModelCard
from gcnii.nn.settings import BatchNorm, Layers, Rate, SelfWeight, Width
from gcnii.propagation import Sparse


class JKNet(DropEdgeNetwork):
    """JKNet as in DropEdge: a last convolution reads all layers of the chain."""

    card = ModelCard(
        paper="Xu et al. 2018, in the form of Rong et al. 2020",
        equation="conv([x_n, x_0, x_1, …]) of a chain x_i = σ(conv(x_i-1))",
        recipe={"lr": 0.005, **RECIPE},
    )

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: Layers = 4,
        width: Width = 128,
        self_weight: SelfWeight = False,
        batch_norm: BatchNorm = False,
        dropout: Rate = 0.5,
    ):
        count = between(layers)
        inner = (DropEdgeConv(width, width, self_weight, batch_norm) for _ in range(count))
        super().__init__(d, k, inner, 1 + count, width, self_weight, batch_norm, dropout)

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """The hidden layers side by side, the last one first: (n, (layers - 1) · width)."""
        chain = [self.layer(0, P, X)]
        for l in range(1, len(self.convs) - 1):
            chain.append(self.layer(l, P, chain[-1]))
        return torch.cat([chain[-1], *chain[:-1]], 1)


class Jumping(Model):
    """X → h_1 … h_K, the outputs of GCN layers → joined → a linear map → scores (n, k)."""

    def __init__(self, d: int, k: int, layers: int, width: int, joined: int, dropout: float):
        super().__init__()
        self.convs = nn.ModuleList(GCNConv(width if l else d, width) for l in range(layers))
        self.dense = nn.ModuleDict({"decode": nn.Linear(joined, k)})
        self.drop = Dropout(dropout)

    def join(self, chain: list[Tensor]) -> Tensor:
        """One matrix from the layers (n, width)."""
        raise NotImplementedError

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """The layers, joined."""
        H, chain = X, []
        for conv in self.convs:
            H = self.drop(relu(conv(P, H)))
            chain.append(H)
        return self.join(chain)

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        scores: Tensor = self.dense["decode"](self.embed(P, X))
        return scores


def _card(equation: str) -> ModelCard:
    recipe = {"lr": 0.005, "decay_conv": 5e-4, "epochs": 400}
    return ModelCard(paper="Xu et al. 2018", equation=equation, recipe=recipe)


class JKNetConcat(Jumping):
    """JKNet with its layers concatenated, read by a linear map."""

    card = _card("[h_1, …, h_K] W + b of GCN layers h")

    def __init__(
        self, d: int, k: int, *, layers: Layers = 2, width: Width = 32, dropout: Rate = 0.5
    ):
        super().__init__(d, k, layers, width, layers * width, dropout)

    def join(self, chain: list[Tensor]) -> Tensor:
        """(n, layers · width)."""
        return torch.cat(chain, 1)


class JKNetMax(Jumping):
    """JKNet with the maximum over its layers, unit by unit, read by a linear map."""

    card = _card("max(h_1, …, h_K) W + b of GCN layers h")

    def __init__(
        self, d: int, k: int, *, layers: Layers = 2, width: Width = 32, dropout: Rate = 0.5
    ):
        super().__init__(d, k, layers, width, width, dropout)

    def join(self, chain: list[Tensor]) -> Tensor:
        """(n, width)."""
        return torch.stack(chain).amax(0)


class JKNetLSTM(Jumping):
    """JKNet with a mean of its layers, weighted for each node by an LSTM; read by a linear map."""

    # Table 4 quotes Xu et al., whose layers on PPI are GAT's; here: GCN's, as on the citations.
    card = _card(
        "(Σ_t a_t h_t) W + b of GCN layers h, a = softmax_t of [LSTM(h), backward LSTM(h)]_t · v"
    )

    def __init__(
        self, d: int, k: int, *, layers: Layers = 2, width: Width = 32, dropout: Rate = 0.5
    ):
        super().__init__(d, k, layers, width, width, dropout)
        self.dense["attend"] = LayerAttention(width, max(1, layers * width // 2))

    def join(self, chain: list[Tensor]) -> Tensor:
        """(n, width)."""
        H = torch.stack(chain)
        attention: Tensor = self.dense["attend"](H).softmax(0)
        return (attention[..., None] * H).sum(0)


class LayerAttention(nn.Module):
    """H (K, n, width) → (K, n): the score of each of K layers for a node, before the softmax."""

    def __init__(self, width: int, states: int):
        super().__init__()
        self.ahead, self.back = LSTM(width, states), LSTM(width, states)
        # A bias would add the same to all layers of a node, which the softmax removes.
        bound = (2 * states) ** -0.5
        self.v = nn.Parameter(torch.empty(2 * states).uniform_(-bound, bound))

    def forward(self, H: Tensor) -> Tensor:
        """[LSTM(H), backward LSTM(H)] v."""
        return torch.cat([self.ahead(H), self.back(H.flip(0)).flip(0)], -1) @ self.v


class LSTM(nn.Module):
    """[i, f, g, o] = x U + h V + b;  c ← σ(f) c + σ(i) tanh(g);  h ← σ(o) tanh(c)."""

    def __init__(self, width: int, states: int):
        super().__init__()
        bound = states**-0.5
        self.U = nn.Parameter(torch.empty(width, 4 * states).uniform_(-bound, bound))
        self.V = nn.Parameter(torch.empty(states, 4 * states).uniform_(-bound, bound))
        self.b = nn.Parameter(torch.empty(4 * states).uniform_(-bound, bound))

    def forward(self, X: Tensor) -> Tensor:
        """X (steps, n, width) → h (steps, n, states); h and c start at zero."""
        h = c = X.new_zeros(X.shape[1], len(self.V))
        states = []
        for x in X @ self.U + self.b:
            i, f, g, o = (x + h @ self.V).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            states.append(h)
        return torch.stack(states)
