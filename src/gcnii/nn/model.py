"""The interface of every model: `model(P, X) → scores`, and a card that says where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor, nn

from gcnii.errors import InputError
from gcnii.nn.settings import Settings
from gcnii.propagation import HOW, Propagation, Sparse


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """Where a model comes from, and how its authors train it.

    paper         who published it
    equation      what distinguishes it from other models
    recipe        how its authors train it, where that differs from Recipe's defaults; a data set's
                  preset takes precedence
    step_sizes    factors of the step size for the weights of the modules of these names
    uses_weights  False if edge weights would have no effect, or not in all layers, because the
                  model looks at which links P has and not at their values
    """

    paper: str
    equation: str
    recipe: Settings = field(default_factory=dict)
    step_sizes: Mapping[str, float] = field(default_factory=dict)
    uses_weights: bool = True


class Model(nn.Module):
    """A network whose settings are its keyword-only arguments.

    Weights are below `convs` or `dense`, which have weight decays of their own.  A model takes a
    Sparse P; one that supports sampling takes any Propagation.
    """

    card: ClassVar[ModelCard]
    # Whether layer l gathers over P.at(l) and takes a node's own state from H[: P.at(l).shape[0]],
    # so that a training step may see a sample of the neighbours; `layers` is then the number of
    # hops.
    supports_sampling: ClassVar[bool] = False
    # Whether it gathers by products, P.at(l).gather(H), which old activations make more accurate.
    supports_history: ClassVar[bool] = False
    # Whether it can recompute activations in backward instead of keeping them, and whether it does.
    can_recompute: ClassVar[bool] = False
    recomputes: bool = False

    def __call__(self, P: Propagation, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k)."""
        if not isinstance(P, Propagation):
            raise InputError(f"P must be a propagation matrix, got {type(P).__name__}; {HOW}")
        if not isinstance(X, Tensor | Sparse):
            raise InputError(
                f"X must be a tensor, got {type(X).__name__}; make X with "
                "gcnii.feature_matrix(graph), or torch.tensor(X) of an array"
            )
        scores: Tensor = super().__call__(P, X)
        return scores

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor | Sparse:
        """The last hidden layer (n, width)."""
        raise NotImplementedError

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k): logits, never probabilities."""
        raise NotImplementedError
