"""APPNP and PPNP (Klicpera et al. 2019; equations 3 and 2): an MLP and personalised PageRank.

As Fey & Lenssen (2019) ran APPNP, because the paper quotes their numbers: with biases, and without
dropout on the edges.
"""

from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from gcnii.dropout import Dropout
from gcnii.errors import InputError
from gcnii.nn.gcnii import blend
from gcnii.nn.model import Gathering, Model, ModelCard
from gcnii.nn.settings import Alpha, Layers, Rate, Width
from gcnii.propagation import Sparse

LARGEST = 20_000  # nodes: an inverse of 1.6 GB in float32
_INVERSES: WeakKeyDictionary[Sparse, dict[float, Tensor]] = WeakKeyDictionary()


class Predict(Model):
    """f: X → scores (n, k), a two-layer MLP, before the propagation."""

    def __init__(self, d: int, k: int, width: int, dropout: float):
        super().__init__()
        self.dense = nn.ModuleDict({"encode": nn.Linear(d, width), "decode": nn.Linear(width, k)})
        self.drop = Dropout(dropout)

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """The hidden layer of f (n, width)."""
        return relu(self.dense["encode"](self.drop(X)))

    def predict(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """f(X)."""
        scores: Tensor = self.dense["decode"](self.drop(self.embed(P, X)))
        return scores


class APPNP(Predict):
    """APPNP: Z ← (1-α) P̃ Z + α f(X), `layers` times, from Z = f(X), a two-layer MLP."""

    card = ModelCard(
        paper="Klicpera et al. 2019; equation 3",
        equation="Z ← (1-α) P̃ Z + α f(X)",
        recipe={"epochs": 200},
        when="few weights: an MLP whose scores are spread over the graph",
    )

    batched = frozenset({"alpha", "dropout"})
    can_be_cut = uses_types = True

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: Layers = 10,
        width: Width = 64,
        alpha: Alpha = 0.1,
        dropout: Rate = 0.5,
    ):
        super().__init__(d, k, width, dropout)
        self.convs = nn.ModuleList(Gathering() for _ in range(layers))
        self.alpha: float | Tensor = alpha

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        Z = Z0 = self.predict(P, X)
        for conv in self.convs:
            Z = blend(conv.over(P) @ Z, Z0, self.alpha)  # type: ignore[operator]
        return Z


class PPNP(Predict):
    """PPNP: Z = α (I - (1-α) P̃)^-1 f(X), the limit of APPNP; for up to 20,000 nodes."""

    # paper: equation 2 prints Ã; here: P̃, of which equation 3 is the iteration.
    card = ModelCard(
        paper="Klicpera et al. 2019; equation 2",
        equation="Z = α (I - (1-α) P̃)^-1 f(X)",
        recipe={"epochs": 200},
    )

    def __init__(
        self, d: int, k: int, *, width: Width = 64, alpha: Alpha = 0.1, dropout: Rate = 0.5
    ):
        super().__init__(d, k, width, dropout)
        self.alpha = alpha

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        return resolvent(P, self.alpha) @ self.predict(P, X)


def resolvent(P: Sparse, alpha: float) -> Tensor:
    """α (I - (1-α) P)^-1 (n, n), made once per P."""
    n = P.shape[0]
    if n > LARGEST:
        raise InputError(
            f"ppnp inverts an n × n matrix and takes graphs of up to {LARGEST} nodes, got {n}; "
            "use appnp, which comes to the same by iteration"
        )
    known = _INVERSES.setdefault(P, {})
    if alpha not in known:
        I = torch.eye(n, dtype=P.dtype, device=P.device)
        known[alpha] = torch.linalg.inv((I - (1 - alpha) * P.to_dense()) / alpha)
    return known[alpha]
