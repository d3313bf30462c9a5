"""Types of edges: what they may be, and a graph whose types are apart.

Edges of type t join the copies u + t n and v + t n of their nodes.  What merges duplicates, adds up
weights or compares two directions then does so type by type, and need not know of types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import GraphError
from gcnii.graph.arrays import integers

EdgeTypes = Literal["use", "ignore"]
Types = NDArray[np.int64]
MOST_TYPES = 64  # each has a matrix of its own


def type_array(
    values: object, names: tuple[str, ...] | None, m: int
) -> tuple[Types | None, tuple[str, ...] | None]:
    """The types (m,) and their names, checked; None for the types where there is only one."""
    if names is not None and len(set(names)) < len(names):
        raise GraphError("edge_type_names must have different names; rename those that occur twice")
    if values is None:
        if names is not None and len(names) > 1:
            raise GraphError("edge_type_names names several types; give edge_types, too")
        return None, names
    types = integers(values, "edge_types")  # type: ignore[arg-type]
    if types.shape != (m,):
        raise GraphError(
            f"edge_types must be a vector with one number per edge, {m} in all, "
            f"got shape {types.shape}"
        )
    count = int(types.max(initial=-1)) + 1 if names is None else len(names)
    if (types < 0).any() or types.max(initial=-1) >= max(count, 1):
        raise GraphError(f"edge_types must lie in 0…{count - 1}, got {types.min()}…{types.max()}")
    refuse_many(count)
    if count < 2:
        return None, names
    return types, names or tuple(map(str, range(count)))


def refuse_many(count: int) -> None:
    """Raise GraphError for more types than there can be matrices."""
    if count > MOST_TYPES:
        raise GraphError(
            f"edges are of {count} types, but at most {MOST_TYPES} can be kept apart; merge rare "
            "ones, or leave the column out (--edge-type '')"
        )


def apart(edges: NDArray[np.int64], types: Types, n: int) -> NDArray[np.int64]:
    """(2, m) the edges, those of type t between copies u + t n of the n nodes."""
    return edges + types * n


def together(edges: NDArray[np.int64], n: int) -> tuple[NDArray[np.int64], Types]:
    """The edges and their types, of which `apart` made these."""
    return edges % n, edges[0] // n


def aligned(
    types: Types | None, m: int, own: Sequence[str], known: Sequence[str], name: str
) -> Types:
    """(m,) the types by their places among the known; one that is not among them is refused.

    types  of the m edges, by their places among `own`; None: all are of the first
    """
    if unknown := [one for one in own if one not in known]:
        raise GraphError(
            f"{name} has edges of the type {unknown[0]!r}, unlike the graph of the training, whose "
            f"types are {', '.join(known)}; name the types as there"
        )
    place = np.array([known.index(one) for one in own] or [0])
    return place[np.zeros(m, np.int64) if types is None else types]
