"""Theorem 1 (section 5): the limit of a linear GCN with residual connections, and its rate.

    M = (I + P̃) / 2,   h_K = M^K x → π,   π = ⟨D̃^½ 1, x⟩ / (2m + n) · D̃^½ 1

on each component of the graph.  The rate is that of the spectral gap λ: the smallest eigenvalue of
L̃ = I - P̃ that is not 0.  Self-loops make it at most 1, because the n - 1 eigenvalues besides 0 add
up to n - Σ 1/(d_i + 1) ≤ n - 1; so M's eigenvalues lie in (0, 1].  With edge weights above 1 that
would not hold: here every edge counts 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log, log1p

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh

from gcnii.analysis.degree import degrees, spans
from gcnii.graph import Graph
from gcnii.propagation import Direction, Loops, Sparse, adjacency, propagation_matrix

EXACT = 200  # number of nodes of a component up to which all eigenvalues are computed
STRIDE = 32  # steps of the walk in one matrix-vector product of Lanczos
BAND = 256  # degree of a narrow band pass: its width is about π / BAND
DRAWS = 20  # number of vectors over which a relative error is averaged
ROUNDING = 1e-13  # smaller relative errors are rounding in float64

Floats = NDArray[np.float64]


def exact_matrix(graph: Graph, direction: Direction = "out", loops: Loops = "keep") -> Sparse:
    """P̃ in float64, as the theorems are checked: without edge weights."""
    graph = _unweighted(graph)
    return propagation_matrix(graph, direction=direction, loops=loops, dtype=torch.float64)


def _unweighted(graph: Graph) -> Graph:
    return replace(graph, weights=None) if graph.weighted else graph


@dataclass(frozen=True, eq=False)
class LazyWalk:
    """M = (I + P̃) / 2 of a graph; as in the paper, edges go both ways and self-loops are removed.

    P          (n, n) P̃
    degree     (n,) the diagonal of D̃: d_i + 1
    component  (n,) the index of each node's component
    """

    P: sp.csr_array
    degree: Floats
    component: NDArray[np.int32]

    @classmethod
    def on(cls, graph: Graph) -> LazyWalk:
        """The walk on this graph."""
        P = exact_matrix(graph, direction="both", loops="remove")
        A = adjacency(_unweighted(graph), direction="both", loops="remove")
        matrix = sp.csr_array(
            (P.values.numpy(), P.pattern.columns.numpy(), P.pattern.rows.numpy()), P.shape
        )
        return cls(matrix, A.sum(1) + 1, connected_components(A, directed=False)[1])

    def step(self, h: Floats) -> Floats:
        """M h, for (n,) or (n, columns)."""
        return (h + self.P @ h) / 2  # type: ignore[no-any-return]

    def limit(self, x: Floats) -> Floats:
        """π, for (n,) or (n, columns): on each component, x's projection on D̃^½ 1."""
        root = np.sqrt(self.degree)
        share = (self._members @ (root * x.T).T).T / (self._members @ self.degree)
        return (root * share[..., self.component]).T  # type: ignore[no-any-return]

    @cached_property
    def _members(self) -> sp.csr_array:
        """(components, n) a one where a node is in a component."""
        n = len(self.component)
        return sp.csr_array((np.ones(n), (self.component, np.arange(n))))

    @cached_property
    def components(self) -> list[NDArray[np.int64]]:
        """The nodes of each component, the largest first."""
        order = np.argsort(self.component, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(self.component))[:-1])
        return sorted(parts, key=len, reverse=True)

    @cached_property
    def gap(self) -> float:
        """λ, the smallest over the components; 1 without edges, where every x is its own limit."""
        return min(
            (self._gap_of(nodes) for nodes in self.components if len(nodes) > 1), default=1.0
        )

    def _gap_of(self, nodes: NDArray[np.int64]) -> float:
        P = self.P[nodes][:, nodes]
        return exact_gap(P) if len(nodes) <= EXACT else lanczos_gap(P)

    @cached_property
    def least(self) -> float:
        """P̃'s smallest eigenvalue, which self-loops keep above -1."""
        if len(self.component) <= EXACT:
            return float(np.linalg.eigvalsh(self.P.toarray())[0])
        return float(eigsh(self.P, 1, which="SA", v0=_start(self.P), return_eigenvectors=False)[0])

    def bounds(self, x: Floats, depth: int) -> tuple[float, float, float]:
        """Bounds on |h_K - π| for x (n,): printed, Σx (1-λ²/2)^K; with ‖x‖₁; ‖x‖₂ (1-λ/2)^K."""
        printed, spectral = (1 - self.gap**2 / 2) ** depth, (1 - self.gap / 2) ** depth
        return (
            float(x.sum() * printed),
            float(np.abs(x).sum() * printed),
            float(np.linalg.norm(x) * spectral),
        )

    def depths_to(self, factor: float) -> tuple[int, int]:
        """The number of layers after which the spectral and the printed bound fall by `factor`."""
        spectral, printed = (
            ceil(log(factor) / log1p(-rate)) for rate in (self.gap / 2, self.gap**2 / 2)
        )
        return spectral, printed

    def tones(self, count: int) -> tuple[Floats, Floats]:
        """At most `count` frequencies λ from low to high, and signals (n, count) of length 1.

        Each signal has about one frequency: on a small graph they are eigenvectors of L̃, on a
        larger one noise behind a narrow band pass.
        """
        n = len(self.component)
        if n > EXACT:
            U = self._noise(np.linspace(0, 1 - self.least, count))
        else:
            chosen = np.linspace(0, n - 1, min(count, n)).round().astype(int)
            U = np.linalg.eigh(-self.P.toarray())[1][:, chosen]
        return 1 - (U * (self.P @ U)).sum(0), U

    def _noise(self, centres: Floats) -> Floats:
        """White noise behind Jackson-damped Chebyshev polynomials of degree BAND about these λ."""
        k, N = np.arange(BAND), BAND + 1
        angle = np.pi / N
        damping = ((N - k) * np.cos(angle * k) + np.sin(angle * k) / np.tan(angle)) / N
        # (count, BAND)
        weights = (2 - (k == 0)) * damping * np.cos(np.outer(np.arccos(1 - centres), k))
        before, now = _start(self.P), self.P @ _start(self.P)
        U = np.outer(before, weights[:, 0])
        for weight in weights[:, 1:].T:
            U += np.outer(now, weight)
            before, now = now, 2 * (self.P @ now) - before
        return U / np.linalg.norm(U, axis=0)  # type: ignore[no-any-return]


