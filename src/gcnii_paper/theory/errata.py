"""Errors in the paper's theory: what it says, what holds, and a counter-example with numbers.

All examples are on the star 0–1, 0–2, 0–3, whose degrees D̃ are 4, 2, 2, 2, so that they can be
checked by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcnii.graph import Graph
from gcnii.nn import Model
from gcnii.nn.appnp import resolvent
from gcnii.propagation import adjacency
from gcnii_paper.theory.filters import (
    apply_filter,
    change_basis,
    one_channel,
    own_alphas,
    recurrence_as_printed,
    two_channels,
)
from gcnii_paper.theory.spectrum import LazyWalk, distances, exact_matrix

STAR = Graph(X=np.eye(4), edges=[[0, 0, 0], [1, 2, 3]], name="star")  # type: ignore[arg-type]
HUB = torch.tensor([[1.0], [0], [0], [0]], dtype=torch.float64)  # x: a signal at the hub alone
HIGH_PASS = (0.0, 1.0)  # L̃ x = x - P̃ x: c = (1, -1)
ORDER_5 = (0.7, 0.3, 0.0, 2.0, 5.0, 1.0)  # c of a filter with a zero and unequal top coefficients


@dataclass(frozen=True)
class Erratum:
    """A sentence or equation of the paper, and what holds instead, with numbers."""

    where: str
    says: str
    holds: str


def errata() -> list[Erratum]:
    """All errata, in the order of the paper."""
    return [
        _equation_2(),
        _nodes_and_edges(),
        _signed(),
        _gap_for_conductance(),
        _recurrence(),
        _order(),
        _zeros(),
        _relu(),
    ]


def _equation_2() -> Erratum:
    P, looped = exact_matrix(STAR), torch.tensor(adjacency(STAR).toarray()) + torch.eye(4)
    Z = HUB
    for _ in range(500):
        Z = 0.9 * (P @ Z) + 0.1 * HUB  # equation 3
    right = resolvent(P, 0.1) @ HUB
    printed = 0.1 * torch.linalg.solve(torch.eye(4) - 0.9 * looped, HUB)
    return Erratum(
        "equation 2",
        "equation 3 ends at α (I - (1-α) Ã)^-1 x",
        f"P̃ is meant: at the hub, with α = 0.1, equation 3 ends at {Z[0, 0]:.3f}, "
        f"P̃ gives {right[0, 0]:.3f} and Ã {printed[0, 0]:.3f}",
    )


def _nodes_and_edges() -> Erratum:
    walk, x = LazyWalk.on(STAR), HUB[:, 0].numpy()
    n, m = STAR.n, STAR.m
    h = np.linalg.matrix_power((np.eye(4) + walk.P.toarray()) / 2, 500) @ x
    root = np.sqrt(walk.degree)
    right, swapped = (float(root @ x / total * root[0]) for total in (2 * m + n, 2 * n + m))
    return Erratum(
        "below theorem 1",
        "m and n are the number of nodes and edges",
        "they are swapped: with 4 nodes and 3 edges D̃ adds up to "
        f"2m + n = {walk.degree.sum():.0f} if m counts edges; "
        f"the hub ends at {h[0]:.3f}, π is {right:.3f}, and {swapped:.3f} as worded",
    )


def _signed() -> Erratum:
    x = np.array([1.0, -1, 0, 0])
    (found,) = distances(LazyWalk.on(STAR), x, [4])
    return Erratum(
        "theorem 1",
        "|h_K - π| ≤ (Σx)(1 - λ²/2)^K",
        "true for x ≥ 0 only: x = (1, -1, 0, 0) has Σx = 0, and at K = 4 the distance is "
        f"{found.distance:.3f}; ‖x‖₁ for Σx gives {found.corrected:.3f}, which holds",
    )


def _gap_for_conductance() -> Erratum:
    walk, x = LazyWalk.on(STAR), np.array([0.0, 1, 0, 0])
    (found,) = distances(walk, x, [16])
    return Erratum(
        "proof of theorem 1",
        "the rate is 1 - λ²/2",
        "λ stands where Cheeger's inequality has the conductance; "
        "M's eigenvalue is 1 - λ/2, which is never larger: "
        f"at λ = {walk.gap:.3f} and K = 16 a leaf's signal is {found.distance:.4f} away, "
        f"the bounds are {found.spectral:.4f} and, as printed, {found.printed:.4f}",
    )


def _recurrence() -> Erratum:
    P = exact_matrix(STAR)
    right = apply_filter(P, HIGH_PASS, HUB)
    return Erratum(
        "proof of theorem 2",
        "h ← γ P̃ (h + x) from h = x gives Σ θ_k L̃^k x",
        "it has no term in P̃^0; h ← γ (P̃ h + x) from h = 0 has: for L̃ x at the hub, "
        f"{right[0, 0]:.3f}, the proof gives {recurrence_as_printed(P, HIGH_PASS, HUB)[0, 0]:.3f} "
        f"and the other {_scores(two_channels(HIGH_PASS), HUB)[0, 0]:.3f}",
    )


def _order() -> Erratum:
    P, x = exact_matrix(STAR), HUB
    theta = change_basis(ORDER_5)  # change_basis is its own inverse
    network = own_alphas(theta)
    off = float((_scores(network, x) - apply_filter(P, theta, x)).abs().max())
    return Erratum(
        "theorem 2",
        "K layers express any polynomial of order K",
        "those whose two highest coefficients have no opposite signs: a first layer, from h = x, "
        "gives them as (1-α) : α, and L̃ x, with c = (1, -1), would need γ = c_0 + c_1 = 0; "
        f"c = ({', '.join(f'{one:g}' for one in ORDER_5)}) takes {len(network.convs)} layers, to "
        f"{off:.0e}, and L̃ x {len(own_alphas(HIGH_PASS).convs)}",
    )


def _zeros() -> Erratum:
    theta = change_basis((1.0, 0.0, 1.0))
    right = apply_filter(exact_matrix(STAR), theta, HUB)
    networks = (two_channels(theta, epsilon=1e-2), two_channels(theta), own_alphas(theta))
    rough, fine, exact = (float((_scores(one, HUB) - right).abs().max()) for one in networks)
    return Erratum(
        "proof of theorem 2",
        "with α = ½, γ is the quotient c_l / c_{l-1} of partial sums of θ",
        f"c = (1, 0, 1) has no such γ: with ε = 1e-2 for 0 the scores are {rough:.1e} off, "
        f"with 1e-8 {fine:.1e}; an α for each layer, as in equation 5, gives it to {exact:.0e}",
    )


def _relu() -> Erratum:
    right = apply_filter(exact_matrix(STAR), HIGH_PASS, HUB)
    one, two = (_scores(build(HIGH_PASS), HUB) for build in (one_channel, two_channels))
    return Erratum(
        "proof of theorem 2",
        "x ≥ 0 makes the ReLU idle",
        f"only if every c ≥ 0 too: L̃ x has c = (1, -1), at a leaf {right[1, 0]:.3f}, "
        f"and one channel gives {one[1, 0]:.3f}; two, (h⁺, h⁻), give {two[1, 0]:.3f}",
    )


def _scores(model: Model, X: Tensor) -> Tensor:
    with torch.no_grad():
        return model(exact_matrix(STAR), X)
