"""Theorem 2 (section 5): a GCNII whose scores are those of any polynomial filter Σ θ_k L̃^k.

In powers of P̃ = I - L̃ the filter is Σ c_l P̃^l.  With α = ½ and (1-β) I + β W = 2γ I a layer of
GCNII is h ← γ (P̃ h + x), and from h = 0 the layers γ_0, …, γ_{K-1} give

    c_l = γ_{K-1} γ_{K-2} ⋯ γ_{K-1-l}

so that γ_{K-1} = c_0 and γ_{K-1-l} = c_l / c_{l-1}.  Five things stand between that and a network:

- It starts at h = H0 = x, not at 0.  One more layer goes first, with γ = 0: its W = -(1-β)/β I maps
  every input to 0, and H0 is still x.  So K coefficients, a polynomial of degree K - 1, take K + 1
  layers.
- The ReLU changes nothing only where x ≥ 0 and every c_l ≥ 0.  Two channels carry the signs:
  H0 = (x⁺, x⁻), the matrix 2γ is multiplied by [[1, -1], [-1, 1]], and the scores are h⁺ - h⁻.
- Where c_{l-1} = 0 and c_l ≠ 0 there is no γ.  With ε in place of 0 the error is the sum of those
  ε P̃^l x; but h grows as 1/ε and (1-β) I + β W is rounded at 1e-16, so that about 1e-8 is the best
  in float64.  It is better to write the filter as a difference of two filters without zeros, side
  by side in one network of four channels: then every θ is exact.
- α = ½ is the proof's choice.  With an α of its own, as in equation 5, a layer is h ← a P̃ h + b x
  for any a and b of one sign (α = b/γ, γ = a + b): Horner's rule, which needs no division and no
  zero layer: K coefficients take the K - 1 layers of the theorem.  The first layer starts at h = x
  and gives c_{K-1} : c_{K-2} = a : b, so that these two must not have opposite signs: for
  L̃ x = x - P̃ x, one layer would need γ = c_0 + c_1 = 0.  One more layer, with α = 1, gives these
  filters as well.
- GCNII* has a weight for P̃ h and one for x, so that Horner's rule takes every θ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb, copysign, fsum, isfinite

import torch
from torch import Tensor, nn

from gcnii.errors import InputError
from gcnii.nn import GCNII, GCNIIStar, Model
from gcnii.nn.gcnii import GCNIIConv, GCNIIStarConv
from gcnii.propagation import Sparse

ALPHA, LAM = 0.5, 0.5  # theorem 2's, and any
EPSILON = 1e-8  # in place of a zero partial sum; a smaller one would be lost to rounding
SIGNS = torch.tensor([[1, -1], [-1, 1]], dtype=torch.float64)


def change_basis(theta: Sequence[float]) -> list[float]:
    """θ of Σ θ_k L̃^k → c of Σ c_l P̃^l, and back: c_l = (-1)^l Σ_{k≥l} θ_k C(k, l)."""
    if not theta or not all(map(isfinite, theta)):
        raise InputError(
            f"a filter needs at least one coefficient, and all of them finite, got {list(theta)}"
        )
    degrees = range(len(theta))
    return [(-1) ** l * fsum(theta[k] * comb(k, l) for k in degrees[l:]) + 0.0 for l in degrees]


def apply_filter(P: Sparse, theta: Sequence[float], X: Tensor) -> Tensor:
    """Σ θ_k L̃^k X by Horner's rule, which the networks are compared with."""
    Z = torch.zeros_like(X)
    for coefficient in reversed(theta):
        Z = Z - P @ Z + coefficient * X
    return Z


def without_zeros(c: Sequence[float], epsilon: float = EPSILON) -> list[float]:
    """c with values below ε raised to ε, but for trailing zeros: then every γ exists."""
    last = max((l for l, one in enumerate(c) if one), default=0)
    return [copysign(max(abs(one), epsilon), one) if l < last else one for l, one in enumerate(c)]


def gammas(c: Sequence[float], epsilon: float = EPSILON) -> list[float]:
    """γ_0, …, γ_{K-1} of the filter Σ c_l P̃^l, from the first layer to the last."""
    c = without_zeros(c, epsilon)
    ratios = [after / before if before else 0.0 for before, after in pairwise(c)]
    return [*reversed(ratios), c[0]]


def coefficients(gamma: Iterable[float], start: float) -> list[float]:
    """c of the polynomial that the layers h ← γ (P̃ h + x) make of h = start · x."""
    c = [start]
    for one in gamma:
        c = [one, *(one * before for before in c)]
    return c


