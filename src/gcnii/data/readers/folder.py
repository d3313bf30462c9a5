"""A graph of your own: a folder with `nodes.csv` and `edges.csv`.

nodes.csv   a header, then one row a node: `id` (any text), any number of feature columns (numbers),
            `label` (any text; empty or absent: unknown) and, if you want to choose it, `split`
            (train, val, test or empty)
edges.csv   a header, then one row an edge: `source` and `target` (or the first two columns,
            whatever their names), both ids of nodes.csv

Features are taken as they are.  Without a `split` column the labelled nodes are split 60/20/20
within each class, in an order drawn by `seed`: at least one of every class for training and, of a
class of three or more, one for validation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.data.arrays import merged
from gcnii.data.parameters import check
from gcnii.data.readers.table import Table, read_table
from gcnii.errors import DataError
from gcnii.graph import Graph, Split

ROLES = {
    "train": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "test": "test",
    "": "",
}
LARGEST = float(np.finfo(np.float32).max)
NOT_FEATURES = ("id", "label", "split")
SPARSE_ABOVE, SPARSE_BELOW = 100, 0.1  # columns, share that is not zero


def read(path: Path, directed: bool = False, seed: int = 0) -> Graph:
    """The graph in a folder; `seed` decides the split where nodes.csv has none."""
    check("the folder", "seed", seed, 0, whole=True)
    path = path.expanduser()
    if not path.is_dir():
        came = "is a file, not a folder" if path.exists() else "does not exist"
        raise DataError(f"{path} {came}; a graph is a folder with nodes.csv and edges.csv")
    nodes, edges = read_table(path / "nodes.csv"), read_table(path / "edges.csv")
    if not nodes.rows:
        raise DataError("nodes.csv has a header but no rows; a graph needs at least one node")
    ids = _ids(nodes)
    y, classes = _labels(nodes)
    return Graph(
        X=_features(nodes),
        edges=merged(_edges(edges, ids), directed=directed),
        y=y,
        splits=_splits(nodes, y, seed),
        directed=directed,
        name=path.resolve().name,
        nodes=tuple(ids),
        classes=classes,
    )


def _ids(nodes: Table) -> dict[str, int]:
    """id → row of X."""
    ids: dict[str, int] = {}
    for i, name in enumerate(nodes.column("id")):
        if not name:
            raise DataError(f"{nodes.place(i)} has no id; give every node one")
        if name in ids:
            raise DataError(
                f"{nodes.place(i)} repeats the id {name!r} of row {nodes.numbers[ids[name]]}; ids must differ"
            )
        ids[name] = i
    return ids


def _features(nodes: Table) -> NDArray[np.float32] | sp.csr_array:
    places = [j for j, name in enumerate(nodes.header) if name.lower() not in NOT_FEATURES]
    if not places:
        raise DataError(
            f"nodes.csv has no feature columns beside {', '.join(nodes.header)}; a node needs at least one"
        )
    X = np.empty((len(nodes.rows), len(places)))
    for i, row in enumerate(nodes.rows):
        try:
            X[i] = [float(row[j]) for j in places]
        except ValueError:
            _refuse_cell(nodes, i, places)
    unfit = ~(np.abs(X) <= LARGEST)  # NaN too
    if unfit.any():
        _refuse_cell(nodes, int(np.flatnonzero(unfit.any(1))[0]), places)
    sparse = len(places) > SPARSE_ABOVE and np.count_nonzero(X) < SPARSE_BELOW * X.size
    return sp.csr_array(X, dtype=np.float32) if sparse else X.astype(np.float32)


def _refuse_cell(nodes: Table, i: int, places: list[int]) -> None:
    """Say which cell of row i is no number that float32 can hold."""
    for j in places:
        cell = nodes.rows[i][j]
        try:
            fits = abs(float(cell)) <= LARGEST
        except ValueError:
            fits = False
        if not fits:
            came = f"is {cell!r}" if cell else "is empty"
            raise DataError(
                f"{nodes.place(i)}: the feature {nodes.header[j]!r} {came}; it must be a finite number"
            )


def _labels(nodes: Table) -> tuple[NDArray[np.int64], tuple[str, ...] | None]:
    """Class ids, -1 where the label is unknown, and the classes' names; none if no node has a
    label.
    """
    labels = nodes.column("label", required=False)
    classes = _sorted({label for label in labels if label})
    number = {name: c for c, name in enumerate(classes)} | {"": -1}
    return np.array([number[label] for label in labels]), tuple(classes) or None


def _sorted(names: set[str]) -> list[str]:
    """In the order of numbers if all are numbers, else of the alphabet."""
    try:
        return sorted(names, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(names)


def _splits(nodes: Table, y: NDArray[np.int64], seed: int) -> tuple[Split, ...]:
    if nodes.has("split"):
        return (Split.of_roles(_given_roles(nodes, y)),)
    return (Split.of_roles(_drawn_roles(y, seed)),) if (y >= 0).any() else ()


def _given_roles(nodes: Table, y: NDArray[np.int64]) -> NDArray[Any]:
    roles = np.full(len(y), "", dtype=object)
    for i, word in enumerate(nodes.column("split")):
        role = ROLES.get(word.lower())
        if role is None:
            raise DataError(
                f"{nodes.place(i)}: the split is {word!r}; it must be train, val, test or empty"
            )
        if role and y[i] < 0:
            raise DataError(
                f"{nodes.place(i)} is in {role} but has no label; label it or empty its split"
            )
        roles[i] = role
    for role in ("train", "val"):
        if role not in roles:
            raise DataError(
                f"the split column of nodes.csv has no {role} node; mark some, or remove the column"
            )
    return roles


def _drawn_roles(y: NDArray[np.int64], seed: int) -> NDArray[Any]:
    random = np.random.default_rng(seed)
    roles = np.full(len(y), "", dtype=object)
    for c in range(y.max() + 1):
        members = random.permutation(np.flatnonzero(y == c))
        train = max(1, round(0.6 * len(members)))
        val = max(1, round(0.2 * len(members))) if len(members) >= 3 else 0
        roles[members] = "test"
        roles[members[:train]], roles[members[train : train + val]] = "train", "val"
    if "val" not in roles:
        raise DataError(
            "every class in nodes.csv has fewer than 3 labelled nodes, so none is left for validation; "
            "label more nodes or add a split column"
        )
    return roles


def _edges(edges: Table, ids: dict[str, int]) -> NDArray[np.int64]:
    if len(edges.header) < 2:
        raise DataError(
            f"edges.csv must have two columns, source and target, got {', '.join(edges.header)!r}"
        )
    named = edges.has("source") and edges.has("target")
    columns = ("source", "target") if named else edges.header[:2]
    if all(name in ids for name in columns):
        raise DataError(
            "row 1 of edges.csv holds node ids; begin the file with the header source,target"
        )
    return np.array([_ends(edges, edges.column(name), ids) for name in columns], dtype=np.int64)


def _ends(edges: Table, names: list[str], ids: dict[str, int]) -> list[int]:
    try:
        return [ids[name] for name in names]
    except KeyError:
        i = next(i for i, name in enumerate(names) if name not in ids)
        raise DataError(
            f"{edges.place(i)} names the node {names[i]!r}, which nodes.csv does not have"
        ) from None
