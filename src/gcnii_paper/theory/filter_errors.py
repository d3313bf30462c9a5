"""How well theorem 2's networks realise the filters they are built for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gcnii.nn import Model
from gcnii.propagation import Sparse
from gcnii_paper.theory.polynomials import (
    apply_filter,
    change_basis,
    four_channels,
    gammas,
    horner,
    one_channel,
    recurrence_as_printed,
    two_channels,
)

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
