"""A stand-in for PPI, drawn from a model that is written here: it has PPI's shape, not its content.

Every node has a function z = the centre of its community + noise, in 24 dimensions; links join
nodes of one community more often than others; the 50 features are a noisy linear view of z, and
each of the 121 labels says on which side of a
plane z lies.  Centres, view and planes are the same in all graphs, so what is learnt on some holds
               for the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gcnii.data.generators.csbm import draw_edges
from gcnii.data.parameters import check
from gcnii.graph import Graph, Role, join

FEATURES, LABELS = 50, 121
COMMUNITIES, DIMENSIONS = 20, 24
SPREAD = 0.6  # of z around its centre; the centres' own is 1
NOISE = 20.0  # of the features, whose signal has about the size √24
HOMOPHILY = 0.7
RARE, COMMON = 0.1, 0.65  # shares of nodes that have a label; PPI's mean is 0.37


def read(graphs: int = 24, n: int = 2373, degree: float = 28, seed: int = 0) -> Graph:
    """`graphs` graphs of n nodes each, one in twelve for validation, as many for testing, the rest
    for training.
    """
    check("ppi-like", "graphs", graphs, 3, whole=True)
    check("ppi-like", "n", n, 2 * COMMUNITIES, whole=True)
    check("ppi-like", "degree", degree, 0)
    check("ppi-like", "seed", seed, 0, whole=True)
    random = np.random.default_rng(seed)
    centres = random.standard_normal((COMMUNITIES, DIMENSIONS))
    view = random.standard_normal((DIMENSIONS, FEATURES))
    planes = random.standard_normal((DIMENSIONS, LABELS)) / DIMENSIONS**0.5
    z = [_functions(n, centres, random) for _ in range(graphs)]
    heights = np.concatenate([own @ planes for _, own in z])
    bars = [
        np.quantile(heights[:, i], 1 - share)
        for i, share in enumerate(random.uniform(RARE, COMMON, LABELS))
    ]
    each = [
        Graph(
            X=(own @ view + NOISE * random.standard_normal((n, FEATURES))).astype(np.float32),
            edges=draw_edges(community, round(n * degree / 2), HOMOPHILY, random),
            y=(own @ planes > bars).astype(np.int64),
        )
        for community, own in z
    ]
    held_out = max(1, graphs // 12)
    counts: dict[Role, int] = {"train": graphs - 2 * held_out, "val": held_out, "test": held_out}
    return join(
        each, [role for role, count in counts.items() for _ in range(count)], name="ppi-like"
    )


def _functions(
    n: int, centres: NDArray[np.float64], random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(n,) communities and (n, 24) z."""
    community = random.permutation(np.arange(n) % COMMUNITIES)
    return community, centres[community] + SPREAD * random.standard_normal((n, DIMENSIONS))
