"""Neighbourhoods of Geom-GCN (Pei et al. 2020): who is near, by the graph and in a plane, and in
which direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gcnii.data.fetch import fetch_neighbourhood
from gcnii.data.readers.geom_gcn import read_neighbourhood
from gcnii.errors import DataError
from gcnii.graph import Graph

QUADRANTS = 4
RELATIONS = 2 * QUADRANTS


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Neighbours of two kinds, in the graph and in the plane, by the quadrant in which they lie.

    edges     (2, m) a neighbour over the node that gathers from it; no pair stands twice, none is a
              self-loop
    relation  (m,) 0 to 3: the quadrant of a neighbour in the graph; 4 to 7: that of one in the
              plane
    """

    edges: NDArray[np.int64]
    relation: NDArray[np.int64]


def neighbourhood(graph: Graph, geometry: str, *, offline: bool = False) -> Neighbourhood:
    """The neighbourhood that was published for the graph, where there is one; else, for "isomap", a
    computed one.
    """
    path = fetch_neighbourhood(graph.source, geometry, offline)
    if path is not None:
        return _published(graph, path)
    if geometry == "isomap":
        return _computed(graph)
    raise DataError(
        f"no {geometry} neighbourhood was published for {graph.name}; "
        "use geom-gcn-i (geometry isomap), which is computed for any graph"
    )


def _published(graph: Graph, path: Path) -> Neighbourhood:
    neighbour, node, space, corner = read_neighbourhood(path)
    inside = max(neighbour.max(), node.max()) < graph.n
    listed = np.unique(neighbour[space == 0] * graph.n + node[space == 0])
    links = _links(graph)
    if not inside or not np.array_equal(listed, links[0] * graph.n + links[1]):
        raise DataError(
            f"{path.name} is for other links than {graph.name} has: it was changed after it was loaded; "
            "make it a Graph without a source, whose isomap is computed"
        )
    return _last_wins(np.stack([neighbour, node]), QUADRANTS * space + corner, graph.n)


def _computed(graph: Graph) -> Neighbourhood:
    # brings parts of SciPy that nobody else waits for
    from gcnii.data.geometry.isomap import closest, isomap, quadrant

    links = _links(graph)
    Z, component = isomap(links, graph.n, graph.name)
    near = closest(Z, component, links.shape[1] // 2)
    edges = np.concatenate([links, near], 1)
    space = np.repeat([0, 1], [links.shape[1], near.shape[1]])
    return _last_wins(edges, QUADRANTS * space + quadrant(Z, edges), graph.n)


def _links(graph: Graph) -> NDArray[np.int64]:
    """(2, m) the graph's links in both directions, sorted, each once, without self-loops."""
    u, v = graph.edges[:, graph.edges[0] != graph.edges[1]]
    return _split(np.unique(np.concatenate([u * graph.n + v, v * graph.n + u])), graph.n)


def _last_wins(edges: NDArray[np.int64], relation: NDArray[Any], n: int) -> Neighbourhood:
    """A pair that is near in both ways keeps the last relation, that in the plane, as in the
    authors' code.
    """
    codes, last = np.unique((edges[0] * n + edges[1])[::-1], return_index=True)
    return Neighbourhood(_split(codes, n), relation[::-1][last].astype(np.int64))


def _split(codes: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    return np.stack(np.divmod(codes, n))
