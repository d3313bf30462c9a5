"""SGC (Wu et al. 2019): GCN without its nonlinearities, one linear map after K propagations."""

from torch import Tensor, nn

from gcnii.nn.model import Model, ModelCard
from gcnii.nn.settings import Layers
from gcnii.propagation import Sparse, to_dense


class SGC(Model):
    """SGC: P̃^K X W + b, with K = `layers`."""

    card = ModelCard(
        paper="Wu et al. 2019",
        equation="P̃^K X W + b",
        recipe={"lr": 0.2, "decay_dense": 1e-5, "epochs": 100, "monitor": "last"},
    )
    can_be_cut = True

    def __init__(self, d: int, k: int, *, layers: Layers = 2):
        super().__init__()
        self.layers = layers
        self.dense = nn.ModuleDict({"decode": nn.Linear(d, k)})

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """P̃^K X (n, d)."""
        H = to_dense(X)
        for _ in range(self.layers):
            H = P @ H
        return H

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k); the product by W comes first, because it narrows X."""
        W, b = self.dense["decode"].parameters()
        Z = X @ W.T
        for _ in range(self.layers):
            Z = P @ Z
        return Z + b
