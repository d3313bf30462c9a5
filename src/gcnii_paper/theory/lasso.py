"""The LASSO view of section 3: iterative shrinkage-thresholding (ISTA) as layers of GCNII.

    min ½ ‖B x - y‖² + ρ ‖x‖₁      x ← S_μρ((I - μ BᵀB) x + μ Bᵀy)
    S_t(z) = sign(z) max(|z| - t, 0)

The paper reads -BᵀB as W, so that I + μ W is the identity mapping and μ Bᵀy the initial residual.
Here this is taken literally: a real `GCNIIStar` whose hidden states are ISTA's iterates.  Each node
is a problem y of its own without neighbours, so P̃ = I.  The paper leaves out three things:

- The residual is not multiplied by I + μ W.  GCNII* has a weight for each term.  GCNII has one for
  both, and needs twice the width: H0 is in other channels than x, so that they have rows of W of
  their own.
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
from torch import Tensor

from gcnii.graph import Graph
from gcnii.nn import GCNII, GCNIIStar
from gcnii_paper.theory.filters import LAM, SIGNS, solve, solve_dense, solve_star
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


def ista_network(problem: Lasso, steps: int, *, alpha: float = 0.1) -> GCNIIStar:
    """A GCNII* in float64 with one layer per step, whose scores are ISTA's iterate.

    It takes Y (n, m) as features, on a graph without edges.
    """
    m, d = problem.B.shape
    step = Step.of(problem)
    width = len(step.signs)
    model = GCNIIStar(m, d, layers=steps, width=width, alpha=alpha, lam=LAM, dropout=0.0)
    solve_dense(model.double().dense["encode"], step.of_measurements, step.constant)
    solve_dense(model.dense["decode"], step.signs.T, torch.zeros(1))
    for conv in model.convs:
        solve_star(conv, step.of_state, step.of_input)
    return model.eval()


def plain_network(problem: Lasso, steps: int, *, alpha: float = 0.1) -> GCNII:
    """The same as a GCNII of twice the width; its first layer brings x = Bᵀy to its channels."""
    m, d = problem.B.shape
    step = Step.of(problem)
    width = len(step.signs)  # of the state, and again of H0
    model = GCNII(m, d, layers=steps + 1, width=2 * width, alpha=alpha, lam=LAM, dropout=0.0)
    state, of_H0 = torch.eye(2, dtype=torch.float64)  # which half of the channels
    encode = torch.kron(of_H0[:, None], step.of_measurements)
    solve_dense(model.double().dense["encode"], encode, torch.kron(of_H0, step.constant))
    solve_dense(model.dense["decode"], torch.kron(state[:, None], step.signs).T, torch.zeros(1))
    # In ((1-α) H + α H0) M the upper half of M reads the state, the lower one H0.
    rows = torch.cat([step.of_state / (1 - alpha), step.of_input / alpha])
    first, *others = model.convs
    solve(first, torch.kron(state, torch.kron(of_H0[:, None], torch.eye(width))))
    for conv in others:
        solve(conv, torch.kron(state, rows))
    return model.eval()


@dataclass(frozen=True, eq=False)
class Step:
    """A step of ISTA in channels (x⁺, x⁻, 1), before the ReLU: state · of_state + H0 · of_input.

    signs            (channels, d), which make x of them
    of_measurements  (channels, m), by which y becomes Bᵀy in them
    constant         (channels,), 1 in the last
    """

    signs: Tensor
    of_measurements: Tensor
    constant: Tensor
    of_state: Tensor
    of_input: Tensor

    @classmethod
    def of(cls, problem: Lasso) -> Step:
        """The matrices of this problem."""
        B, d = torch.tensor(problem.B), problem.B.shape[1]
        signs = torch.zeros(2 * d + 1, d, dtype=torch.float64)
        signs[:-1] = torch.kron(SIGNS[:, :1], torch.eye(d))
        constant = torch.zeros(2 * d + 1, dtype=torch.float64)
        constant[-1] = 1
        threshold = problem.penalty * torch.outer(constant, 1 - constant)
        return cls(
            signs,
            signs @ B.T,
            constant,
            signs @ (torch.eye(d) - problem.step * B.T @ B) @ signs.T,
            problem.step * (signs @ signs.T - threshold),
        )


@dataclass(frozen=True)
class Iterate:
    """ISTA and the network after some steps.

    objective   of the LASSO
    nonzero     the share of codes that are not zero
    difference  the largest difference between ISTA and GCNII*
    plain_difference  the same of GCNII of twice the width
    """

    steps: int
    objective: float
    nonzero: float
    difference: float
    plain_difference: float


def iterates(problem: Lasso, steps: Iterable[int]) -> list[Iterate]:
    """Run ISTA and the networks for each number of steps."""
    P = exact_matrix(Graph(X=problem.Y, edges=np.zeros((2, 0), np.int64)))
    Y, found = torch.tensor(problem.Y), []
    for count in steps:
        X = problem.ista(count)
        with torch.no_grad():
            networks = (build(problem, count) for build in (ista_network, plain_network))
            off = [float(np.abs(one(P, Y).numpy() - X).max()) for one in networks]
        found.append(Iterate(count, problem.objective(X), float((X != 0).mean()), *off))
    return found
