"""An ONNX graph that a model's own `forward` writes.

A Value stands for a tensor that is not known yet.  torch hands every function that is called with
one to `__torch_function__`, which adds a node; what is made of weights alone is computed by torch
itself, and becomes a constant.  So no equation is written down a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray

from gcnii.errors import InputError

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

OPSET = 18  # of 2022, the first that adds up what is scattered, and reduces along inputs
IR = 9  # of 2023: what older runtimes read
Array: TypeAlias = NDArray[np.generic]
Shape: TypeAlias = Sequence[int | str]


class Value:
    """A tensor of the graph that is being written."""

    def __init__(self, graph: OnnxGraph, name: str, dtype: np.dtype[np.generic]):
        self.graph, self.name, self.dtype = graph, name, dtype
        self.is_cuda = False

    def __add__(self, other: Operand) -> Value:
        return self.graph.add("Add", self, other)

    def __sub__(self, other: Operand) -> Value:
        return self.graph.add("Sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return self.graph.add("Sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return self.graph.add("Mul", self, other)

    def __truediv__(self, other: Operand) -> Value:
        return self.graph.add("Div", self, other)

    def __matmul__(self, other: Operand) -> Value:
        return self.graph.add("MatMul", self, other)

    __radd__, __rmul__ = __add__, __mul__

    def relu_(self) -> Value:
        """max(x, 0), in the place of x for torch."""
        return self.graph.add("Relu", self)

    def cast(self, dtype: object) -> Value:
        """In another type."""
        from onnx.helper import np_dtype_to_tensor_dtype

        to = np.dtype(dtype)  # type: ignore[call-overload]
        if to == self.dtype:
            return self
        return self.graph.add("Cast", self, dtype=to, to=np_dtype_to_tensor_dtype(to))

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[Operand] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> Value:
        """Add the nodes of this function."""
        write = FUNCTIONS.get(name := func.__name__)
        if write is None:
            raise NotWritten(name)
        return write(*args, **(kwargs or {}))

    def __getattr__(self, name: str) -> object:
        """What torch's tensors have and a Value has not."""
        raise (AttributeError if name.startswith("__") else NotWritten)(name)


class NotWritten(InputError):
    """A model uses a function of torch, named by the text, that has no nodes here."""


Operand: TypeAlias = Value | torch.Tensor | Array | float


def _linear(x: Value, W: torch.Tensor, b: torch.Tensor | None = None) -> Value:
    Z = x @ W.detach().T
    return Z if b is None else Z + b


def _lerp(a: Value, b: Value, share: float) -> Value:
    return a * (1 - share) + b * share


def _layer_norm(
    x: Value, shape: Sequence[int], weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> Value:
    return x.graph.add("LayerNormalization", x, weight, bias, epsilon=eps)


def _relu(x: Value, inplace: bool = False) -> Value:
    return x.relu_()


def _cat(each: Sequence[Value], dim: int = 0) -> Value:
    return each[0].graph.add("Concat", *each, axis=dim)


def _flipped(kind: str) -> Callable[..., Value]:
    """A method of a tensor of weights with a Value beside it."""

    def write(one: torch.Tensor, value: Value) -> Value:
        return value.graph.add(kind, one, value)

    return write


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "linear": _linear,
    "lerp": _lerp,
    "layer_norm": _layer_norm,
    "relu": _relu,
    "cat": _cat,
    "add": _flipped("Add"),
    "mul": _flipped("Mul"),
    "matmul": _flipped("MatMul"),
    "__matmul__": _flipped("MatMul"),
}


