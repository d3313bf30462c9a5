"""The interface of every model: `model(P, X) → scores`, and a card that says where it is from.

A model knows one set of settings.  Within a batch of replicas, a number of a module that differs
between them (α, β_l, the share that dropout keeps) is replaced by a tensor () of the replica at
hand, as vmap gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from gcnii.errors import InputError
from gcnii.nn.settings import Settings
from gcnii.propagation import HOW, Propagation, Sparse

if TYPE_CHECKING:
    from gcnii.nn.engine.recompute import Stash

Number = int | float
Scalars = Mapping[tuple[int, str], Number]


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
    uses_graph    False if it looks at the features alone
    when          when to choose it; empty if it is a first choice for nothing
    """

    paper: str
    equation: str
    recipe: Settings = field(default_factory=dict)
    step_sizes: Mapping[str, float] = field(default_factory=dict)
    uses_weights: bool = True
    uses_graph: bool = True
    when: str = ""


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
    # Whether it uses P in products P @ H alone and else treats every row by itself, so that several
    # processes can share the nodes of a graph.
    can_be_cut: ClassVar[bool] = False
    # Its settings that are but numbers in a formula: replicas of one batch may differ in them.
    batched: ClassVar[frozenset[str]] = frozenset({"dropout"})
    # Whether it can recompute activations in backward instead of keeping them, and whether it does.
    can_recompute: ClassVar[bool] = False
    recomputes: bool = False
    # Where what a recomputing model keeps for backward waits; None: on the device.
    stash: Stash | None = None
    # Whether, without gradients, it computes a block of rows at a time, which P must allow: it is
    # a Sparse, and X anything that has linear maps.
    by_rows: bool = False

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


class Places:
    """Where numbers are: for each of them, the attributes of modules that hold it."""

    def __init__(self, places: Iterable[list[tuple[nn.Module, str]]]):
        self.places = list(places)

    @contextmanager
    def holding(self, numbers: Sequence[Tensor]) -> Iterator[None]:
        """Within, the attributes hold these numbers."""
        earlier = [[getattr(*place) for place in places] for places in self.places]
        try:
            for places, number in zip(self.places, numbers, strict=True):
                for module, name in places:
                    setattr(module, name, number)
            yield
        finally:
            for places, values in zip(self.places, earlier, strict=True):
                for (module, name), value in zip(places, values, strict=True):
                    setattr(module, name, value)


def scalars(model: Model) -> Scalars:
    """All numbers of a model's modules, by the module's place and the attribute's name."""
    return {
        (i, name): value
        for i, module in enumerate(model.modules())
        for name, value in vars(module).items()
        if type(value) in (int, float)
    }


def differing(
    model: Model, each: Sequence[Scalars], dtype: torch.dtype
) -> tuple[Places, list[Tensor]]:
    """Where replicas with these scalars differ, and the numbers (r,) there; for `model` to run all.

    What they have in common is set in the model.  Integers become int32, others of the given type.
    """
    modules, found = list(model.modules()), dict[tuple[Number, ...], list[tuple[nn.Module, str]]]()
    for i, name in each[0]:
        values = tuple(own[i, name] for own in each)
        if len(set(values)) > 1:
            found.setdefault(values, []).append((modules[i], name))
        else:
            setattr(modules[i], name, values[0])
    kinds = (torch.int32 if type(values[0]) is int else dtype for values in found)
    tensors = [torch.tensor(values, dtype=kind) for values, kind in zip(found, kinds, strict=True)]
    return Places(found.values()), tensors


def held(*modules: nn.Module) -> tuple[Places, list[Tensor]]:
    """The tensors that stand for numbers in these modules, each once, and where they are."""
    found: dict[int, list[tuple[nn.Module, str]]] = {}
    tensors = []
    for module in (inner for outer in modules for inner in outer.modules()):
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                if id(value) not in found:
                    tensors.append(value)
                found.setdefault(id(value), []).append((module, name))
    return Places(found.values()), tensors
