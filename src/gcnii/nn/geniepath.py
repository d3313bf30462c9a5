"""GeniePath (Liu et al. 2019): attention selects neighbours, an LSTM's gates select hops."""

import torch
from torch import Tensor, nn

from gcnii.nn.model import Model, ModelCard, glorot
from gcnii.nn.settings import Layers, Width
from gcnii.propagation import Propagation, Sparse
from gcnii.propagation.attention import row_softmax
from gcnii.propagation.sparse import to_entries


class Breadth(nn.Module):
    """tanh(W Σ_j α_ij h_j), α_ij = softmax_j(v·tanh(W_s h_i + W_d h_j)) over j ∈ N(i) ∪ {i}."""

    def __init__(self, width: int):
        super().__init__()
        self.W, self.W_s, self.W_d = (glorot(width, width) for _ in range(3))
        self.v = glorot(width, 1)

    def forward(self, P: Sparse, H: Tensor) -> Tensor:
        """(d, width) → (n, width)."""
        own = to_entries(P.pattern, H[: P.shape[0]] @ self.W_s, end="row")
        theirs = to_entries(P.pattern, H @ self.W_d, end="column")
        alpha = row_softmax(P.pattern, torch.tanh(own + theirs) @ self.v, P.values != 0)
        return torch.tanh(P.with_values(alpha[:, 0]) @ H @ self.W)


class Depth(nn.Module):
    """c ← σ(W_f z) ⊙ c + σ(W_i z) ⊙ tanh(W_c z); the output is σ(W_o z) ⊙ tanh(c)."""

    def __init__(self, d: int, width: int):
        super().__init__()
        # W_i, W_f, W_o and W_c, one below the other
        self.gates = nn.Linear(d, 4 * width, bias=False)

    def forward(self, Z: Tensor, C: Tensor) -> tuple[Tensor, Tensor]:
        """Z (n, d) and the memory C (n, width) → the output and the new memory."""
        i, f, o, c = self.gates(Z).chunk(4, -1)
        C = torch.sigmoid(f) * C + torch.sigmoid(i) * torch.tanh(c)
        return torch.sigmoid(o) * torch.tanh(C), C


class AdaptivePath(nn.Module):
    """Breadth gathers one hop further, and depth reads what it gathered."""

    def __init__(self, width: int):
        super().__init__()
        self.breadth, self.depth = Breadth(width), Depth(width, width)

    def forward(self, P: Sparse, H: Tensor, C: Tensor) -> tuple[Tensor, Tensor]:
        """State H and memory C of the nodes that P gathers from → those of the gathering nodes."""
        Z = self.breadth(P, H)
        after: tuple[Tensor, Tensor] = self.depth(Z, C[: len(Z)])
        return after


class LazyPath(nn.Module):
    """Breadth and depth of GeniePath-lazy, whose breadth functions form a chain of their own."""

    def __init__(self, width: int):
        super().__init__()
        self.breadth, self.depth = Breadth(width), Depth(2 * width, width)


RECIPE = {
    "lr": 0.005,
    "decay_conv": 0.0,
    "decay_dense": 0.0,
    "epochs": 100,
    "patience": 100,
    "monitor": "val_score",
}


class GeniePath(Model):
    """GeniePath: in each layer, breadth gathers one hop further and depth selects what to keep."""

    supports_sampling = True
    card = ModelCard(
        paper="Liu et al. 2019",
        equation=(
            "z_i = tanh(W Σ_j α_ij h_j), c ← f(z) ⊙ c + i(z) ⊙ tanh(W_c z), h ← o(z) ⊙ tanh(c)"
        ),
        recipe=RECIPE,
        uses_weights=False,
    )
    path: type[nn.Module] = AdaptivePath

    def __init__(self, d: int, k: int, *, layers: Layers = 4, width: Width = 256):
        super().__init__()
        self.dense = nn.ModuleDict({"encode": nn.Linear(d, width), "decode": nn.Linear(width, k)})
        self.convs = nn.ModuleList(self.path(width) for _ in range(layers))

    def embed(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """The last state (n, width)."""
        H: Tensor = self.dense["encode"](X)
        C = torch.zeros_like(H)
        for l, path in enumerate(self.convs):
            H, C = path(P.at(l), H, C)
        return H

    def forward(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        scores: Tensor = self.dense["decode"](self.embed(P, X))
        return scores


class GeniePathLazy(GeniePath):
    """GeniePath-lazy: first a chain of breadth functions, then depth over what each gathered."""

    # PyG's example: all breadth functions read the first state, so that a node sees one hop however
    # many layers there are; here: each reads what the one before gathered, as in the paper.
    card = ModelCard(
        paper="Liu et al. 2019, the lazy variant",
        equation="h_t = tanh(W Σ_j α_ij h_t-1), then μ and c by LSTM gates of [h_t, μ]",
        recipe=RECIPE,
        uses_weights=False,
    )
    path = LazyPath

    def embed(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """The last state (n, width)."""
        chain: list[Tensor] = [self.dense["encode"](X)]
        paths = [path for path in self.convs if isinstance(path, LazyPath)]
        for l, path in enumerate(paths):
            chain.append(path.breadth(P.at(l), chain[-1]))
        rows = len(chain[-1])  # the nodes to score come first in every hop
        M = chain[0][:rows]
        C = torch.zeros_like(M)
        for H, path in zip(chain[1:], paths, strict=True):
            M, C = path.depth(torch.cat([H[:rows], M], 1), C)
        return M
