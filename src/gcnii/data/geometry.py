"""The neighbourhoods of Geom-GCN (Pei et al. 2020): neighbours in the graph and in a plane.

They are those that were published, or computed by isomap: points in the plane whose distances
approximate the numbers of hops.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.data.benchmarks import read_neighbourhood
from gcnii.data.download import fetch_neighbourhood
from gcnii.errors import DataError
from gcnii.graph import Graph

Points = NDArray[np.float64]  # (n, 2)
Ints = NDArray[np.int64]

LARGEST = 20_000  # nodes of a component: the distances between all pairs take 3.2 GB
SMALL = 200  # nodes: up to here, computing all axes is faster than computing two
FLAT = 1e-9  # relative to the main axis: an axis shorter than this is rounding error
SAME = 1e-6  # hops: a smaller difference is rounding error


QUADRANTS = 4
RELATIONS = 2 * QUADRANTS


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Neighbours in the graph and in the plane, each with the quadrant in which it lies.

    edges     (2, m) neighbours in row 0, the nodes that gather from them in row 1; no duplicates,
              no self-loops
    relation  (m,) the quadrant, 0 to 3, of a neighbour in the graph; plus 4 for one in the plane
    """

    edges: Ints
    relation: Ints


def neighbourhood(graph: Graph, geometry: str, *, offline: bool = False) -> Neighbourhood:
    """The published neighbourhood of a graph of the catalog; of others a computed isomap.

    A published file is fetched if it is not on this machine, unless `offline` or $GCNII_OFFLINE.
    """
    path = fetch_neighbourhood(graph.catalog_name, geometry, offline)
    if path is not None:
        return _published(path, graph.n)
    if geometry == "isomap":
        return _computed(graph)
    raise DataError(
        f"no {geometry} neighbourhood was published for {graph.name}; "
        "use geom-gcn-i (geometry isomap), which is computed for any graph"
    )


def _published(path: Path, n: int) -> Neighbourhood:
    neighbour, node, space, corner = read_neighbourhood(path)
    return _last_wins(np.stack([neighbour, node]), QUADRANTS * space + corner, n)


def _computed(graph: Graph) -> Neighbourhood:
    links = _links(graph)
    Z, component = isomap(links, graph.n, graph.name)
    near = closest(Z, component, links.shape[1] // 2)
    edges = np.concatenate([links, near], 1)
    space = np.repeat([0, 1], [links.shape[1], near.shape[1]])
    return _last_wins(edges, QUADRANTS * space + quadrant(Z, edges), graph.n)


def _links(graph: Graph) -> Ints:
    """(2, m) the edges in both directions, sorted, without duplicates and self-loops."""
    u, v = graph.edges[:, graph.edges[0] != graph.edges[1]]
    return _pairs(np.unique(np.concatenate([u * graph.n + v, v * graph.n + u])), graph.n)


def _last_wins(edges: Ints, relation: Ints, n: int) -> Neighbourhood:
    """A pair listed twice keeps its last relation, that in the plane, as in the authors' code."""
    codes, last = np.unique((edges[0] * n + edges[1])[::-1], return_index=True)
    return Neighbourhood(_pairs(codes, n), relation[::-1][last].astype(np.int64))


def _pairs(codes: Ints, n: int) -> Ints:
    return np.stack(np.divmod(codes, n))


def isomap(links: Ints, n: int, name: str = "the graph") -> tuple[Points, Ints]:
    """Links (2, m) in both directions → points (n, 2), and the component (n,) of each node.

    Distances between components are infinite, so each is embedded by itself, around the origin.
    Axes are oriented so that permuting the nodes permutes the points, except in a graph with
    symmetries, such as a star or a ring.
    """
    from scipy.sparse.csgraph import connected_components  # slow to import, as those below

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
    from scipy.sparse.csgraph import shortest_path
    from scipy.sparse.linalg import eigsh

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
    from scipy.spatial import KDTree

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
