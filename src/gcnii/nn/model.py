"""The interface of every model: `model(P, X) → scores`, and a card that says where it is from.

A model knows one set of settings.  Within a batch of replicas, a number of a module that differs
between them (α, β_l, the share that dropout keeps) is a buffer, which holds the number of the
replica at hand as a tensor ().

First come the weights: their initial values, and products by them with a gradient that suits a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from gcnii.errors import InputError
from gcnii.kernels import gradients
from gcnii.nn.settings import Settings
from gcnii.propagation import Propagation, Sparse, TypedMatrix
from gcnii.propagation.adjacency import HOW
from gcnii.propagation.sparse import VmapInfo, replicas_first

if TYPE_CHECKING:
    from gcnii.nn.engine.recompute import Stash


# What a mode sees of a draw: some functions of nn.init come whole, of the others the last call.
DRAWS = {
    torch.Tensor.uniform_,
    torch.Tensor.normal_,
    nn.init.uniform_,
    nn.init.normal_,
    nn.init.kaiming_uniform_,
}
MAKES = {torch.empty, torch.zeros, torch.ones}


class DrawnFrom(TorchFunctionMode):
    """Make weights in float32 on the CPU, drawn from the generator of this seed.

    Layers such as `nn.Linear` draw from the generator that all threads share, and take no other.  A
    mode is its thread's own: what other threads draw meanwhile, and torch's random state, do not
    change.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call `func` with the generator, or with the dtype and device, that it was not given."""
        given, own = dict(kwargs or {}), dict[str, Any]()
        if func in DRAWS:
            own = {"generator": self.generator}
        if func in MAKES:
            own = {"dtype": torch.float32, "device": "cpu"}
        return func(*args, **given | {name: own[name] for name in own if given.get(name) is None})


def uniform(*shape: int) -> nn.Parameter:
    """A weight of this shape, each entry uniform in ±1/√width; the width is the last dimension."""
    bound = shape[-1] ** -0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound))


def glorot(d: int, width: int) -> nn.Parameter:
    """W (d, width), each entry uniform in ±√(6 / (d + width))."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(d, width)))


def glorot_dense(d: int, width: int, *, bias: bool = True) -> nn.Linear:
    """A dense layer with a Glorot-uniform weight and a bias, if any, of zero."""
    layer = nn.Linear(d, width, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def matmul(H: Tensor | Sparse, W: Tensor) -> Tensor:
    """H W; on a GPU with a gradient of W that stays fast for several replicas."""
    if isinstance(H, Sparse) or not H.is_cuda or torch.is_autocast_enabled("cuda"):
        return H @ W
    return MatMul.apply(H, W)  # type: ignore[no-any-return, no-untyped-call]


class MatMul(torch.autograd.Function):
    """H W for H (n, d) and W (d, h); with replicas in front, (r, n, d) and (r, d, h)."""

    @staticmethod
    def forward(H: Tensor, W: Tensor) -> Tensor:
        """H W."""
        return H @ W

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """G Wᵀ and Hᵀ G."""
        H, W = ctx.saved_tensors
        dH = G @ W.mT if ctx.needs_input_grad[0] else None
        dW = (gradients(H, G) if G.ndim == 3 else H.mT @ G) if ctx.needs_input_grad[1] else None
        return dH, dW

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...], H: Tensor, W: Tensor
    ) -> tuple[Tensor, int]:
        """One batched product for all replicas."""
        H, W = (
            replicas_first(one, dim, info.batch_size)
            for one, dim in zip((H, W), in_dims, strict=True)
        )
        return MatMul.apply(H, W), 0  # type: ignore[no-untyped-call]


Number = int | float
Numbers = Mapping[str, Number]


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