def exact_gap(P: sp.csr_array) -> float:
    """λ of a connected graph, from all eigenvalues of P̃."""
    return float(1 - np.linalg.eigvalsh(P.toarray())[-2])


def lanczos_gap(P: sp.csr_array) -> float:
    """λ of a connected graph by Lanczos.

    Real graphs have many eigenvalues close to λ, which Lanczos separates only by many products.  A
    product costs less than Lanczos' own work per product, so that it runs on the walk of STRIDE
    steps instead (Pubmed: 5 s instead of 75).
    """

    def stride(v: Floats) -> Floats:
        for _ in range(STRIDE):
            v = (v + P @ v) / 2
        return v

    walk = LinearOperator(P.shape, matvec=stride, dtype=np.float64)
    second, _ = eigsh(walk, 2, which="LA", v0=_start(P), return_eigenvectors=False)
    return float(2 - 2 * second ** (1 / STRIDE))


def _start(P: sp.csr_array) -> Floats:
    """The start vector of Lanczos, the same each time so that results are reproducible."""
    return np.random.default_rng(0).standard_normal(int(P.shape[0]))


@dataclass(frozen=True)
class Distance:
    """max |h_K - π| after K = `depth` layers, and the bounds on it."""

    depth: int
    distance: float
    printed: float
    corrected: float
    spectral: float


def distances(walk: LazyWalk, x: Floats, depths: Iterable[int]) -> list[Distance]:
    """The distance of h_K from its limit, for x (n,) and each depth K."""
    limit = walk.limit(x)
    return [
        Distance(depth, float(np.abs(h - limit).max()), *walk.bounds(x, depth))
        for depth, h in _states(walk, x, depths)
    ]


def _states(walk: LazyWalk, x: Floats, depths: Iterable[int]) -> Iterable[tuple[int, Floats]]:
    """(K, h_K) for each depth K, from small to large."""
    h, done = x, 0
    for depth in sorted(depths):
        for _ in range(depth - done):
            h = walk.step(h)
        done = depth
        yield depth, h


@dataclass(frozen=True)
class DegreeErrors:
    """The nodes with a degree in [low, high), and their mean |h_K - π| / π at each depth."""

    low: int
    high: int
    nodes: int
    errors: tuple[float, ...]


@dataclass(frozen=True)
class Convergence:
    """Conjecture 1: relative error by degree after each of `depths` layers.

    exponents  s of the fit error = c (d + 1)^s over all nodes at each depth; None where h has
               converged.  The bound of theorem 1, divided by π_j, would give -½.
    """

    depths: tuple[int, ...]
    groups: tuple[DegreeErrors, ...]
    exponents: tuple[float | None, ...]


def convergence_by_degree(
    graph: Graph, walk: LazyWalk, depths: Sequence[int], seed: int = 0
) -> Convergence:
    """Relative errors in the largest component, from x uniform in [0, 1], so that π > 0.

    Other components converge at rates of their own.
    """
    x = np.random.default_rng(seed).random((graph.n, DRAWS))
    limit, nodes = walk.limit(x), walk.components[0]
    errors = np.stack(
        [(np.abs(h - limit) / limit)[nodes].mean(1) for _, h in _states(walk, x, depths)]
    )
    degree = degrees(graph)[nodes]
    groups = []
    for low, high in spans(degree):
        inside = (degree >= low) & (degree < high)
        if inside.any():
            means = tuple(map(float, errors[:, inside].mean(1)))
            groups.append(DegreeErrors(low, high, int(inside.sum()), means))
    exponents = tuple(_exponent(degree, error) for error in errors)
    return Convergence(tuple(sorted(depths)), tuple(groups), exponents)


def _exponent(degree: NDArray[np.int64], error: Floats) -> float | None:
    if len(np.unique(degree)) < 2 or error.min() < ROUNDING:
        return None
    return float(np.polyfit(np.log(degree + 1), np.log(error), 1)[0])