def two_channels(theta: Sequence[float], d: int = 1, *, epsilon: float = EPSILON) -> GCNII:
    """A float64 GCNII whose scores are Σ θ_k L̃^k X for any X (n, d); K + 1 layers of width 2d."""
    return _gcnii([gammas(change_basis(theta), epsilon)], SIGNS, d)


def one_channel(theta: Sequence[float], d: int = 1) -> GCNII:
    """The same with width d, as in the proof; exact only if every c_l ≥ 0 and X ≥ 0."""
    return _gcnii([gammas(change_basis(theta))], SIGNS[:1, :1], d)


def four_channels(theta: Sequence[float], d: int = 1) -> GCNII:
    """The same with width 4d and without ε, exact for any θ.

    c = (c + t) - t, where t_l has the sign of c_l and the size of the largest c.
    """
    c = change_basis(theta)
    largest = max(map(abs, c)) or 1.0
    t = [copysign(largest, one) for one in c]
    parts = [one + shift for one, shift in zip(c, t, strict=True)], [-shift for shift in t]
    return _gcnii([gammas(part, epsilon=0.0) for part in parts], SIGNS, d)


def own_alphas(theta: Sequence[float], d: int = 1) -> GCNII:
    """The same with width 2d, K - 1 layers and an α for each of them, exact for any θ.

    One layer more, if the two highest c have opposite signs or K is 1.
    """
    steps = alphas_and_gammas(change_basis(theta))
    model = _opened(GCNII, len(steps), SIGNS[:, :1], d)
    mix = torch.kron(SIGNS, torch.eye(d))
    for conv, (alpha, gamma) in zip(model.convs, steps, strict=True):
        assert isinstance(conv, GCNIIConv)
        conv.alpha = alpha
        solve(conv, gamma * mix)
    return model


def alphas_and_gammas(c: Sequence[float]) -> list[tuple[float, float]]:
    """α and γ of the layers h ← γ ((1-α) P̃ h + α x) that make Σ c_l P̃^l x of h = x."""
    if len(c) < 2 or c[-1] * c[-2] < 0:
        c = (*c, 0.0)  # which takes a layer with α = 1
    largest = max(map(abs, c)) or 1.0  # by which the last layer multiplies, so that no b exceeds a
    *lower, below, top = (one / largest for one in c)
    pairs, sign = [], 1.0  # a and b, the last layer first; the sign that the layers after it give
    for one in lower:
        b = sign * one
        pairs.append((copysign(1.0, b), b))
        sign *= pairs[-1][0]
    pairs.append((sign * top, sign * below))
    steps = [(b / (a + b) if b else 0.0, a + b) for a, b in reversed(pairs)]
    return [*steps[:-1], (steps[-1][0], largest * steps[-1][1])]


def horner(theta: Sequence[float], d: int = 1) -> GCNII:
    """A float64 GCNII* whose scores are Σ θ_k L̃^k X for any X (n, d); max(K - 1, 1) layers."""
    top, *rest = reversed(change_basis(theta))
    a, b = ([top, *[1.0] * (len(rest) - 1)], rest) if rest else ([0.0], [top])
    model = _opened(GCNIIStar, len(b), SIGNS[:, :1], d)
    mix = torch.kron(SIGNS, torch.eye(d))
    for conv, of_state, of_input in zip(model.convs, a, b, strict=True):
        solve_star(conv, of_state * mix, of_input * mix)
    return model


def _gcnii(filters: Sequence[Sequence[float]], mix: Tensor, d: int) -> GCNII:
    """The sum of filters, each with its γ and its channels, mixed by `mix`, after a zero layer."""
    # (layers, filters)
    steps = torch.tensor([[0.0, *gamma] for gamma in filters], dtype=torch.float64).T
    model = _opened(GCNII, len(steps), SIGNS[: len(mix), :1].repeat(steps.shape[1], 1), d)
    for conv, gamma in zip(model.convs, steps, strict=True):
        solve(conv, torch.kron(torch.kron(2 * gamma.diag(), mix), torch.eye(d)))
    return model


def _opened(kind: type[GCNII], layers: int, signs: Tensor, d: int) -> GCNII:
    """A float64 network whose dense layers only carry signs (channels, 1).

    H0 is X⁺ or X⁻, the scores are their sum.
    """
    width = len(signs) * d
    model = kind(d, d, layers=layers, width=width, alpha=ALPHA, lam=LAM, dropout=0.0)
    both = torch.kron(signs, torch.eye(d))
    solve_dense(model.double().dense["encode"], both, torch.zeros(1))
    solve_dense(model.dense["decode"], both.T, torch.zeros(1))
    return model.eval()


