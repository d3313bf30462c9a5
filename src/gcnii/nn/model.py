"""What every model is: `model(P, X) → scores`, and a card that says where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor, nn

from gcnii.propagation import Sparse


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """A model's card.

    paper     who published it
    equation  what makes it this model and no other
    tables    of the GCNII paper in which it stands
    recipe    how its authors train it, where that differs from Recipe's defaults; a data set's
              preset goes before it
    step_sizes  factors of the step size for the weights of modules of this name
    """

    paper: str
    equation: str
    tables: tuple[str, ...] = ()
    recipe: Mapping[str, Any] = field(default_factory=dict)
    step_sizes: Mapping[str, float] = field(default_factory=dict)


class Model(nn.Module):
    """Settings are the keyword-only arguments; weights lie below `convs` or `dense`, the two groups
    of weight decay.
    """

    card: ClassVar[ModelCard]
    # Whether layer l gathers over P.at(l) and takes a node's own state from H[: P.at(l).shape[0]],
    # so that a step of training may see some neighbours alone; `layers` then says how often it
    # gathers.
    supports_sampling: ClassVar[bool] = False
    # Whether it gathers by products, P.at(l).gather(H), which old activations can make more exact.
    supports_history: ClassVar[bool] = False

    # Whether it can forget activations and compute them again in backward, and whether it does.
    can_recompute: ClassVar[bool] = False
    recomputes: bool = False

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor | Sparse:
        """The last hidden layer (n, width)."""
        raise NotImplementedError

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k): logits, never probabilities."""
        raise NotImplementedError
