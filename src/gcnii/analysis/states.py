"""The hidden states of any model, layer by layer.

    with HiddenStates(model) as states:
        model(P, X)
    states.layers

A layer's state is the output of its module after the activations, norms and additions that follow
outside of the module.  Layer 0 is the input of the first layer.  Some models of the registry
(APPNP, SGC) propagate without a module of their own; there, every product by P̃ is a layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from gcnii.errors import InputError, UsageError
from gcnii.nn import Model
from gcnii.propagation import Sparse
from gcnii.propagation.sparse import Pattern

# Functions that may follow a layer's module and still belong to the layer: they act on each unit or
# row by itself and do not mix nodes.
FOLLOWS = {
    *("relu", "relu_", "elu", "elu_", "leaky_relu", "leaky_relu_", "prelu", "gelu", "silu"),
    *("selu", "tanh", "sigmoid", "dropout", "normalize"),
    *("add", "add_", "__add__", "__radd__", "__iadd__", "sub", "__sub__", "lerp"),
    *("mul", "__mul__", "__rmul__", "div", "__truediv__"),
    *("batch_norm", "layer_norm", "instance_norm", "group_norm"),
}
State = Tensor | Sparse


class Layer(NamedTuple):
    """A layer's name, and its state H (n, width)."""

    name: str
    H: Tensor


