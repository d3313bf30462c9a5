"""Isomap of a graph: points in the plane whose distances approximate the numbers of hops."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.sparse.linalg import eigsh
from scipy.spatial import KDTree

from gcnii.errors import DataError

Points = NDArray[np.float64]  # (n, 2)
Ints = NDArray[np.int64]

LARGEST = 20_000  # nodes of a component: the distances between all pairs take 3.2 GB
SMALL = 200  # nodes: up to here, computing all axes is faster than computing two
FLAT = 1e-9  # relative to the main axis: an axis shorter than this is rounding error
SAME = 1e-6  # hops: a smaller difference is rounding error


def isomap(links: Ints, n: int, name: str = "the graph") -> tuple[Points, Ints]:
    """Links (2, m) in both directions → points (n, 2), and the component (n,) of each node.

    Distances between components are infinite, so each is embedded by itself, around the origin.
    Axes are oriented so that permuting the nodes permutes the points, except in a graph with
    symmetries, such as a star or a ring.
    """
    A = sp.csr_array((np.ones(links.shape[1]), (links[0], links[1])), (n, n))
    count, component = connected_components(A, directed=False)
    sizes = np.bincount(component, minlength=count)
    if sizes.max() > LARGEST:
        raise DataError(
            f"{name} has {sizes.max()} connected nodes, but an isomap is computed for at most "
            f"{LARGEST}, because it needs the distances between all pairs; use another model"
        )
    Z = np.zeros((n, 2))
    members = np.split(np.argsort(component, kind="stable"), np.cumsum(sizes)[:-1])
    for nodes in members:
        if len(nodes) > 1:
            Z[nodes] = _plane(A[nodes][:, nodes])
    return Z, component


def _plane(A: sp.csr_array) -> Points:
    """Classical scaling: the two main axes of the centred -D²/2, as in scikit-learn's Isomap."""
    # scikit-learn's KernelPCA is not used because its dense solver finds no axis of a star.
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
    Z: Points = (axes * np.sqrt(size))[:, :-3:-1]
    Z *= np.where((Z**3).sum(0) < 0, -1, 1)  # an axis points to its longer tail
    return Z


def closest(Z: Points, component: Ints, count: int) -> Ints:
    """(2, m) all pairs of a component closer than some ρ, in both directions; `count` at most.

    Nodes with the same neighbours are at the same point.  If such pairs alone are more than `count`
    (the leaves of a hub), they are left out, because they would fill the neighbourhood with nodes
    that lie in no direction.
    """
    # paper: the ρ at which both neighbourhoods are equally large on average; here: the largest that
    # does not exceed it, because many pairs may be at the same distance, and their order must not
    # matter.
    reach = 1 + np.ptp(Z, 0).sum()
    # a third coordinate keeps the components apart
    points = np.column_stack([Z - Z.min(0), 2 * reach * component])
    # Shifted by 1, because SciPy splits at the next number above a coordinate: above zero that is
    # denormal, and if denormals are flushed to zero, as in training, it would split forever.
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


def quadrant(Z: Points, edges: Ints) -> Ints:
    """(m,) the quadrant of a pair's first node, seen from its second: 2 · above + right.

    Equal coordinates count as right and above.
    """
    right, above = ((Z[edges[0]] - Z[edges[1]]).T >= -SAME).astype(np.int64)
    numbers: Ints = 2 * above + right
    return numbers
