"""Which nodes a drawing shows: those that matter, and those on the way to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST = 16  # nodes in a drawing
LEAST = 0.01  # of the largest share: what adds less is not drawn


def choose_nodes(shares: Floats, hops: Floats, before: Ints, ends: Ints) -> Ints:
    """The explained node first, then the ends of links and the largest shares, with their ways.

    shares  (n,) of the score
    hops    (n,) from each node to the explained one, and `before` (n,) the next on the way there
    ends    (2, links) of the links that matter most, the strongest first
    """
    centre = int(np.flatnonzero(hops == 0)[0])
    size = np.abs(shares)
    largest = np.argsort(-size, kind="stable")[:MOST]
    matters = largest[size[largest] > LEAST * size.max()]
    chosen = [centre]
    for node in [*ends.T.ravel(), *matters]:
        way = _way(int(node), before, centre) if np.isfinite(hops[node]) else []
        more = [one for one in way if one not in chosen]
        if len(chosen) + len(more) <= MOST:
            chosen += more
    return np.array(chosen)


def _way(node: int, before: Ints, centre: int) -> list[int]:
    """The nodes from the explained one to this one, without the former."""
    way = []
    while node != centre:
        way.append(node)
        node = int(before[node])
    return way[::-1]
