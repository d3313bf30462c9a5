"""A network linearised at X: its scores are F(X) + J dX, with the ReLUs' masks as they are at X."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from gcnii.propagation import Sparse
from gcnii.train.hardware import suited_threads

Pull = Callable[[Tensor], Tensor]


@contextmanager
def linearised(model: nn.Module, P: Sparse, X: Tensor | Sparse) -> Iterator[tuple[Tensor, Pull]]:
    """The scores (n, k) without dropout, and the product G (n, k) → Jᵀ G (n, d).

    Backwards from the scores, because there are fewer scores than features: k products give J at a
    node, where forward mode would need d.
    """
    training = {name: module.training for name, module in model.named_modules()}
    at = X.to_dense().detach().clone().requires_grad_()
    try:
        with suited_threads(at.numel()):
            with torch.enable_grad():
                scores: Tensor = model.eval()(P, at)

            def pull(G: Tensor) -> Tensor:
                (product,) = torch.autograd.grad(
                    scores, at, G.to(scores), retain_graph=True, materialize_grads=True
                )
                return product

            yield scores.detach(), pull
    finally:
        for name, module in model.named_modules():
            module.training = training[name]
