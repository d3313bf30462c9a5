"""What the theorems say about one graph, computed part by part; by default the karate club."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gcnii.graph import Graph
from gcnii.propagation import Sparse
from gcnii_paper.theory.filters import (
    BAND_PASS,
    FILTERS,
    Realised,
    Substitute,
    gain,
    horner,
    one_channel,
    realise,
    substitute,
    two_channels,
)
from gcnii_paper.theory.lasso import Iterate, iterates, sparse_coding
from gcnii_paper.theory.spectrum import (
    Convergence,
    Distance,
    Floats,
    LazyWalk,
    convergence_by_degree,
    distances,
    exact_matrix,
)

KARATE = Path(__file__).with_name("karate.csv")


def karate_club() -> Graph:
    """The club as a graph without labels; the features are one-hot node numbers."""
    return Graph(X=np.eye(34), edges=np.loadtxt(KARATE, int, delimiter=",").T, name="karate")


DEPTHS = (0, *(2**i for i in range(11)))
DEGREE_DEPTHS = (2, 8, 64)
EPSILONS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
STEPS = tuple(2**i for i in range(9))
POINTS = 24  # number of frequencies at which a filter is shown
PARTS = ("distances", "by_degree", "filters", "substitutes", "lasso")


@dataclass(frozen=True, eq=False)
class Study:
    """The paper's theorems on a graph; each part is computed when it is first asked for.

    theta  a filter Σ θ_k L̃^k of the user's own, to be realised beside FILTERS
    """

    graph: Graph
    theta: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Say so if the graph's edge weights are not used."""
        if self.graph.weighted:
            warnings.warn(
                f"the theorems are about edges without weights; those of {self.graph.name} "
                "are left out",
                stacklevel=3,
            )

    def complete(self, show: Callable[[str], None]) -> None:
        """Compute all PARTS now, announcing each to `show`: Lanczos is slow on a large graph."""
        for part in PARTS:
            show(part.replace("_", " "))
            getattr(self, part)

    @cached_property
    def walk(self) -> LazyWalk:
        """The lazy walk of theorem 1."""
        return LazyWalk.on(self.graph)

    @cached_property
    def matrix(self) -> Sparse:
        """P̃ for the networks of theorem 2."""
        return exact_matrix(self.graph, direction="both", loops="remove")

    @cached_property
    def distances(self) -> tuple[list[Distance], list[Distance]]:
        """Theorem 1 in the largest component: from e_i at its hub, and from e_i - e_j.

        j is a node of the lowest degree.
        """
        nodes = self.walk.components[0]
        falling = nodes[np.argsort(-self.walk.degree[nodes], kind="stable")]
        one, two = np.zeros((2, self.graph.n))
        one[falling[0]] = two[falling[-1]] = 1
        return distances(self.walk, one, DEPTHS), distances(self.walk, one - two, DEPTHS)

    @cached_property
    def by_degree(self) -> Convergence:
        """Conjecture 1: relative errors by degree."""
        return convergence_by_degree(self.graph, self.walk, DEGREE_DEPTHS)

    @cached_property
    def x(self) -> Tensor:
        """(n, 1) a signal, uniform in [0, 1]."""
        return torch.tensor(np.random.default_rng(0).random((self.graph.n, 1)))

    @cached_property
    def filters(self) -> list[Realised]:
        """Theorem 2: the errors of every network for each filter, the user's own last."""
        chosen = FILTERS | ({"yours": self.theta} if self.theta else {})
        return [realise(self.matrix, name, theta, self.x) for name, theta in chosen.items()]

    @cached_property
    def substitutes(self) -> list[Substitute]:
        """Theorem 2: what each ε costs for the band pass."""
        return [substitute(self.matrix, BAND_PASS, self.x, epsilon) for epsilon in EPSILONS]

    @cached_property
    def lasso(self) -> list[Iterate]:
        """Section 3: ISTA and the network that imitates it."""
        return iterates(sparse_coding(), STEPS)

    @property
    def shown(self) -> tuple[float, ...]:
        """θ of the filter whose `gains` are shown: the user's own, or the band pass."""
        return self.theta or BAND_PASS

    @cached_property
    def gains(self) -> tuple[Floats, dict[str, Floats]]:
        """POINTS frequencies λ, and by network what it multiplies signals of them by."""
        frequency, vectors = self.walk.tones(POINTS)
        U, count = torch.tensor(vectors), len(frequency)
        networks = {
            "GCNII, two channels": two_channels(self.shown, count),
            "GCNII*": horner(self.shown, count),
            "GCNII, one channel": one_channel(self.shown, count),
        }
        found = {name: gain(self.matrix, one, U).numpy() for name, one in networks.items()}
        found["GCN without weights"] = (1 - frequency) ** (len(self.shown) - 1)
        return frequency, found
