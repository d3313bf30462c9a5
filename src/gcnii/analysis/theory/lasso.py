"""The LASSO view of section 3: iterative shrinkage-thresholding (ISTA) is a network of GCNII*'s
layers.

    min ½ ‖B x - y‖² + ρ ‖x‖₁      x ← S_μρ((I - μ BᵀB) x + μ Bᵀy),   S_t(z) = sign(z) max(|z| - t,
    0)

The paper reads -BᵀB as W, so that I + μ W is the identity mapping and μ Bᵀy the initial residual.
Here that is taken at its word: a real `GCNIIStar` whose hidden states are ISTA's iterates.  A node
is a problem y of its own and has no neighbours, so P̃ = I.  Three things the paper's sentence
leaves out:

- The residual is not multiplied by I + μ W, so it is GCNII* that does this, with a weight for each,
  and not GCNII.
- x has signs and the ReLU has none: H = (x⁺, x⁻), as in theorem 2.
- S_t is a ReLU with a bias, S_t(z) = ReLU(z - t) - ReLU(-z - t), and the layers have none: one unit
  of H0 is always 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from gcnii.analysis.theory.polynomials import SIGNS, solve_dense, solve_star
from gcnii.graph import Graph
from gcnii.nn import GCNIIStar
from gcnii.propagation import propagation_matrix

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Lasso:
    """n problems at once: codes X (n, d) such that X Bᵀ is near Y (n, m) and most of X is zero.

    penalty  ρ, the weight of ‖x‖₁
    """

    B: Floats
    Y: Floats
    penalty: float

    @cached_property
    def step(self) -> float:
        """μ = 1 / ‖B‖², the longest with which the objective never rises."""
        return float(np.linalg.norm(self.B, 2) ** -2)

    def objective(self, X: Floats) -> float:
        """½ ‖X Bᵀ - Y‖² + ρ ‖X‖₁, of all problems together."""
        return float(((X @ self.B.T - self.Y) ** 2).sum() / 2 + self.penalty * np.abs(X).sum())

    def ista(self, steps: int) -> Floats:
        """(n, d) after so many steps from x = Bᵀy, where the network starts as well."""
        X = start = self.Y @ self.B
        for _ in range(steps):
            X = soft_threshold(
                X - self.step * (X @ self.B.T @ self.B - start), self.step * self.penalty
            )
        return X


def soft_threshold(Z: Floats, threshold: float) -> Floats:
    """sign(z) max(|z| - t, 0), entry by entry."""
    return np.sign(Z) * np.maximum(np.abs(Z) - threshold, 0)


def sparse_coding(n: int = 20, m: int = 16, d: int = 24, nonzero: int = 3, seed: int = 0) -> Lasso:
    """A small problem: y is a sum of a few of the d columns of a random B (m, d), of length 1, and
    noise.
    """
    random = np.random.default_rng(seed)
    B = random.standard_normal((m, d))
    B /= np.linalg.norm(B, axis=0)
    X = np.zeros((n, d))
    for code in X:
        code[random.choice(d, nonzero, replace=False)] = random.choice([-1, 1], nonzero) * (
            1 + random.random(nonzero)
        )
    return Lasso(B, X @ B.T + 0.01 * random.standard_normal((n, m)), penalty=0.05)


def ista_network(problem: Lasso, steps: int, *, alpha: float = 0.1, lam: float = 0.5) -> GCNIIStar:
    """A GCNII* in float64 with a layer for each step: from Y (n, m), over no edges, its scores are
    ISTA's iterate.
    """
    m, d = problem.B.shape
    width = 2 * d + 1  # x⁺, x⁻ and the constant
    model = (
        GCNIIStar(m, d, layers=steps, width=width, alpha=alpha, lam=lam, dropout=0.0)
        .double()
        .eval()
    )
    B = torch.tensor(problem.B)
    signs = torch.zeros(width, d, dtype=torch.float64)
    signs[:-1] = torch.kron(SIGNS[:, :1], torch.eye(d))
    constant = torch.zeros(width, dtype=torch.float64)
    constant[-1] = 1
    solve_dense(model.dense["encode"], signs @ B.T, constant)
    solve_dense(model.dense["decode"], signs.T, torch.zeros(1))
    M1 = signs @ (torch.eye(d) - problem.step * B.T @ B) @ signs.T
    M2 = problem.step * (signs @ signs.T - problem.penalty * torch.outer(constant, 1 - constant))
    for conv in model.convs:
        solve_star(conv, M1, M2)
    return model


@dataclass(frozen=True)
class Iterate:
    """Where ISTA and the network stand after so many steps."""

    steps: int
    objective: float
    nonzero: float
    difference: float


def iterates(problem: Lasso, steps: Iterable[int]) -> list[Iterate]:
    """Both, by number of steps: objective, share of codes that are not zero, largest difference of
    the two.
    """
    P, Y = (
        propagation_matrix(Graph(X=problem.Y, edges=np.zeros((2, 0), np.int64))),
        torch.tensor(problem.Y),
    )
    found = []
    for count in steps:
        X = problem.ista(count)
        with torch.no_grad():
            scores = ista_network(problem, count)(P, Y).numpy()
        found.append(
            Iterate(
                count, problem.objective(X), float((X != 0).mean()), float(np.abs(scores - X).max())
            )
        )
    return found
