"""All that the theorems say of one graph, found out part by part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcnii.analysis.report import theory as report
from gcnii.analysis.theory.errata import errata
from gcnii.analysis.theory.filter_errors import (
    BAND_PASS,
    FILTERS,
    Realised,
    Substitute,
    realise,
    response,
    substitute,
)
from gcnii.analysis.theory.lasso import Iterate, iterates, sparse_coding
from gcnii.analysis.theory.polynomials import horner, one_channel, two_channels
from gcnii.analysis.theory.spectrum import (
    Convergence,
    Distance,
    LazyWalk,
    convergence_by_degree,
    distances,
)
from gcnii.graph import Graph
from gcnii.propagation import Sparse, propagation_matrix

DEPTHS = (0, *(2**i for i in range(11)))
DEGREE_DEPTHS = (2, 8, 64)
EPSILONS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
STEPS = tuple(2**i for i in range(9))
POINTS = 24  # frequencies at which a filter is shown
PARTS = ("distances", "by_degree", "filters", "substitutes", "lasso")


@dataclass(frozen=True, eq=False)
class Study:
    """What the command finds out about a graph; `theta` is the user's own filter."""

    graph: Graph
    theta: tuple[float, ...] | None

    def complete(self, show: Callable[[str], None]) -> None:
        """Find out all of PARTS now, and say which comes next: Lanczos takes a while on a large
        graph.
        """
        for part in PARTS:
            show(part.replace("_", " "))
            getattr(self, part)

    @cached_property
    def walk(self) -> LazyWalk:
        """Of theorem 1."""
        return LazyWalk.on(self.graph)

    @cached_property
    def matrix(self) -> Sparse:
        """P̃, as theorem 2's networks take it."""
        return propagation_matrix(self.graph, direction="both", loops="remove")

    @cached_property
    def distances(self) -> tuple[list[Distance], list[Distance]]:
        """Of a signal at the largest component's hub, and of its difference from one at a node of
        the lowest degree.
        """
        nodes = self.walk.components[0]
        falling = nodes[np.argsort(-self.walk.degree[nodes], kind="stable")]
        one, two = np.zeros((2, self.graph.n))
        one[falling[0]] = two[falling[-1]] = 1
        return distances(self.walk, one, DEPTHS), distances(self.walk, one - two, DEPTHS)

    @cached_property
    def by_degree(self) -> Convergence:
        """Conjecture 1."""
        return convergence_by_degree(self.graph, self.walk, DEGREE_DEPTHS)

    @cached_property
    def x(self) -> Tensor:
        """(n, 1) uniform in [0, 1]."""
        return torch.tensor(np.random.default_rng(0).random((self.graph.n, 1)))

    @cached_property
    def filters(self) -> list[Realised]:
        """Theorem 2, the user's own filter last."""
        chosen = FILTERS | ({"yours": self.theta} if self.theta else {})
        return [realise(self.matrix, name, theta, self.x) for name, theta in chosen.items()]

    @cached_property
    def substitutes(self) -> list[Substitute]:
        """Of the band pass."""
        return [substitute(self.matrix, BAND_PASS, self.x, epsilon) for epsilon in EPSILONS]

    @cached_property
    def lasso(self) -> list[Iterate]:
        """Section 3."""
        return iterates(sparse_coding(), STEPS)

    def drawing(self) -> Any:
        """The figure."""
        theta = self.theta or BAND_PASS
        values, vectors = self.walk.tones(POINTS)
        U = torch.tensor(vectors)
        networks = {
            "GCNII, two channels": two_channels(theta, len(values)),
            "GCNII*": horner(theta, len(values)),
            "GCNII, one channel": one_channel(theta, len(values)),
        }
        found = {
            name: response(self.matrix, network, U).numpy() for name, network in networks.items()
        }
        found["GCN without weights"] = (1 - values) ** (len(theta) - 1)
        return report.draw_theory(
            self.graph.name, self.distances[1], self.by_degree, theta, values, found, self.lasso
        )

    def document(self, plot: Path | None) -> dict[str, Any]:
        """All of it for JSON."""
        spectral, printed = self.walk.depths_to(1e-3)
        one, two = self.distances
        return {
            "graph": self.graph.name,
            "nodes": self.graph.n,
            "edges": self.graph.m,
            "components": len(self.walk.components),
            "gap": self.walk.gap,
            "least_eigenvalue": self.walk.least,
            "depth_to_a_thousandth": {"spectral": spectral, "printed": printed},
            "distances": {
                "e_i": [asdict(row) for row in one],
                "e_i - e_j": [asdict(row) for row in two],
            },
            "by_degree": asdict(self.by_degree),
            "filters": [asdict(row) for row in self.filters],
            "epsilon": [asdict(row) for row in self.substitutes],
            "lasso": [asdict(row) for row in self.lasso],
            "slips": [asdict(erratum) for erratum in errata()],
            "plot": None if plot is None else str(plot),
        }