class HiddenStates:
    """The `layers` of the last forward pass, their `gradients` after a backward pass, the `edges`.

    layers  the modules that are layers, for a model outside the registry; by default PyG's
            convolutions, or else the members of the longest ModuleList
    """

    def __init__(self, model: nn.Module, layers: Iterable[nn.Module] | None = None):
        self.model = model
        self.blocks = _named(model, layers)
        self.edges: Tensor | None = None  # (2, m), among the inputs of the model
        self._found: dict[str, State] = {}
        self._latest = ""
        self._entered = False  # whether the first module has been called
        self._features: object = None  # X
        self._pattern: Pattern | None = None  # of P, which a layer reads beside its state
        self._hooks: list[RemovableHandle] = []
        self._during = ExitStack()

    def __enter__(self) -> Self:
        self._hooks = [
            self.model.register_forward_pre_hook(self._begin, with_kwargs=True),
            self.model.register_forward_hook(self._end, always_call=True),
        ]
        for name, block in self.blocks.items():
            # a block that is only a list is never called; its parts are
            for part in block.modules():
                self._hooks.append(part.register_forward_pre_hook(self._reads, with_kwargs=True))
                self._hooks.append(part.register_forward_hook(self._gives(name)))
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    @property
    def layers(self) -> list[Layer]:
        """Layer 0 and all that follow, from the last forward pass."""
        if not self._found:
            raise UsageError(
                "no forward pass was seen; call the model inside the block: with watch(model) as w:"
            )
        return [
            Layer(name, H.to_dense() if isinstance(H, Sparse) else H)
            for name, H in self._found.items()
        ]

    @property
    def gradients(self) -> list[Tensor | None]:
        """The loss's gradient at each layer's state; None where no backward pass reached it."""
        return [
            H.grad if isinstance(H, Tensor) and H.requires_grad else None
            for H in self._found.values()
        ]

    def _begin(
        self, _: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        self._found, self._latest, self._entered = {}, "", False
        self.edges = next(_edges((*args, *kwargs.values())), None)
        self._during.enter_context(_Follow(self._follows))
        if isinstance(self.model, Model) and args and isinstance(P := args[0], Sparse):
            self._pattern, self._features = P.pattern, next(iter(args[1:]), None)
            if type(P) is Sparse:
                args = (_Seen.of(P, self._multiplies), *args[1:])
        return args, kwargs

    def _end(self, _: nn.Module, args: object, output: object) -> None:
        self._during.close()
        modules = set(self._found) & set(self.blocks)
        if modules:  # the products were parts of what the modules did
            names = ["input", *(name for name in self._found if name in modules)]
            self._found = {name: self._found[name] for name in names if name in self._found}
        elif not self._found and (scores := _output(output)) is not None:
            self._found["scores"] = scores
        for H in self._found.values():
            if isinstance(H, Tensor) and H.requires_grad:
                H.retain_grad()

    def _reads(self, _: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        H = _state(value for value in (*args, *kwargs.values()) if not self._propagates(value))
        if not self._entered and H is not None:
            self._entered = True
            # X, if a product read it before the first module was called; else that module's input.
            first = self._found.get("input", H)
            self._found = {"input": first if self._is_features(first) else H}
        # What happens to the previous layer's state within a module belongs to the module.
        self._latest = ""

    def _is_features(self, H: State) -> bool:
        """Whether it is X, perhaps with its zeros written out, and not a map of it."""
        X = self._features
        return H is X or (isinstance(X, Sparse) and H.shape == X.shape)

    def _propagates(self, value: object) -> bool:
        return isinstance(value, Sparse) and value.pattern is self._pattern

    def _gives(self, name: str) -> Callable[[nn.Module, object, object], None]:
        def give(_: nn.Module, args: object, output: object) -> None:
            H = _output(output)
            if H is not None:
                self._found[name], self._latest = H, name

        return give

    def _multiplies(self, H: Tensor, PH: Tensor) -> None:
        if set(self._found) & set(self.blocks):
            return
        self._found.setdefault("input", H)
        self._latest = f"P {len(self._found)}"
        self._found[self._latest] = PH

    def _follows(self, args: Sequence[object], result: object) -> None:
        H = self._found.get(self._latest)
        if not (isinstance(H, Tensor) and isinstance(result, Tensor)):
            return
        if H.shape == result.shape and any(one is H for one in args):
            self._found[self._latest] = result


class _Follow(TorchFunctionMode):
    """Reports every call of a function in FOLLOWS."""

    def __init__(self, tell: Callable[[Sequence[object], object], None]):
        super().__init__()
        self.tell = tell

    def __torch_function__(
        self,
        function: Callable[..., object],
        types: object,
        args: Sequence[object] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = function(*args, **(kwargs or {}))
        if getattr(function, "__name__", "") in FOLLOWS:
            self.tell((*args, *(kwargs or {}).values()), result)
        return result


@dataclass(frozen=True, eq=False)
class _Seen(Sparse):
    """P̃ that reports every product by it."""

    plain: Sparse
    tell: Callable[[Tensor, Tensor], None]

    @classmethod
    def of(cls, P: Sparse, tell: Callable[[Tensor, Tensor], None]) -> _Seen:
        """P, reporting to `tell(H, PH)`."""
        return cls(P.pattern, P.values, P, tell)

    def __matmul__(self, H: Tensor) -> Tensor:
        PH = super().__matmul__(H)
        self.tell(H, PH)
        return PH

    def to_dense(self) -> Tensor:
        """Without reporting: that product is not a layer."""
        return self.plain.to_dense()


def _named(model: nn.Module, layers: Iterable[nn.Module] | None) -> dict[str, nn.Module]:
    names = {module: name for name, module in model.named_modules()}
    layers = _blocks(model) if layers is None else list(layers)
    foreign = [type(layer).__name__ for layer in layers if layer not in names]
    if foreign:
        raise InputError(
            f"layers must be modules of the model; these are not: {', '.join(foreign)}"
        )
    return {names[layer]: layer for layer in layers}


def _blocks(model: nn.Module) -> list[nn.Module]:
    """The layers of a model, guessed from its modules."""
    if isinstance(model, Model):
        convs = getattr(model, "convs", ())
        return list(convs)
    gathers = [module for module in model.modules() if _gathers(module)]
    if gathers:
        return gathers
    lists = [
        module for module in model.modules() if isinstance(module, nn.ModuleList | nn.Sequential)
    ]
    if not lists:
        name = type(model).__name__
        raise InputError(
            f"{name} has neither PyG convolutions nor a list of modules;"
            " name its layers: layers=[…]"
        )
    return list(max(lists, key=len))


def _gathers(module: nn.Module) -> bool:
    """Whether it is one of PyG's convolutions, by name: PyG need not be installed."""
    return any(kind.__name__ == "MessagePassing" for kind in type(module).__mro__)


def _state(values: Iterable[object]) -> State | None:
    """The first value that can be a state (n, width): a tensor of floats, or sparse features."""
    for value in values:
        if isinstance(value, Sparse) or (
            isinstance(value, Tensor) and value.is_floating_point() and value.ndim == 2
        ):
            return value
    return None


def _output(given: object) -> State | None:
    """The state among what a module returned."""
    return _state(given if isinstance(given, tuple) else (given,))


def _edges(inputs: Iterable[object]) -> Iterator[Tensor]:
    """(2, m) edges of each input of a model that holds some."""
    for value in inputs:
        if isinstance(value, Sparse) and value.shape[0] == value.shape[1]:
            yield torch.stack([value.pattern.row_of, value.pattern.columns.long()])
        elif isinstance(value, Tensor) and value.layout in (torch.sparse_coo, torch.sparse_csr):
            yield value.to_sparse_coo().coalesce().indices()
        elif (
            isinstance(value, Tensor)
            and not value.is_floating_point()
            and value.ndim == 2
            and len(value) == 2
        ):
            yield value
        elif isinstance(found := getattr(value, "edge_index", None), Tensor):
            yield found
