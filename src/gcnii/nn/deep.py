"""The network around the convolutions, the same for every deep model of the paper (section 3 and the authors' code)."""

from collections.abc import Callable, Iterable
from math import isqrt
from typing import Annotated

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import relu

from gcnii.dropout import Dropout, keyed, site_key, sites_now
from gcnii.nn.model import Model
from gcnii.nn.recompute import recompute
from gcnii.propagation import Pattern, Sparse

Layers = Annotated[int, "number of convolutions; the two dense layers are not counted"]
Width = Annotated[int, "number of hidden units"]


class Deep(Model):
    """X (n, d) → H0 → one ReLU(conv(P̃, H, H0)) after the other → scores (n, k).

    A convolution takes the dropped-out H and the H0 that was not dropped.  `convs` and `dense` are the paper's two
    groups of weight decay, L2_c and L2_d.
    """

    can_forget = True

    def __init__(self, d: int, k: int, convs: Iterable[nn.Module], width: int, dropout: float):
        super().__init__()
        self.dense = nn.ModuleDict({"encode": nn.Linear(d, width), "decode": nn.Linear(width, k)})
        self.convs = nn.ModuleList(convs)
        self.drop = Dropout(dropout)

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """The last hidden layer (n, width), from which the scores are read."""
        H = H0 = relu(self.dense["encode"](self.drop(X)))
        if self.forgets and torch.is_grad_enabled():
            return self._forgetful(P, H0)
        for conv in self.convs:
            H = conv(P, self.drop(H), H0).relu_()
        return H

    def _forgetful(self, P: Sparse, H0: Tensor) -> Tensor:
        """The same, with the activations of √layers layers at a time computed again in backward."""
        H, convs = H0, list(self.convs)
        length = isqrt(max(len(convs) - 1, 0)) + 1
        for start in range(0, len(convs), length):
            part = convs[start : start + length]
            sites = sites_now()
            key, first = (sites.key, sites.passed) if sites else (site_key(H.device), 0)
            weights = [weight for conv in part for weight in conv.parameters()]
            H = recompute(_runner(part, self.drop, P.pattern, first), P.values, P.transposed, H, H0, key, *weights)
            if sites and self.drop.active:
                sites.passed += len(part)
        return H

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k): logits, never probabilities."""
        scores: Tensor = self.dense["decode"](self.drop(self.embed(P, X)))
        return scores


def _runner(convs: list[nn.Module], drop: Dropout, pattern: Pattern, first: int) -> Callable[..., Tensor]:
    """These layers as a function of tensors alone, with the masks of the sites from `first` on."""
    names = [[name for name, _ in conv.named_parameters()] for conv in convs]

    def run(values: Tensor, transposed: Tensor, H: Tensor, H0: Tensor, key: Tensor, *weights: Tensor) -> Tensor:
        P, left = Sparse(pattern, values, transposed), iter(weights)
        with keyed(key, first):
            for conv, own in zip(convs, names, strict=True):
                H = functional_call(conv, {name: next(left) for name in own}, (P, drop(H), H0)).relu_()
        return H

    return run
