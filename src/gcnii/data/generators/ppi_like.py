"""A generated stand-in for PPI: it has PPI's shape, not its content.

Every node has a function z = the centre of its community + noise, in 24 dimensions.  Links join
nodes of the same community more often than others; the 50 features are a noisy linear view of z,
and each of the 121 labels says on which side of a plane z lies.  Centres, view and planes are the
same in all graphs, so what is learnt on some holds for the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gcnii.data.converters.join import join
from gcnii.data.generators.csbm import draw_edges
from gcnii.data.generators.parameters import check
from gcnii.graph import Graph, Role

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FEATURES, LABELS = 50, 121
COMMUNITIES, DIMENSIONS = 20, 24
SPREAD = 0.6  # standard deviation of z around its centre; that of the centres is 1
NOISE = 20.0  # standard deviation of the features' noise; their signal's is about √24
HOMOPHILY = 0.7
RARE, COMMON = 0.1, 0.65  # lowest and highest share of nodes with a label; PPI's mean is 0.37


def read(graphs: int = 24, n: int = 2373, degree: float = 28, seed: int = 0) -> Graph:
    """`graphs` graphs of n nodes: 1/12 for validation, 1/12 for testing, the rest for training."""
    check("ppi-like", "graphs", graphs, 3, whole=True)
    check("ppi-like", "n", n, 2 * COMMUNITIES, whole=True)
    check("ppi-like", "degree", degree, 0)
    check("ppi-like", "seed", seed, 0, whole=True)
    random = np.random.default_rng(seed)
    centres = random.standard_normal((COMMUNITIES, DIMENSIONS))
    view = random.standard_normal((DIMENSIONS, FEATURES))
    planes = random.standard_normal((DIMENSIONS, LABELS)) / DIMENSIONS**0.5
    nodes = [_functions(n, centres, random) for _ in range(graphs)]
    bars = _bars(np.concatenate([z @ planes for _, z in nodes]), random)
    each = [
        _graph(community, z @ view, z @ planes > bars, round(n * degree / 2), random)
        for community, z in nodes
    ]
    return join(each, _roles(graphs), name="ppi-like")


def _functions(n: int, centres: Floats, random: np.random.Generator) -> tuple[Ints, Floats]:
    """(n,) communities and (n, 24) z."""
    community = random.permutation(np.arange(n) % COMMUNITIES)
    return community, centres[community] + SPREAD * random.standard_normal((n, DIMENSIONS))


def _bars(heights: Floats, random: np.random.Generator) -> Floats:
    """For each label the height z·plane above which a node has it, so that RARE to COMMON do."""
    shares = random.uniform(RARE, COMMON, LABELS)
    return np.array([np.quantile(heights[:, i], 1 - share) for i, share in enumerate(shares)])


def _graph(
    community: Ints, seen: Floats, y: NDArray[np.bool_], m: int, random: np.random.Generator
) -> Graph:
    X = seen + NOISE * random.standard_normal(seen.shape)
    edges = draw_edges(community, m, HOMOPHILY, random)
    return Graph(X=X.astype(np.float32), edges=edges, y=y.astype(np.int64))


def _roles(graphs: int) -> list[Role]:
    held_out = max(1, graphs // 12)
    counts: dict[Role, int] = {"train": graphs - 2 * held_out, "val": held_out, "test": held_out}
    return [role for role, count in counts.items() for _ in range(count)]
