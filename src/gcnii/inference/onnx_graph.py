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
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

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
    """P of a graph that is not known yet: its entries (rows, columns, values), and P @ H."""

    def __init__(self, n: Value, rows: Value, columns: Value, values: Value):
        self.n, self.rows, self.columns, self.entries = n, rows, columns, values
        # A model whose P is learnt writes its layers one by one, instead of fusing them.
        self.values = torch.zeros((), requires_grad=True)

    def at(self, layer: int) -> Matrix:
        """The same for every layer."""
        return self

    def __matmul__(self, H: Value) -> Value:
        """(n, width): the rows of H that each entry gathers, times its value, added up."""
        add = H.graph.add
        gathered = add("Gather", H, self.columns, axis=0) * add(
            "Unsqueeze", self.entries, np.array([1])
        )
        zeros = H.graph.full(add("Shape", H, dtype=np.int64), 0, H.dtype)
        place = add("Unsqueeze", self.rows, np.array([1]))
        return add("ScatterND", zeros, place, gathered, reduction="add")

    def __getattr__(self, name: str) -> object:
        """What a Sparse has and this has not."""
        raise (AttributeError if name.startswith("__") else NotWritten)(name)


class OnnxGraph:
    """The nodes, constants, inputs and outputs so far."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.inputs: dict[str, tuple[Value, ValueInfoProto]] = {}
        self.outputs: list[ValueInfoProto] = []

    def _name(self) -> str:
        return f"v{len(self.nodes) + len(self.constants)}"

    def input(self, name: str, dtype: object, shape: Shape) -> Value:
        """What the caller gives, under this name; declared when first asked for."""
        from onnx.helper import make_tensor_value_info, np_dtype_to_tensor_dtype

        if name not in self.inputs:
            kind = np.dtype(dtype)  # type: ignore[call-overload]
            info = make_tensor_value_info(name, np_dtype_to_tensor_dtype(kind), shape)
            self.inputs[name] = (Value(self, name, kind), info)
        return self.inputs[name][0]

    def output(self, name: str, value: Value, shape: Shape) -> None:
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

    def model(self, title: str, text: str, metadata: Mapping[str, str]) -> ModelProto:
        """The whole, checked."""
        import onnx

        from gcnii import __version__

        graph = onnx.helper.make_graph(
            self.nodes, "gcnii", [info for _, info in self.inputs.values()], self.outputs,
            self.constants, doc_string=text,
        )  # fmt: skip
        opset = [onnx.helper.make_opsetid("", OPSET)]
        model = onnx.helper.make_model(
            graph, opset_imports=opset, ir_version=IR, producer_name="gcnii", doc_string=title,
            producer_version=__version__,
        )  # fmt: skip
        onnx.helper.set_model_props(model, dict(metadata))
        onnx.checker.check_model(model)
        return model
