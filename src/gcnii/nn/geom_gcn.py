"""Geom-GCN (Pei et al. 2020): neighbours in the graph and in a plane, weights by direction."""

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from gcnii.dropout import Dropout
from gcnii.errors import InputError
from gcnii.nn.model import Model, ModelCard
from gcnii.nn.settings import Layers, Rate, Settings, Width
from gcnii.propagation import RelationalMatrix, Sparse
from gcnii.propagation.relations import DIVISIONS


class GeomGCNConv(nn.Module):
    """Before σ:  ‖_r P_r H W_r, the divisions of P side by side."""

    def __init__(self, d: int, width: int):
        super().__init__()
        bound = (6 / (d + width)) ** 0.5  # Xavier-uniform for each W_r
        self.width = width
        self.W = nn.Parameter(torch.empty(d, DIVISIONS * width).uniform_(-bound, bound))

    def forward(self, P: RelationalMatrix, H: Tensor | Sparse) -> Tensor:
        """(n, d) → (n, DIVISIONS · width)."""
        return (P.apart @ self.messages(H)).reshape(P.shape[0], -1)

    def messages(self, H: Tensor | Sparse) -> Tensor:
        """(n, d) → (n · DIVISIONS, width): H W_r of node u at u · DIVISIONS + r."""
        # One product for all divisions; nine products, and nine sparse ones, take 1.6 times as long
        # on Chameleon.
        return (H @ self.W).reshape(-1, self.width)


class GeomGCNMeanConv(GeomGCNConv):
    """Before σ, the mean over the divisions:  1/9 Σ_r P_r H W_r."""

    def forward(self, P: RelationalMatrix, H: Tensor | Sparse) -> Tensor:
        """(n, d) → (n, width)."""
        # authors: the divisions that occur, 7 in the Poincaré plane of Chameleon; here: always 9,
        # so that the shape of the weights does not depend on the graph.
        return P.merged @ self.messages(H) / DIVISIONS


def _recipe(geometry: str) -> Settings:
    # authors: meant to keep the weights of the best epoch, but tested those of the last, because
    # their copy was only a reference; here: the weights of the best epoch.
    stop = {"epochs": 5000, "patience": 100, "monitor": "val_either"}
    plateau = {"plateau": 50, "plateau_factor": 0.8}
    links = {"geometry": geometry, "direction": "both", "loops": "remove"}
    return {"lr": 0.05, "decay_conv": 5e-6, "decay_dense": 5e-6, **stop, **plateau, **links}


def _card(geometry: str) -> ModelCard:
    return ModelCard(
        paper="Pei et al. 2020",
        equation=(
            "H ← σ(‖_r P_r H W_r) over 2 neighbourhoods × 4 quadrants and the node itself; "
            "the mean at the end"
        ),
        recipe=_recipe(geometry),
        uses_weights=False,
    )


class GeomGCNI(Model):
    """Geom-GCN-I: neighbours by direction in an Isomap plane; the last of `layers` averages."""

    card = _card("isomap")

    def __init__(
        self, d: int, k: int, *, layers: Layers = 2, width: Width = 16, dropout: Rate = 0.5
    ):
        super().__init__()
        inner = DIVISIONS * width
        hidden = [GeomGCNConv(inner if l else d, width) for l in range(layers - 1)]
        self.convs = nn.ModuleList([*hidden, GeomGCNMeanConv(inner if hidden else d, k)])
        self.drop = Dropout(dropout)

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor | Sparse:
        """What the last convolution reads: (n, DIVISIONS · width), or X if there is only one."""
        P, H = _divided(P), X
        for conv in self.convs[:-1]:
            H = relu(conv(P, self.drop(H)))
        return H

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        scores: Tensor = self.convs[-1](_divided(P), self.drop(self.embed(P, X)))
        return scores


class GeomGCNP(GeomGCNI):
    """Geom-GCN-P: the same in a Poincaré disk."""

    card = _card("poincare")


class GeomGCNS(GeomGCNI):
    """Geom-GCN-S: the same in a struc2vec plane."""

    card = _card("struc2vec")


def _divided(P: Sparse) -> RelationalMatrix:
    if not isinstance(P, RelationalMatrix):
        raise InputError(
            "Geom-GCN sorts neighbours by their direction; "
            "set geometry to isomap, poincare or struc2vec"
        )
    return P
