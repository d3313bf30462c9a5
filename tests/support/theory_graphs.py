"""Graphs for the theorems: random ones, and ones whose eigenvalues are known."""

import numpy as np
from hypothesis import strategies as st

from gcnii.graph import Graph


def graph_of(edges, n):
    """A graph of n nodes with these edges (u, v)."""
    return Graph(X=np.eye(n), edges=np.array(edges, dtype=np.int64).reshape(-1, 2).T)


def complete(n):
    return graph_of([(i, j) for i in range(n) for j in range(i)], n)


def path(n):
    return graph_of([(i, i + 1) for i in range(n - 1)], n)


def cycle(n):
    return graph_of([(i, (i + 1) % n) for i in range(n)], n)


def star(leaves):
    return graph_of([(0, i + 1) for i in range(leaves)], leaves + 1)


@st.composite
def random_graphs(draw):
    """2 to 10 nodes with any number of edges, also repeated ones and self-loops."""
    n = draw(st.integers(2, 10))
    ends = st.integers(0, n - 1)
    return graph_of(draw(st.lists(st.tuples(ends, ends), max_size=3 * n)), n)


def signal(n, seed, columns=None):
    """Standard normal numbers for n nodes."""
    return np.random.default_rng(seed).standard_normal((n, columns) if columns else n)


SEEDS = st.integers(0, 2**32 - 1)
