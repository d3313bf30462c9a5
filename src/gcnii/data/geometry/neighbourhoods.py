"""Neighbourhoods of Geom-GCN (Pei et al. 2020): neighbours in the graph and in a plane."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gcnii.data.fetch import fetch_neighbourhood
from gcnii.data.readers.geom_gcn import read_neighbourhood
from gcnii.errors import DataError
from gcnii.graph import Graph

Ints = NDArray[np.int64]
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
    # imported here, because it brings parts of SciPy that are slow to import
    from gcnii.data.geometry.isomap import closest, isomap, quadrant

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
