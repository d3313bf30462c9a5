"""A drawn graph whose links are mostly short, so that there is something to cut well."""

from __future__ import annotations

import numpy as np

from gcnii.graph import Graph, Split
from gcnii_paper.bench.graphs import TRAINING, VALIDATION


def near_graph(
    n: int, degree: float = 10, reach: float = 50, far: float = 0.02, d: int = 64
) -> Graph:
    """n nodes on a circle, numbered at random, with links to nodes nearby.

    degree  mean number of neighbours
    reach   mean distance of a link on the circle
    far     share of the links that end anywhere
    """
    random, k = np.random.default_rng(0), 10
    begin = random.integers(n, size=round(n * degree / 2))
    step = 1 + random.exponential(reach, len(begin)).astype(np.int64)
    end = np.where(
        random.random(len(begin)) < far, random.integers(n, size=len(begin)), begin + step
    )
    number = random.permutation(n)
    roles = np.full(n, "test", dtype=object)
    roles[: TRAINING * k] = "train"
    roles[TRAINING * k : TRAINING * k + VALIDATION] = "val"
    return Graph(
        X=random.standard_normal((n, d), dtype=np.float32),
        edges=number[np.stack([begin, end % n])],
        y=np.arange(n) % k,
        splits=(Split.of_roles(roles),),
        name=f"a near graph of {n:,} nodes",
    )