class Matrix:
    """P of a graph that is not known yet: its entries, in the order of the rows, and P @ H."""

    def __init__(self, n: Value, rows: Value, columns: Value, values: Value):
        self.columns, self.entries = columns, values
        # A model whose P is learnt writes its layers one by one, instead of fusing them.
        self.values = torch.zeros((), requires_grad=True)
        add, e = rows.graph.add, rows.graph.add("Shape", rows)
        counts = added(rows.graph.full(n, 0, np.int64), rows, rows.graph.full(e, 1, np.int64))
        first = add("CumSum", counts, np.array(0), exclusive=1)
        # How many entries of its row stand before each.
        self.before = add("Range", 0, add("Squeeze", e), 1) - add("Gather", first, rows)
        top = add("ReduceMax", add("Concat", self.before, np.array([0]), axis=0), keepdims=0)
        self.several = add("Greater", top, 0, dtype=np.bool_)
        begins = add("Equal", self.before, 0, dtype=np.bool_)
        self.some = add("Unsqueeze", add("Compress", rows, begins, axis=0), np.array([1]))

    def at(self, layer: int) -> Matrix:
        """The same for every layer."""
        return self

    def __matmul__(self, H: Value) -> Value:
        """(n, width): the rows of H that each entry gathers, times its value, added up.

        Two by two, until a row has one: several threads of onnxruntime lose terms where ScatterND
        adds more than one at a place, and its ScatterElements, which loses none, takes five times
        as long.
        """
        add = H.graph.add
        gathered = add("Gather", H, self.columns, axis=0) * add(
            "Unsqueeze", self.entries, np.array([1])
        )
        sums, _ = H.graph.loop(self.several, [gathered, self.before], _halved)
        zeros = H.graph.full(add("Shape", H, dtype=np.int64), 0, H.dtype)
        return add("ScatterND", zeros, self.some, sums)

    def __getattr__(self, name: str) -> object:
        """What a Sparse has and this has not."""
        raise (AttributeError if name.startswith("__") else NotWritten)(name)


def _halved(terms: Value, before: Value) -> tuple[Value, list[Value]]:
    """Every second term of a row added to the one before it; whether a row has several still."""
    add = terms.graph.add
    odd = add("Mod", before, 2)
    first, second = (
        add("Squeeze", add("NonZero", one, dtype=np.int64), np.array([0]))
        for one in (add("Equal", odd, 0, dtype=np.bool_), odd)
    )
    seconds_before = add("Range", 0, add("Squeeze", add("Shape", second)), 1)
    place = add("Unsqueeze", second - seconds_before - 1, np.array([1]))
    kept, rest = add("Gather", terms, first, axis=0), add("Gather", terms, second, axis=0)
    sums = add("ScatterND", kept, place, rest, reduction="add")
    before = add("Gather", before, first) / 2
    return add("Greater", add("ReduceMax", before, keepdims=0), 0, dtype=np.bool_), [sums, before]


def added(sums: Value, places: Value, terms: Value) -> Value:
    """(m,) sums with each term added at its place."""
    return sums.graph.add("ScatterElements", sums, places, terms, axis=0, reduction="add")


