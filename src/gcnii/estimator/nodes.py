"""Nodes of a graph, asked for by their ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import InputError, some_of
from gcnii.graph import Graph


def rows_of(graph: Graph, X: object) -> NDArray[np.int64]:
    """The row of each id in X: a list, a vector or one column of node names.

    A node of a graph without names is called by its row number.
    """
    ids = list(map(_name, _column(X)))
    names = graph.nodes or tuple(map(str, range(graph.n)))
    place = {name: row for row, name in enumerate(names)}
    missing = [name for name in dict.fromkeys(ids) if name not in place]
    if missing:
        what = "names of its nodes" if graph.nodes else "row numbers, for its nodes have no names"
        raise InputError(
            f"{graph.name} has no node {some_of(missing)}; X must hold {what}, "
            f"such as {names[0]!r} or {names[-1]!r}"
        )
    if len(place) < len(names):
        _refuse_twins(names, set(ids))
    return np.array([place[name] for name in ids])


def _column(X: object) -> list[object]:
    ids = np.asarray(X)
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.ndim != 1:
        raise InputError(
            f"X must be one column of node ids, since a graph is given, got shape {ids.shape}"
        )
    if not len(ids):
        raise InputError("X holds no node ids; give at least one")
    return list(ids.tolist())


def _name(id: object) -> str:
    """The id as text; 3.0 is 3, for a table with gaps makes floats of integers."""
    return str(int(id) if isinstance(id, float) and id.is_integer() else id)


def _refuse_twins(names: tuple[str, ...], asked: set[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen and name in asked:
            raise InputError(
                f"several nodes are called {name!r}; give the nodes of the graph different names"
            )
        seen.add(name)
