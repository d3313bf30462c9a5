"""The LASSO view of section 3: iterative shrinkage-thresholding (ISTA) as layers of GCNII*.

    min ½ ‖B x - y‖² + ρ ‖x‖₁      x ← S_μρ((I - μ BᵀB) x + μ Bᵀy)
    S_t(z) = sign(z) max(|z| - t, 0)

The paper reads -BᵀB as W, so that I + μ W is the identity mapping and μ Bᵀy the initial residual.
Here this is taken literally: a real `GCNIIStar` whose hidden states are ISTA's iterates.  Each node
is a problem y of its own without neighbours, so P̃ = I.  The paper leaves out three things:

- The residual is not multiplied by I + μ W, so it takes GCNII*, which has a weight for each term,
  and not GCNII.
- x has signs and the output of a ReLU has none: H = (x⁺, x⁻), as in theorem 2.
- S_t is a ReLU with a bias, S_t(z) = ReLU(z - t) - ReLU(-z - t), and the layers have no bias: one
  unit of H0 is always 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from gcnii.graph import Graph
from gcnii.nn import GCNIIStar
from gcnii_paper.theory.filters import SIGNS, solve_dense, solve_star
from gcnii_paper.theory.spectrum import Floats, exact_matrix


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
        """μ = 1 / ‖B‖², the longest step with which the objective never rises."""
        return float(np.linalg.norm(self.B, 2) ** -2)

    def objective(self, X: Floats) -> float:
        """½ ‖X Bᵀ - Y‖² + ρ ‖X‖₁, summed over all problems."""
        return float(((X @ self.B.T - self.Y) ** 2).sum() / 2 + self.penalty * np.abs(X).sum())

    def ista(self, steps: int) -> Floats:
        """(n, d) the iterates after `steps` steps from x = Bᵀy, where the network starts too."""
        X = start = self.Y @ self.B
        for _ in range(steps):
            Z = X - self.step * (X @ self.B.T @ self.B - start)
            X = soft_threshold(Z, self.step * self.penalty)
        return X


def soft_threshold(Z: Floats, threshold: float) -> Floats:
    """sign(z) max(|z| - t, 0), entry by entry."""
    return np.sign(Z) * np.maximum(np.abs(Z) - threshold, 0)


def sparse_coding(n: int = 20, m: int = 16, d: int = 24, nonzero: int = 3, seed: int = 0) -> Lasso:
    """A small problem: y is a sum of a few columns of a random B (m, d), of length 1, and noise."""
    random = np.random.default_rng(seed)
    B = random.standard_normal((m, d))
    B /= np.linalg.norm(B, axis=0)
    X = np.zeros((n, d))
    for code in X:
        values = random.choice([-1, 1], nonzero) * (1 + random.random(nonzero))
        code[random.choice(d, nonzero, replace=False)] = values
    return Lasso(B, X @ B.T + 0.01 * random.standard_normal((n, m)), penalty=0.05)


def ista_network(problem: Lasso, steps: int, *, alpha: float = 0.1, lam: float = 0.5) -> GCNIIStar:
    """A GCNII* in float64 with one layer per step, whose scores are ISTA's iterate.

    It takes Y (n, m) as features, on a graph without edges.
    """
    m, d = problem.B.shape
    width = 2 * d + 1  # x⁺, x⁻ and the constant
    model = GCNIIStar(m, d, layers=steps, width=width, alpha=alpha, lam=lam, dropout=0.0)
    B = torch.tensor(problem.B)
    signs = torch.zeros(width, d, dtype=torch.float64)
    signs[:-1] = torch.kron(SIGNS[:, :1], torch.eye(d))
    constant = torch.zeros(width, dtype=torch.float64)
    constant[-1] = 1
    M1 = signs @ (torch.eye(d) - problem.step * B.T @ B) @ signs.T
    M2 = problem.step * (signs @ signs.T - problem.penalty * torch.outer(constant, 1 - constant))
    solve_dense(model.double().dense["encode"], signs @ B.T, constant)
    solve_dense(model.dense["decode"], signs.T, torch.zeros(1))
    for conv in model.convs:
        solve_star(conv, M1, M2)
    return model.eval()


@dataclass(frozen=True)
class Iterate:
    """ISTA and the network after some steps.

    objective   of the LASSO
    nonzero     the share of codes that are not zero
    difference  the largest difference between ISTA and the network
    """

    steps: int
    objective: float
    nonzero: float
    difference: float


def iterates(problem: Lasso, steps: Iterable[int]) -> list[Iterate]:
    """Run ISTA and the network for each number of steps."""
    P = exact_matrix(Graph(X=problem.Y, edges=np.zeros((2, 0), np.int64)))
    Y, found = torch.tensor(problem.Y), []
    for count in steps:
        X = problem.ista(count)
        with torch.no_grad():
            scores = ista_network(problem, count)(P, Y).numpy()
        nonzero, difference = float((X != 0).mean()), float(np.abs(scores - X).max())
        found.append(Iterate(count, problem.objective(X), nonzero, difference))
    return found
