"""Types of edges: what they may be, and a graph whose types are apart.

Edges of type t join the copies u + t n and v + t n of their nodes.  What merges duplicates, adds up
weights or compares two directions then does so type by type, and need not know of types.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import GraphError
from gcnii.graph.arrays import first, integers

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
            "ones, or leave the types out (--edge-type '')"
        )


def types_by_name(texts: Sequence[str] | NDArray[np.object_]) -> tuple[Types, tuple[str, ...]]:
    """The type of each text, and the names of the types, in alphabetical order."""
    found, types = np.unique(np.asarray(texts, str), return_inverse=True)
    refuse_many(len(found))
    return types.astype(np.int64), tuple(found.tolist())


def cut_column(wanted: str) -> tuple[str, tuple[float, ...]]:
    """`amount=3,12` as a column of numbers and where it is cut; GraphError if it is not such."""
    column, equals, listed = wanted.rpartition("=")
    try:
        cuts = tuple(float(one) for one in listed.split(",")) if equals else ()
    except ValueError:
        cuts = ()
    if not column or not np.isfinite(cuts).all() or not cuts or min(np.diff(cuts), default=1) <= 0:
        raise GraphError(
            f"no column of edges is called {wanted!r}; give the column of the types, or a column "
            "of numbers and where to cut it, in rising order, such as amount=10,100"
        )
    return column, cuts


def types_by_cuts(
    numbers: NDArray[np.float64], column: str, cuts: Sequence[float]
) -> tuple[Types, tuple[str, ...]]:
    """The type of each number, by the cuts that it reaches, and the names of those that occur."""
    if (lacking := np.isnan(numbers)).any():
        raise GraphError(f"{column} of edge {first(lacking)} is not a number, and is to be cut")
    shown = [f"{one:.15g}" for one in cuts]
    spans = (f"{low} to {high}" for low, high in pairwise(shown))
    names = [f"{column} {span}" for span in (f"below {shown[0]}", *spans, f"from {shown[-1]}")]
    found, types = np.unique(np.searchsorted(cuts, numbers, side="right"), return_inverse=True)
    return types.astype(np.int64), tuple(names[i] for i in found)


def quarters(numbers: NDArray[np.float64]) -> str:
    """`3,12,40`: where numbers are cut into quarters; "" where they are few or no numbers."""
    if not len(numbers) or not np.isfinite(numbers).all():
        return ""
    cuts = [float(f"{one:.3g}") for one in np.quantile(numbers, (0.25, 0.5, 0.75))]
    return ",".join(f"{one:g}" for one in cuts) if cuts[0] < cuts[1] < cuts[2] else ""


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
            f"{name} has edges of the type {unknown[0]!r}, unlike the training graph, whose "
            f"types are {', '.join(known)}; name the types as there"
        )
    place = np.array([known.index(one) for one in own] or [0])
    return place[np.zeros(m, np.int64) if types is None else types]