class OnnxGraph:
    """The nodes, constants, inputs and outputs so far; their names begin with `prefix`."""

    def __init__(self, prefix: str = "v") -> None:
        self.prefix = prefix
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.inputs: dict[str, tuple[Value, ValueInfoProto]] = {}
        self.outputs: list[ValueInfoProto] = []

    def _name(self) -> str:
        return f"{self.prefix}{len(self.nodes) + len(self.constants)}"

    def input(self, name: str, dtype: object, shape: Shape | None) -> Value:
        """What the caller gives, under this name; declared when first asked for."""
        from onnx.helper import make_tensor_value_info, np_dtype_to_tensor_dtype

        if name not in self.inputs:
            kind = np.dtype(dtype)  # type: ignore[call-overload]
            info = make_tensor_value_info(name, np_dtype_to_tensor_dtype(kind), shape)
            self.inputs[name] = (Value(self, name, kind), info)
        return self.inputs[name][0]

    def output(self, name: str, value: Value, shape: Shape | None) -> None:
        """Return a value under this name."""
        from onnx.helper import make_node, make_tensor_value_info, np_dtype_to_tensor_dtype

        self.nodes.append(make_node("Identity", [value.name], [name]))
        kind = np_dtype_to_tensor_dtype(value.dtype)
        self.outputs.append(make_tensor_value_info(name, kind, shape))

    def constant(self, number: torch.Tensor | Array | float, dtype: object = None) -> Value:
        """A number, or an array of them, in the file."""
        from onnx.numpy_helper import from_array

        array = number.detach().cpu().numpy() if isinstance(number, torch.Tensor) else number
        array = np.ascontiguousarray(np.asarray(array, dtype))  # type: ignore[call-overload]
        array = array.reshape(np.shape(number))
        name = self._name()
        self.constants.append(from_array(array, name))
        return Value(self, name, array.dtype)

    def add(self, kind: str, *inputs: Operand, dtype: object = None, **attributes: object) -> Value:
        """The value of a new node.

        dtype  of its value; default: that of the first input that is a Value, which plain numbers
               among the inputs take, too
        """
        return self.add_several(kind, 1, *inputs, dtype=dtype, **attributes)[0]

    def add_several(
        self, kind: str, outputs: int, *inputs: Operand, dtype: object = None, **attributes: object
    ) -> list[Value]:
        """The values of a new node with several outputs."""
        from onnx.helper import make_node

        own = next(one.dtype for one in inputs if isinstance(one, Value))
        values = [
            one
            if isinstance(one, Value)
            else self.constant(one, own if isinstance(one, float | int) else None)
            for one in inputs
        ]
        name, found = self._name(), own if dtype is None else np.dtype(dtype)  # type: ignore[call-overload]
        names = [name if i == 0 else f"{name}_{i}" for i in range(outputs)]
        given = [one.name for one in values]
        self.nodes.append(make_node(kind, given, names, **attributes))  # type: ignore[arg-type]
        return [Value(self, one, cast("np.dtype[np.generic]", found)) for one in names]

    def full(self, shape: Value, number: float, dtype: object) -> Value:
        """An array of one number."""
        from onnx.numpy_helper import from_array

        value = from_array(np.array([number], dtype))  # type: ignore[call-overload]
        return self.add("ConstantOfShape", shape, dtype=dtype, value=value)

    def loop(
        self,
        going: Value,
        state: Sequence[Value],
        step: Callable[..., tuple[Value, Sequence[Value]]],
    ) -> list[Value]:
        """The state after as many steps as there are until one of them says that it was the last.

        going  () bool: whether there is a first
        """
        inner = OnnxGraph(f"{self._name()}_")
        inner.input(f"{inner.prefix}i", np.int64, ())
        inner.input(f"{inner.prefix}going", np.bool_, ())
        given = [
            inner.input(f"{inner.prefix}in{j}", one.dtype, None) for j, one in enumerate(state)
        ]
        more, after = step(*given)
        for j, one in enumerate((more, *after)):
            inner.output(f"{inner.prefix}out{j}", one, None)
        unbounded, body = Value(self, "", np.dtype(np.int64)), inner.proto("step")
        ends = self.add_several("Loop", len(state), unbounded, going, *state, body=body)
        return [Value(self, end.name, one.dtype) for end, one in zip(ends, state, strict=True)]

    def proto(self, name: str, text: str = "") -> GraphProto:
        """The graph as ONNX has it."""
        from onnx.helper import make_graph

        inputs = [info for _, info in self.inputs.values()]
        return make_graph(self.nodes, name, inputs, self.outputs, self.constants, doc_string=text)

    def model(self, title: str, text: str, metadata: Mapping[str, str]) -> ModelProto:
        """The whole, checked."""
        import onnx

        from gcnii import __version__

        graph = self.proto("gcnii", text)
        opset = [onnx.helper.make_opsetid("", OPSET)]
        model = onnx.helper.make_model(
            graph, opset_imports=opset, ir_version=IR, producer_name="gcnii", doc_string=title,
            producer_version=__version__,
        )  # fmt: skip
        onnx.helper.set_model_props(model, dict(metadata))
        onnx.checker.check_model(model)
        return model
