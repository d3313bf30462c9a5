"""Isomap of a graph: a place in the plane for every node, whose distances come near the numbers of
hops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.sparse.linalg import eigsh
from scipy.spatial import KDTree

from gcnii.errors import DataError

LARGEST = 20_000  # nodes of a component: the distances of all pairs of them take 3.2 GB
SMALL = 200  # nodes: up to here, all axes are found sooner than two of them
FLAT = 1e-9  # of the main axis: an axis along which the graph extends by rounding alone
SAME = 1e-6  # hops: nodes that differ by less do so by rounding


def isomap(
    links: NDArray[np.int64], n: int, name: str = "the graph"
) -> tuple[NDArray[Any], NDArray[Any]]:
    """GraphAdjacency (2, m) in both directions → (n, 2) places, and the number (n,) of each node's
    component.

    Distances between components are infinite, so each is embedded by itself, around the origin.
    Axes are turned so that permuting the nodes permutes the places; only a graph with symmetries, a
    star or a ring, leaves them open.
    """
    A = sp.csr_array((np.ones(links.shape[1]), (links[0], links[1])), (n, n))
    count, component = connected_components(A, directed=False)
    sizes = np.bincount(component, minlength=count)
    if sizes.max() > LARGEST:
        raise DataError(
            f"{name} has {sizes.max()} connected nodes, but an isomap is computed for at most {LARGEST}, "
            "because it needs the distances of all pairs; take another model"
        )
    Z = np.zeros((n, 2))
    members = np.split(np.argsort(component, kind="stable"), np.cumsum(sizes)[:-1])
    for nodes in members:
        if len(nodes) > 1:
            Z[nodes] = _plane(A[nodes][:, nodes])
    return Z, component


def _plane(A: sp.csr_array) -> NDArray[Any]:
    """Classical scaling: the two main axes of the centred -D²/2, as in scikit-learn's Isomap once
    it has D.
    """
    # scikit-learn's own KernelPCA would do, but its dense solver finds no axis at all in a star.
    K = shortest_path(A, unweighted=True)
    K *= K  # in place, like the rest: it may be large
    K *= -0.5
    K -= K.mean(0)
    K -= K.mean(1, keepdims=True)
    if len(K) <= SMALL:
        size, axes = np.linalg.eigh(K)
    else:
        size, axes = eigsh(K, 2, which="LA", v0=np.random.default_rng(0).random(len(K)))
    size = np.where(size > FLAT * size.max(), size, 0)
    Z: NDArray[Any] = (axes * np.sqrt(size))[:, :-3:-1]
    Z *= np.where((Z**3).sum(0) < 0, -1, 1)  # an axis points to its longer tail
    return Z


def closest(Z: NDArray[Any], component: NDArray[Any], count: int) -> NDArray[np.int64]:
    """(2, m) the closest pairs of a component, in both directions: at most `count`, and all below
    some distance ρ.

    Nodes with the same neighbours share a place.  Where such pairs alone are more than `count` (the
    leaves of a hub), they are passed over, because they would fill the neighbourhood with nodes in
    no direction.
    """
    # paper: the ρ at which both neighbourhoods are equally large on average; here: the largest that
    # does not exceed it, because many pairs may be at the same distance, and who comes first among
    # them must not decide.
    reach = 1 + np.ptp(Z, 0).sum()
    # components out of each other's sight
    points = np.column_stack([Z - Z.min(0), 2 * reach * component])
    # Above zero, because SciPy splits at the next number above a coordinate; above zero itself that
    # is denormal, and where those count as zero, as they do in training, it would split forever.
    tree = KDTree(1 + points)

    def within(distance: float) -> int:
        return (int(tree.count_neighbors(tree, distance)) - len(Z)) // 2

    shared = within(SAME)
    crowded = shared > count
    low, high = SAME, reach
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) <= count + crowded * shared else (low, middle)
    pairs = tree.query_pairs(low * (1 - SAME), output_type="ndarray").T
    if crowded:
        pairs = pairs[:, np.linalg.norm(Z[pairs[0]] - Z[pairs[1]], axis=1) > SAME]
    return np.concatenate([pairs, pairs[::-1]], 1).astype(np.int64)


def quadrant(Z: NDArray[Any], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """(m,) where the neighbour, the first of a pair, lies, seen from the second: 2 · above + right.

    On a line with it counts as right or above.
    """
    right, above = ((Z[edges[0]] - Z[edges[1]]).T >= -SAME).astype(np.int64)
    numbers: NDArray[np.int64] = 2 * above + right
    return numbers
