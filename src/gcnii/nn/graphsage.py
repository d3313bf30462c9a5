"""GraphSAGE (Hamilton et al. 2017): concatenate a node's state with its neighbours' aggregate.

The aggregate is a mean, a pool or an LSTM.  An entry of P that is zero is not a link; the links'
weights matter only to the mean.
"""

from typing import ClassVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, relu

from gcnii.dropout import Dropout
from gcnii.nn.model import Gathering, Model, ModelCard, glorot
from gcnii.nn.settings import FewLayers, Rate, Settings, Width
from gcnii.propagation import Propagation, Sparse
from gcnii.propagation.attention import row_max
from gcnii.propagation.sparse import Pattern, to_entries

LONGEST = 128  # the most neighbours of a node that an LSTM reads


class SAGEConv(Gathering):
    """concat(H W_own, N W_near) before σ, where N aggregates the neighbours."""

    def __init__(self, d: int, aggregated: int, width: int):
        super().__init__()
        self.own, self.neighbours = glorot(d, width), glorot(aggregated, width)

    def forward(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """(columns, d) → (rows, 2 · width)."""
        return torch.cat([H[: P.shape[0]] @ self.own, self.near(P, H)], 1)

    def near(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """N W_near (rows, width)."""
        raise NotImplementedError


class MeanConv(SAGEConv):
    """concat(H W_own, P H W_near) before σ; P is the mean of the neighbours."""

    def __init__(self, d: int, width: int):
        super().__init__(d, d, width)

    def near(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """P H W_near; sparse features are multiplied by the weights first, dense ones by P."""
        P = self.over(P)
        if isinstance(H, Sparse):
            return P.gather(H @ self.neighbours)
        return P.gather(H) @ self.neighbours


class PoolConv(SAGEConv):
    """concat(H W_own, max_{j ∈ N(i)} ReLU(H_j W_pool + b) W_near) before σ, max by element."""

    def __init__(self, d: int, width: int):
        pooled = 4 * width  # authors: 512 at width 128
        super().__init__(d, pooled, width)
        self.pool, self.b = glorot(d, pooled), nn.Parameter(torch.zeros(pooled))

    def near(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """N W_near (rows, width); N is 0 for a node without neighbours, as no ReLU is below."""
        E = to_entries(P.pattern, relu(H @ self.pool + self.b), end="column")
        E = torch.where((P.values != 0)[:, None], E, 0)
        return row_max(P.pattern, E).clamp(min=0) @ self.neighbours


class LSTMConv(SAGEConv):
    """concat(H W_own, LSTM(H_j : j ∈ N(i)) W_near) before σ.

    The LSTM: i, f, g, o = H_j W + h U + b;  c ← σ(f + 1) c + σ(i) tanh(g);  h ← σ(o) tanh(c).
    """

    def __init__(self, d: int, width: int):
        super().__init__(d, width, width)  # authors: 128 at width 128
        self.W, self.U = glorot(d, 4 * width), glorot(width, 4 * width)
        self.b = nn.Parameter(torch.zeros(4 * width))

    def near(self, P: Sparse, H: Tensor | Sparse) -> Tensor:
        """All nodes at once: step t is for those with more than t neighbours, which come first."""
        turns = Turns.of(P.pattern)
        order = _reading_order(P, H)[turns.entries]
        read = to_entries(P.pattern, H @ self.W + self.b, end="column")[order]
        present = (P.values != 0)[order]
        h = c = read.new_zeros(P.shape[0], self.U.shape[0])
        ended = []
        # Split, not sliced: the gradient of each slice would be as large as the whole.
        for now, there in zip(read.split(turns.active), present.split(turns.active), strict=True):
            ended.append(h[len(now) :])
            h, c = self._step(now, there[:, None], h[: len(now)], c[: len(now)])
        return torch.cat([h, *reversed(ended)])[turns.place] @ self.neighbours

    def _step(self, read: Tensor, there: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, f, g, o = (read + h @ self.U).chunk(4, -1)
        cell = (f + 1).sigmoid() * c + i.sigmoid() * g.tanh()
        # A place of P without a link is not read.
        return torch.where(there, o.sigmoid() * cell.tanh(), h), torch.where(there, cell, c)


class Turns:
    """The steps of an LSTM over the entries of each row, the rows with most entries first.

    active   for each step, the number of rows that have an entry to read
    entries  the positions of these entries in the pattern, one step after the other
    place    (rows,) the position of each row in the order of the steps
    """

    def __init__(self, pattern: Pattern):
        count = pattern.rows.diff().long()
        order = torch.argsort(count, descending=True, stable=True)
        steps = torch.arange(int(count.clamp(max=LONGEST).max()), device=count.device)
        self.active = (count > steps[:, None]).sum(1).tolist()
        start = pattern.rows[:-1].long()[order]
        self.entries = torch.cat(
            [start[:active] + t for t, active in enumerate(self.active)] or [start[:0]]
        )
        self.place = torch.argsort(order)

    @staticmethod
    def of(pattern: Pattern) -> "Turns":
        """Made once per pattern, because it waits for the GPU, and a CUDA graph may read it."""
        if pattern not in KNOWN:
            KNOWN[pattern] = Turns(pattern)
        return KNOWN[pattern]


KNOWN: WeakKeyDictionary[Pattern, Turns] = WeakKeyDictionary()


def _reading_order(P: Sparse, H: Tensor | Sparse) -> Tensor:
    """(entries,) the entries of each row in the order in which an LSTM reads them, zeros last."""
    # paper: a random permutation; here: by a number computed from the neighbour's state, because
    # then neither a seed of the evaluation nor the numbering of the nodes changes the scores.
    # authors: of more than 128 neighbours, 128 drawn before training; here: the first 128 in this
    # order.
    line = torch.arange(1, H.shape[1] + 1, device=P.values.device, dtype=P.values.dtype).sin()
    key = (H @ line[:, None]).detach()[:, 0][P.pattern.columns]
    order = torch.argsort(torch.where(P.values != 0, key, torch.inf), stable=True)
    return order[torch.argsort(P.pattern.row_of[order], stable=True)]


RECIPE: Settings = {
    **{"norm": "mean", "batches": "neighbours", "batch_size": 512, "fanout": (10, 25), "clip": 5.0},
    **{"lr": 0.01, "decay_conv": 0.0, "decay_dense": 0.0, "epochs": 10, "monitor": "last"},
}


class GraphSAGE(Model):
    """X → ReLU(convolution), `layers` times → rows of length 1 → dense → scores."""

    supports_sampling = True
    conv: ClassVar[type[MeanConv] | type[PoolConv] | type[LSTMConv]]

    def __init__(
        self, d: int, k: int, *, layers: FewLayers = 2, width: Width = 128, dropout: Rate = 0.0
    ):
        super().__init__()
        self.convs = nn.ModuleList(self.conv(2 * width if l else d, width) for l in range(layers))
        self.dense = nn.ModuleDict({"decode": nn.Linear(2 * width, k)})
        self.drop = Dropout(dropout)

    def embed(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """The last hidden layer (n, 2 · width), each row divided by its length."""
        H = X
        for l, conv in enumerate(self.convs):
            # authors: no ReLU after the last layer; here: after each, as in the paper's algorithm 1
            H = relu(conv(P.at(l), self.drop(H)))
        assert isinstance(H, Tensor)  # there is at least one layer
        return normalize(H, eps=1e-6)

    def forward(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        scores: Tensor = self.dense["decode"](self.drop(self.embed(P, X)))
        return scores


class GraphSAGEMean(GraphSAGE):
    """GraphSAGE with the mean of the neighbours."""

    card = ModelCard(
        paper="Hamilton et al. 2017",
        equation="H ← σ(concat(H W, D^-1 A H W'))",
        recipe=RECIPE,
        when="the graph exceeds memory: samples neighbours",
    )
    supports_history = uses_types = True
    conv = MeanConv


class GraphSAGEPool(GraphSAGE):
    """GraphSAGE with the maximum over a dense layer of each neighbour."""

    card = ModelCard(
        paper="Hamilton et al. 2017",
        equation="H_i ← σ(concat(H_i W, max_j σ(H_j W_p + b) W'))",
        recipe=RECIPE,
        uses_weights=False,
    )
    conv = PoolConv


class GraphSAGELSTM(GraphSAGE):
    """GraphSAGE with an LSTM that reads the neighbours one by one."""

    card = ModelCard(
        paper="Hamilton et al. 2017",
        equation="H_i ← σ(concat(H_i W, LSTM(H_j : j ∈ N(i)) W'))",
        recipe=RECIPE,
        uses_weights=False,
    )
    conv = LSTMConv