class Gathering(nn.Module):
    """A layer that gathers by products P H; over edges of several types, with weights of them."""

    def weigh_types(self, count: int) -> None:
        """Have a weight (count,) of each type: 0, so that their shares are equal."""
        self.register_parameter("types", nn.Parameter(torch.zeros(count)))

    @property
    def type_weights(self) -> Tensor | None:
        """(types,) from which the shares are made; None: it gathers over all edges alike."""
        return self._parameters.get("types")

    def over(self, P: Sparse) -> Sparse:
        """The matrix of this layer: P itself, or the mean of its types with the layer's shares."""
        weights = self.type_weights
        if weights is None:
            return P
        if not isinstance(P, TypedMatrix):
            raise InputError(
                f"the model has weights of {len(weights)} types of edges, but P is of one; make P "
                "of a graph with these types"
            )
        return P.mixed(weights)


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
    # Whether all its products by P are those of a Gathering, which can weigh types of edges.
    uses_types: ClassVar[bool] = False
    # Its settings that are plain numbers in a formula: replicas of one batch may differ in them.
    batched: ClassVar[frozenset[str]] = frozenset({"dropout"})
    # Whether all its layers are one function, which may be compiled for a CPU.
    fused: ClassVar[bool] = False
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
        if isinstance(P, TypedMatrix) and len(P.each) != self.types and self.card.uses_graph:
            raise InputError(
                f"P has {len(P.each)} types of edges, and the model weights of {self.types}; make "
                "the model with model.over_types(count), or P with edge_types='ignore'"
            )
        if not isinstance(X, Tensor | Sparse):
            raise InputError(
                f"X must be a tensor, got {type(X).__name__}; make X with "
                "gcnii.feature_matrix(graph), or torch.tensor(X) of an array"
            )
        scores: Tensor = super().__call__(P, X)
        return scores

    def over_types(self, count: int) -> Self:
        """Itself, with a weight of each type of edges in every layer."""
        if count > 1 and not self.uses_types:
            raise InputError(f"{type(self).__name__} cannot weigh types of edges")
        for layer in self._gathering if count > 1 else ():
            layer.weigh_types(count)
        return self

    @property
    def types(self) -> int:
        """The number of types of edges that its layers weigh; 1: none."""
        each = (layer.type_weights for layer in self._gathering)
        return next((len(weights) for weights in each if weights is not None), 1)

    @property
    def _gathering(self) -> Iterator[Gathering]:
        return (layer for layer in self.modules() if isinstance(layer, Gathering))

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor | Sparse:
        """The last hidden layer (n, width)."""
        raise NotImplementedError

    def forward(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """Scores (n, k): logits, never probabilities."""
        raise NotImplementedError


def numbers_of(model: nn.Module) -> Numbers:
    """All numbers of a model's modules, by their names: `convs.0.alpha`."""
    return {
        f"{path}.{name}" if path else name: value
        for path, module in model.named_modules()
        for name, value in vars(module).items()
        if type(value) in (int, float)
    }


def set_numbers(model: nn.Module, each: Sequence[Numbers], dtype: torch.dtype) -> dict[str, Tensor]:
    """Make one model run replicas with these numbers; returns those in which they differ, as (r,).

    `functional_call` takes a replica's own beside its weights: in the model, a number that differs
    is a buffer.  Numbers that are alike in all replicas are one tensor, of which `functional_call`
    needs one name.  Where all are integers they become int32, others of the given dtype.
    """
    modules, differing = dict(model.named_modules()), dict[tuple[Number, ...], Tensor]()
    named = {}
    for name in each[0]:
        (path, _, attribute), values = name.rpartition("."), tuple(own[name] for own in each)
        delattr(modules[path], attribute)  # whether it is a number now or a buffer
        if len(set(values)) == 1:
            setattr(modules[path], attribute, values[0])
            continue
        if values not in differing:
            whole = all(type(value) is int for value in values)
            named[name] = torch.tensor(values, dtype=torch.int32 if whole else dtype)
            differing[values] = named[name][0]
        modules[path].register_buffer(attribute, differing[values], persistent=False)
    return named
