"""The exact decomposition of a score: gradient × input, over nodes and features, and a bias share.

A network of ReLUs is piecewise linear.  With its biases b counted as inputs it is homogeneous,
s(tX, tb) = t s(X, b), and Euler's identity says s = Σ X · ∂s/∂X + Σ b · ∂s/∂b.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.inference.explaining.network import Network
from gcnii.inference.explaining.question import Question
from gcnii.propagation import Sparse

Floats = NDArray[np.float64]
EXACT = 1e-4  # of the largest score: a larger residual is not of rounding


@dataclass(frozen=True, eq=False)
class Shares:
    """A score as a sum: `score` = Σ nodes + bias + residual = Σ features + bias + residual.

    nodes     (n,) what the features of each node add
    features  (d,) what each feature adds, over all nodes
    bias      what the weights add that the model itself adds to its sums
    largest   the largest absolute score of the node, of any class
    """

    score: float
    nodes: Floats
    features: Floats
    bias: float
    largest: float

    @property
    def residual(self) -> float:
        """What is left over: rounding, or what is not piecewise linear."""
        return self.score - float(self.nodes.sum()) - self.bias

    @property
    def exact(self) -> bool:
        """Whether the residual is of rounding alone."""
        return abs(self.residual) <= EXACT * self.largest


def shares(network: Network, question: Question) -> Shares:
    """The shares of the score in question."""
    X, values = _watched(network.task.X)
    row = network.scores(X=X)[question.node]
    score = row[question.label]
    if question.against is not None:
        score = score - row[question.against]
    inputs = [values, *network.biases]
    gradients = torch.autograd.grad(score, inputs, allow_unused=True)
    products = [
        torch.zeros_like(one).double() if slope is None else one.detach().double() * slope.double()
        for one, slope in zip(inputs, gradients, strict=True)
    ]
    nodes, features = _margins(X, products[0])
    bias = sum(float(one.sum()) for one in products[1:])
    return Shares(float(score.detach()), nodes, features, bias, float(row.detach().abs().max()))


def _watched(X: Tensor | Sparse) -> tuple[Tensor | Sparse, Tensor]:
    """X, and its values, which gradients reach."""
    if isinstance(X, Sparse):
        values = X.values.detach().clone().requires_grad_()
        return Sparse.on(X.pattern, values), values
    values = X.detach().clone().requires_grad_()
    return values, values


def _margins(X: Tensor | Sparse, products: Tensor) -> tuple[Floats, Floats]:
    """Sums over the rows and over the columns of numbers at X's entries."""
    found = products.cpu().numpy()
    if not isinstance(X, Sparse):
        return found.sum(1), found.sum(0)
    rows, columns = X.pattern.row_of.cpu().numpy(), X.pattern.columns.cpu().numpy()
    n, d = X.shape
    by_row, by_column = np.bincount(rows, found, n), np.bincount(columns, found, d)
    return by_row.astype(np.float64), by_column.astype(np.float64)  # of no entry, they are integers
