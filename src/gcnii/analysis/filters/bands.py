"""Signals on the nodes with about one frequency: an eigenvector of L̃ = I - P̃ has λ in [0, 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from torch import Tensor

from gcnii.errors import InputError
from gcnii.propagation import Sparse

# number of nodes up to which all eigenvectors are computed: 128 MB; five seconds for Cora on two
# cores
SMALL = 4000
EQUAL = 1e-7  # eigenvalues closer than this count as one: P̃ may have been rounded to float32
ORDER = 160  # of the Chebyshev polynomials; the edges of a window are then about 0.04 wide
# number of lowest eigenvectors of a large graph that are bands of their own: communities are few,
# and a window would blur them
LOWEST = 4
AT_ONCE = 16  # polynomials per block, so that their sums are matrix products
# share of the spectrum: a window with less sees more of its neighbours' frequencies than of its own
FEWEST = 1e-4


@dataclass(frozen=True, eq=False)
class Band:
    """Signals (n, s) of norm 1 near one frequency, and the share of all eigenvectors near it."""

    frequency: float
    share: float
    signals: Tensor


def refuse_asymmetric(P: Sparse) -> None:
    """Raise unless P̃ is symmetric: only then it has frequencies."""
    if not is_symmetric(P):
        raise InputError(
            "P̃ is not symmetric, so it has no frequencies;"
            " use norm symmetric, and both directions of a directed graph"
        )


def is_symmetric(P: Sparse) -> bool:
    """Whether P̃ is its own transpose, up to rounding."""
    here, (other, order) = P.pattern, P.pattern.transposed
    alike = torch.equal(other.rows, here.rows) and torch.equal(other.columns, here.columns)
    return alike and torch.allclose(P.values[order], P.values, atol=1e-6)


def eigenspaces(P: Sparse) -> list[Band]:
    """All eigenvectors; those with the same eigenvalue are the signals of one band."""
    values, U = _eigenvectors(P)
    starts = np.flatnonzero(np.diff(values, prepend=-np.inf) > EQUAL)
    ends = (*starts[1:], len(values))
    return [
        Band(float(values[i:j].mean()), (j - i) / len(values), U[:, i:j])
        for i, j in zip(starts, ends, strict=True)
    ]


def random_bands(P: Sparse, bands: int, probes: int, seed: int = 0) -> list[Band]:
    """Random mixtures of the frequencies in each of `bands` equal parts of [0, λ_max].

    Parts without frequencies are left out.
    """
    random = torch.Generator().manual_seed(seed)
    Z = torch.randn(P.shape[0], probes, generator=random, dtype=torch.float64)
    return list(_mixed(P, bands, Z) if P.shape[0] <= SMALL else _windowed(P, bands, Z))


def _mixed(P: Sparse, bands: int, Z: Tensor) -> Iterator[Band]:
    """Mixtures of the eigenvectors themselves."""
    values, U = _eigenvectors(P)
    place = np.minimum((values / values[-1] * bands).astype(int), bands - 1)
    for band in np.unique(place):
        inside = np.flatnonzero(place == band)
        A = U[:, inside] @ (U[:, inside].T @ Z)
        yield Band(float(values[inside].mean()), len(inside) / len(values), A / A.norm(dim=0))


def _windowed(P: Sparse, bands: int, Z: Tensor) -> Iterator[Band]:
    """The lowest frequencies by Lanczos, the others by polynomials of P̃ near 1 within the band."""
    P, (n, probes) = P.to("cpu", torch.float64), Z.shape
    values, U = _lowest(P)
    for frequency, u in zip(values, U.T, strict=True):
        yield Band(float(frequency), 1 / n, u[:, None].expand(n, probes))
    Z = Z - U @ (U.T @ Z)
    edges = np.linspace(0, _largest_frequency(P, Z[:, :1]), bands + 1)
    edges[-1] = 2  # so that all of [-1, 1], where P̃ = I - L̃ has its eigenvalues, is in a band
    windows = torch.tensor(np.stack([_window(1 - high, 1 - low) for low, high in pairwise(edges)]))
    for signals in _polynomials(P, windows, Z):
        share = float(signals.pow(2).sum() / Z.pow(2).sum())
        if share > FEWEST:
            unit = signals / signals.norm(dim=0)
            yield Band(float(1 - (unit * (P @ unit)).sum(0).mean()), share, unit)


def _polynomials(P: Sparse, coefficients: Tensor, Z: Tensor) -> Tensor:
    """(bands, n, probes): Σ_j c_j T_j(P̃) Z for each row c of Chebyshev coefficients."""
    A, before, now = torch.zeros(len(coefficients), *Z.shape, dtype=Z.dtype), P @ Z, Z
    for block in coefficients.split(AT_ONCE, dim=1):
        waves = []
        for _ in range(block.shape[1]):
            waves.append(now)
            before, now = now, 2 * (P @ now) - before
        A += torch.tensordot(block, torch.stack(waves), 1)
    return A


def _lowest(P: Sparse) -> tuple[NDArray[np.float64], Tensor]:
    """Up to LOWEST frequencies, as many as Lanczos finds in time, and their eigenvectors."""
    columns, rows = P.pattern.columns.numpy(), P.pattern.rows.numpy()
    matrix = sp.csr_array((P.values.numpy(), columns, rows), P.shape)
    start = np.random.default_rng(0).standard_normal(P.shape[0])
    try:
        values, U = eigsh(matrix, LOWEST, which="LA", tol=1e-4, v0=start, maxiter=200)
    except ArpackNoConvergence as stopped:
        values, U = stopped.eigenvalues, stopped.eigenvectors
    order = np.argsort(-values)
    return np.maximum(1 - values[order], 0), torch.tensor(U[:, order])


def _window(low: float, high: float) -> NDArray[np.float64]:
    """(ORDER + 1,) Chebyshev coefficients of the step that is 1 on [low, high], Jackson-damped."""
    left, right = np.arccos(np.clip([high, low], -1, 1))
    j = np.arange(1, ORDER + 1)
    step = np.concatenate(
        [[(right - left) / np.pi], 2 / (np.pi * j) * (np.sin(j * right) - np.sin(j * left))]
    )
    j, angle = np.arange(ORDER + 1), np.pi / (ORDER + 2)
    damping = ((ORDER - j + 2) * np.cos(j * angle) + np.sin(j * angle) / np.tan(angle)) / (
        ORDER + 2
    )
    return np.asarray(step * damping)


def _largest_frequency(P: Sparse, z: Tensor, steps: int = 50) -> float:
    """A lower bound by powers of L̃, which is enough: the last band reaches to 2 anyway."""
    for _ in range(steps):
        z = z - P @ z
        z = z / z.norm()
    return float(1 - (z * (P @ z)).sum())


def _eigenvectors(P: Sparse) -> tuple[NDArray[np.float64], Tensor]:
    """All frequencies λ (n,) from low to high, and their eigenvectors U (n, n)."""
    if P.shape[0] > SMALL:
        raise InputError(
            f"all eigenvectors are computed for graphs of up to {SMALL} nodes, got {P.shape[0]};"
            " use probes instead"
        )
    values, U = torch.linalg.eigh(P.to("cpu", torch.float64).to_dense())
    return 1 - values.flip(0).numpy(), U.flip(1)
