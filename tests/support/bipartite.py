"""A bipartite graph of buyers and products, whose labels need the graph."""

import numpy as np

import gcnii
from gcnii.graph import Graph, Split

KINDS = 3


def shop(n: int = 120, edges: int = 4) -> Graph:
    """n buyers, labelled by the kind of product that they buy, and n products.

    A product's features tell its kind, a buyer's are noise: without edges nothing can be learnt.
    """
    random = np.random.default_rng(0)
    kind = np.arange(2 * n) % KINDS  # buyers first
    X = random.normal(size=(2 * n, 8))
    X[n:, :KINDS] += 3 * np.eye(KINDS)[kind[n:]]
    own = [n + np.flatnonzero(kind[n:] == one) for one in range(KINDS)]
    pairs = [(i, j) for i in range(n) for j in random.choice(own[kind[i]], edges, replace=False)]
    roles = np.full(2 * n, "", dtype="<U5")
    roles[:n] = random.permutation(np.resize(["train", "val", "test"], n))
    y = np.where(roles == "", -1, kind)
    return gcnii.Graph(
        X=X, edges=np.array(pairs).T, y=y, splits=(Split.of_roles(list(roles)),), name="shop"
    )