@torch.no_grad()
def solve_dense(layer: nn.Module, weight: Tensor, bias: Tensor) -> None:
    """Give a dense layer its weight (out, in) and its bias, (out,) or (1,)."""
    assert isinstance(layer, nn.Linear)
    layer.weight.copy_(weight)
    layer.bias.copy_(bias)


@torch.no_grad()
def solve(conv: nn.Module, M: Tensor) -> None:
    """Give a layer of GCNII the W for which (1-β) I + β W = M."""
    assert isinstance(conv, GCNIIConv)
    I = torch.eye(len(M), dtype=M.dtype)
    conv.W.copy_((M - (1 - conv.beta) * I) / conv.beta)


@torch.no_grad()
def solve_star(conv: nn.Module, M1: Tensor, M2: Tensor) -> None:
    """Give a layer of GCNII*, as coded, the W1 and W2 for which it is P̃ H M1 + H0 M2."""
    assert isinstance(conv, GCNIIStarConv)
    I = torch.eye(len(M1), dtype=M1.dtype)
    conv.W1.copy_((M1 - (1 - conv.beta) * (1 - conv.alpha) * I) / conv.beta)
    conv.W2.copy_((M2 - (1 - conv.beta) * conv.alpha * I) / conv.beta)


def recurrence_as_printed(P: Sparse, theta: Sequence[float], X: Tensor) -> Tensor:
    """The proof's h ← γ P̃ (h + x) from h = x: another polynomial, without a term in P̃^0."""
    H = X
    for one in gammas(change_basis(theta)):
        H = one * (P @ (H + X))
    return H


BAND_PASS = (0.0, 0.0, 4.0, -4.0, 1.0)  # λ² (2 - λ)²: c = (1, 0, -2, 0, 1) has zeros and signs
FILTERS: dict[str, tuple[float, ...]] = {
    "personalised PageRank, α = 0.1": tuple(change_basis([0.1 * 0.9**l for l in range(16)])),
    "high pass, λ": (0.0, 1.0),
    "band pass, λ² (2 - λ)²": BAND_PASS,
    "random, K = 16": tuple(
        2 * torch.rand(16, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 1
    ),
}


@dataclass(frozen=True)
class Realised:
    """A filter, and the largest error of each network and of the proof's recurrence at any node.

    largest  the largest |γ|, with ε in place of zero partial sums
    size     the filter's own largest value
    """

    name: str
    theta: tuple[float, ...]
    largest: float
    size: float
    one_channel: float
    two_channels: float
    four_channels: float
    own_alphas: float
    horner: float
    as_printed: float


@torch.no_grad()
def realise(P: Sparse, name: str, theta: Sequence[float], X: Tensor) -> Realised:
    """Apply a filter to X (n, d) by every network, and compare."""
    right, d = apply_filter(P, theta, X), X.shape[1]

    def off(scores: Tensor) -> float:
        return float((scores - right).abs().max())

    return Realised(
        name=name,
        theta=tuple(map(float, theta)),
        largest=max(map(abs, gammas(change_basis(theta)))),
        size=float(right.abs().max()),
        one_channel=off(one_channel(theta, d)(P, X)),
        two_channels=off(two_channels(theta, d)(P, X)),
        four_channels=off(four_channels(theta, d)(P, X)),
        own_alphas=off(own_alphas(theta, d)(P, X)),
        horner=off(horner(theta, d)(P, X)),
        as_printed=off(recurrence_as_printed(P, theta, X)),
    )


@dataclass(frozen=True)
class Substitute:
    """ε in place of zero partial sums: the largest |γ|, and the errors in two precisions."""

    epsilon: float
    largest: float
    float64: float
    float32: float


@torch.no_grad()
def substitute(P: Sparse, theta: Sequence[float], X: Tensor, epsilon: float) -> Substitute:
    """The errors of two channels with this ε."""
    right, model = apply_filter(P, theta, X), two_channels(theta, X.shape[1], epsilon=epsilon)
    exact = model(P, X)
    single = model.float()(P.to("cpu", torch.float32), X.float())
    errors = (float((scores - right).abs().max()) for scores in (exact, single))
    return Substitute(epsilon, max(map(abs, gammas(change_basis(theta), epsilon))), *errors)


@torch.no_grad()
def gain(P: Sparse, model: Model, U: Tensor) -> Tensor:
    """(d,) the factor on each signal of U (n, d), which have length 1 and one frequency each."""
    scores: Tensor = model(P, U)
    return (U * scores).sum(0)
