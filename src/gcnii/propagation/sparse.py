"""Sparse: a sparse matrix that multiplies, on any device, with gradients and under vmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import linear

from gcnii.graph import Features, Graph
from gcnii.kernels import offsets
from gcnii.propagation.pattern import CutPattern, Pattern, RowNumbers
from gcnii.propagation.product import product


def feature_matrix(graph: Graph, *, dtype: torch.dtype | None = None) -> Tensor | Sparse:
    """X as a model takes it: a dense tensor, or a Sparse where the graph holds it as CSR.

    Parameters
    ----------
    graph : Graph
    dtype : torch.dtype, optional
        Default: torch's default dtype, as models have it.

    Returns
    -------
    torch.Tensor or Sparse

    Examples
    --------
    >>> import gcnii
    >>> gcnii.feature_matrix(gcnii.load("csbm", n=60)).shape
    torch.Size([60, 16])
    """
    return to_matrix(graph.X, dtype or torch.get_default_dtype())


def to_matrix(X: Features, dtype: torch.dtype) -> Tensor | Sparse:
    """Features as a model takes them, on the CPU."""
    if isinstance(X, sp.csr_array):
        return Sparse.from_scipy(X).to(dtype)
    # A new array, such as scaled features, is taken as it is; a graph's own is frozen, and copied.
    return (torch.from_numpy(X) if X.flags.writeable else torch.tensor(X)).to(dtype)


def to_dense(X: Tensor | Sparse) -> Tensor:
    """X with its zeros written out; a tensor is taken as it is, because vmap has no rule for it."""
    return X.to_dense() if isinstance(X, Sparse) else X


class TakenByLinear:
    """What `nn.Linear` takes in the place of a tensor, so that models need not care."""

    def mapped(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """What `linear` gives of it."""
        raise NotImplementedError

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., object],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        """Answer `linear`, and nothing else of torch."""
        if function is linear:
            return args[0].mapped(*args[1:], **(kwargs or {}))
        return NotImplemented


@dataclass(frozen=True, eq=False, repr=False)
class Sparse(TakenByLinear):
    """A sparse matrix M; `M @ H` and `linear(M, W, b)` pass gradients to H, W and M's values.

    Gradients reach M's values through `values` (entries,) alone.
    """

    pattern: Pattern
    values: Tensor

    @classmethod
    def from_scipy(cls, matrix: sp.csr_array) -> Sparse:
        """The same matrix, in the same precision."""
        return cls(Pattern.of(matrix), torch.tensor(matrix.data))

    @cached_property
    def transposed(self) -> Tensor:
        """The values in the order of the transpose's pattern: backward multiplies by Mᵀ."""
        return self.values.detach().index_select(0, self.places.transposed[1])

    @property
    def places(self) -> Pattern | CutPattern:
        """Where the values are, for products."""
        return self.pattern

    @property
    def row_numbers(self) -> RowNumbers | None:
        """The numbers of its rows in the whole matrix; None: it is the whole."""
        return self.pattern.row_numbers

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.pattern.shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """The device of the values."""
        return self.values.device

    def __repr__(self) -> str:
        """One line: `Sparse(2708 × 2708, 13264 entries, float32, cpu)`."""
        kind = str(self.dtype).removeprefix("torch.")
        rows, columns = self.shape
        entries = len(self.pattern.columns)
        return (
            f"{type(self).__name__}({rows} × {columns}, {entries} entries, {kind}, {self.device})"
        )

    def with_values(self, values: Tensor) -> Sparse:
        """A matrix with other values at the same entries."""
        return Sparse(self.pattern, values)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Its numbers; with others of their shapes, `holding` makes a matrix again."""
        return self.values, self.transposed

    def holding(self, tensors: Sequence[Tensor]) -> Sparse:
        """The matrix with these in the place of `tensors`."""
        held = replace(self, values=tensors[0])
        held.__dict__["transposed"] = tensors[1]
        return held

    def at(self, layer: int) -> Sparse:
        """The matrix that this layer gathers over: itself, as no neighbour is left out."""
        return self

    def gather(self, H: Tensor, mean: Tensor | None = None) -> Tensor:
        """M H; `mean`, H without dropout, is for the classes that only estimate the product."""
        return self @ H

    def __getitem__(self, nodes: Tensor | slice) -> Sparse:
        """Some of the rows."""
        if isinstance(nodes, slice):
            if nodes.indices(self.shape[0]) == (0, self.shape[0], 1):
                return self
            nodes = torch.arange(self.shape[0], device=self.device)[nodes]
        return Sparse(*self.rows(nodes))

    def rows(self, nodes: Tensor, *, transient: bool = False) -> tuple[Pattern, Tensor]:
        """Where the entries of these rows are, and their values; `transient`: for one step."""
        count = self.pattern.rows.diff().index_select(0, nodes).long()
        first, rows = self.pattern.rows.index_select(0, nodes), offsets(count)
        before = torch.repeat_interleave(first - rows[:-1], count)
        inside = before + torch.arange(len(before), device=before.device)
        columns = self.pattern.columns.index_select(0, inside)
        pattern = Pattern(rows.int(), columns, (len(nodes), self.shape[1]), transient)
        return pattern, self.values.index_select(0, inside)

    def to(self, *args: Any, **kwargs: Any) -> Sparse:
        """The same matrix on another device or in another dtype; takes what `Tensor.to` takes."""
        values = self.values.to(*args, **kwargs)
        return Sparse(self.pattern.to(values.device), values)

    def to_dense(self) -> Tensor:
        """The matrix with its zeros written out, for tests and small graphs."""
        return self @ torch.eye(self.shape[1], dtype=self.dtype, device=self.device)

    def __matmul__(self, H: Tensor) -> Tensor:
        # A matrix of one step is transposed in backward, if that comes to it: the first hop of many
        # models reads nothing but X.  Others are transposed once, before a CUDA graph is captured.
        early = torch.is_grad_enabled() and not self.pattern.transient
        return product(self.values, self.transposed if early else None, H, self.places)

    def mapped(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """What `linear` gives of it."""
        Z = self @ weight.T
        return Z if bias is None else Z + bias
