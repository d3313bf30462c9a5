"""P̃ and its relatives, and the one sparse product, with its gradient and its vmap rule."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, linear

from gcnii.graph import Graph

Direction = Literal["out", "in", "both"]
Loops = Literal["keep", "remove"]


def propagation_matrix(graph: Graph, *, direction: Direction = "out", loops: Loops = "keep") -> Sparse:
    """P̃ = D̃^-1/2 Ã D̃^-1/2 with Ã = A + I and D̃ the row sums of Ã, in float64.

    direction  of a directed graph's edges u → v: u gathers from v ("out"), v from u ("in"), or each from the other
    loops      "keep": a self-loop of the graph makes Ã's diagonal 2; "remove": every diagonal entry is 1
    """
    # paper: undirected graphs without self-loops; here: the authors' code, which keeps both as the files have them.
    A = adjacency(graph, direction)
    if loops == "remove":
        A = A - sp.diags_array(A.diagonal())
        A.eliminate_zeros()
    A = sp.csr_array(A + sp.eye_array(graph.n))
    scale = sp.diags_array(A.sum(1) ** -0.5)
    return Sparse.from_scipy(sp.csr_array(scale @ A @ scale))


def adjacency(graph: Graph, direction: Direction = "out") -> sp.csr_array:
    """A (n, n) of zeros and ones, A[u, v] = 1 if u gathers from v; an edge that stands twice counts once."""
    u, v = graph.edges
    A = sp.csr_array((np.ones(len(u)), (u, v)), (graph.n, graph.n))
    A.data[:] = 1
    if not graph.directed or direction == "both":
        return sp.csr_array(A.maximum(A.T))
    return sp.csr_array(A.T) if direction == "in" else A


def feature_matrix(graph: Graph) -> Tensor | Sparse:
    """X as a model takes it: a dense tensor, or a Sparse where the graph holds it as CSR."""
    return Sparse.from_scipy(graph.X) if isinstance(graph.X, sp.csr_array) else torch.tensor(graph.X)


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where the entries of a sparse matrix stand: CSR's two index arrays, and how to reach the transpose's."""

    rows: Tensor  # (n + 1,) int32: row i's entries are rows[i] … rows[i + 1]
    columns: Tensor  # (entries,) int32
    shape: tuple[int, int]

    @cached_property
    def transposed(self) -> tuple[Pattern, Tensor]:
        """The transpose's pattern, and the order that brings this one's values into it."""
        counts = self.rows.diff().long()
        row_of = torch.repeat_interleave(torch.arange(self.shape[0], device=self.rows.device), counts)
        order = torch.argsort(self.columns, stable=True)
        ends = torch.bincount(self.columns, minlength=self.shape[1]).cumsum(0)
        rows = torch.cat([ends.new_zeros(1), ends]).int()
        return Pattern(rows, row_of[order].int(), (self.shape[1], self.shape[0])), order

    def repeat(self, times: int) -> Pattern:
        """The block-diagonal pattern of `times` copies."""
        (n, d), entries = self.shape, len(self.columns)
        block = torch.arange(times, device=self.rows.device, dtype=torch.int32)[:, None]
        rows = (self.rows[1:] + block * entries).flatten()
        columns = (self.columns + block * d).flatten()
        return Pattern(torch.cat([self.rows[:1], rows]), columns, (times * n, times * d))

    def to(self, device: torch.device | str) -> Pattern:
        """The same pattern on another device."""
        return Pattern(self.rows.to(device), self.columns.to(device), self.shape)


@dataclass(frozen=True, eq=False)
class Sparse:
    """A constant sparse matrix M; `M @ H` and `linear(M, W, b)` are products that pass gradients to H and W.

    It holds the values of its transpose too, because backward multiplies by Mᵀ: P̃ of a directed graph is not symmetric.
    """

    pattern: Pattern
    values: Tensor  # (entries,)
    transposed: Tensor  # the same values, in the order of the transpose's pattern

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array) -> Sparse:
        """The same matrix, in the same precision."""
        rows, columns = torch.tensor(matrix.indptr).int(), torch.tensor(matrix.indices).int()
        pattern = Pattern(rows, columns, (int(matrix.shape[0]), int(matrix.shape[1])))
        values = torch.tensor(matrix.data)
        return cls(pattern, values, values[pattern.transposed[1]])

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.pattern.shape

    def with_values(self, values: Tensor) -> Sparse:
        """A matrix with other values at the same places."""
        return replace(self, values=values, transposed=values[self.pattern.transposed[1]])

    def to(self, device: torch.device | str, dtype: torch.dtype) -> Sparse:
        """The same matrix on another device, in another precision."""
        return Sparse(self.pattern.to(device), self.values.to(device, dtype), self.transposed.to(device, dtype))

    def to_dense(self) -> Tensor:
        """The matrix with its zeros written out, for tests and small graphs."""
        return self @ torch.eye(self.shape[1], dtype=self.values.dtype, device=self.values.device)

    def __matmul__(self, H: Tensor) -> Tensor:
        return _product(self.values, self.transposed, H, self.pattern)

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Let `nn.Linear` take sparse features, so that a model's code need not know of them."""
        if function is linear:
            return _linear(*args, **(kwargs or {}))
        return NotImplemented


def _linear(X: Sparse, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    product = X @ weight.T
    return product if bias is None else product + bias


class Product(torch.autograd.Function):
    """M H for a constant sparse M (n, d) and H (d, h); the gradient is Mᵀ G.

    Under vmap the replicas of H become columns of one wide product; where the values of M differ between
    replicas (dropout on features), M becomes one block-diagonal matrix.
    """

    @staticmethod
    def forward(values: Tensor, transposed: Tensor, H: Tensor, pattern: Pattern) -> Tensor:
        """Multiply."""
        return _multiply(pattern, values, H)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, Pattern], output: Tensor) -> None:
        """Keep what the transposed product needs."""
        values, transposed, _, ctx.pattern = inputs
        ctx.save_for_backward(values, transposed)

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[None, None, Tensor | None, None]:
        """Multiply by the transpose."""
        if not ctx.needs_input_grad[2]:
            return None, None, None, None
        values, transposed = ctx.saved_tensors
        return None, None, _product(transposed, values, G, ctx.pattern.transposed[0]), None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], values: Tensor, transposed: Tensor, H: Tensor, pattern: Pattern
    ) -> tuple[Tensor, int]:
        """One product for all replicas."""
        replicas = info.batch_size
        H = H.expand(replicas, *H.shape) if in_dims[2] is None else H.movedim(in_dims[2], 0)
        if in_dims[0] is None:
            columns = H.transpose(0, 1).reshape(H.shape[1], -1)
            return _product(values, transposed, columns, pattern).unflatten(1, (replicas, -1)), 1
        values, transposed = values.movedim(in_dims[0], 0).flatten(), transposed.movedim(in_dims[0], 0).flatten()
        return _product(values, transposed, H.flatten(0, 1), _blocks(pattern, replicas)).unflatten(0, (replicas, -1)), 0


# torch asks for this at every call; made once instead of each time, it saves 15 µs.
Product.forward.__signature__ = inspect.signature(Product.forward)  # type: ignore[attr-defined]


def _product(values: Tensor, transposed: Tensor, H: Tensor, pattern: Pattern) -> Tensor:
    return Product.apply(values, transposed, H, pattern)  # type: ignore[no-any-return, no-untyped-call]


def _blocks(pattern: Pattern, times: int) -> Pattern:
    """`pattern.repeat(times)`, whose transpose is made from the small pattern's instead of by sorting anew."""
    blocks = pattern.repeat(times)
    small, order = pattern.transposed
    offsets = torch.arange(times, device=order.device)[:, None] * len(order)
    blocks.__dict__["transposed"] = (small.repeat(times), (order + offsets).flatten())
    return blocks


def _multiply(pattern: Pattern, values: Tensor, H: Tensor) -> Tensor:
    if H.device.type == "cpu":
        # A weighted bag of rows is the same sum; on two cores it takes half the time of the CSR product.
        bags = {"mode": "sum", "per_sample_weights": values, "include_last_offset": True}
        return embedding_bag(pattern.columns, H.contiguous(), pattern.rows, **bags)  # type: ignore[arg-type]
    _hush_beta_warning()
    return torch.sparse_csr_tensor(pattern.rows, pattern.columns, values, pattern.shape, check_invariants=False) @ H


@cache
def _hush_beta_warning() -> None:
    """torch says once a process that its CSR tensors are in beta state; nobody here can act on it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)
