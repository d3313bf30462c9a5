"""A graph of your own: a folder with `nodes.csv` and `edges.csv`.

nodes.csv   a header, then one row per node: `id` (any text), any number of feature columns
            (numbers), `label` (any text; empty or absent: unknown) and optionally `split` (train,
            val, test or empty)
edges.csv   a header, then one row per edge: `source` and `target` (or `from` and `to`, `src` and
            `dst`, `u` and `v`, or the only two columns there are), both ids of nodes.csv; other
            columns are left out, with a warning

Features are used as they are.  Without a `split` column the labelled nodes of each class are split
60/20/20 at random by `seed`, with at least one for training and, of three or more nodes, at least
one for validation.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.data.arrays import merged
from gcnii.data.generators.parameters import check
from gcnii.data.readers.table import Table, read_table
from gcnii.data.splits import at_least_one, stratified
from gcnii.errors import DataError
from gcnii.graph import Graph, Split

FORM = "a folder with nodes.csv and edges.csv"
ROLES = {
    "train": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "test": "test",
    "": "",
}
ENDS = (("source", "target"), ("from", "to"), ("src", "dst"), ("u", "v"))
MISSING = ("nan", "null")  # labels that mean unknown, in any case
MAYBE_MISSING = ("NA", "N/A", "None", "none", "?")  # labels that may mean it, or be names
LARGEST = float(np.finfo(np.float32).max)
NOT_FEATURES = ("id", "label", "split")
SPARSE_ABOVE, SPARSE_BELOW = 100, 0.1  # number of columns, share of nonzero entries


def reads(path: Path) -> bool:
    """Whether the path is a folder."""
    return path.is_dir()


def read(path: Path, directed: bool = False, seed: int = 0, unknown: str = "") -> Graph:
    """The graph in a folder; `seed` draws the split if nodes.csv has no `split` column.

    unknown  a label that means unknown, beside an empty cell, NaN and null
    """
    check("the folder", "seed", seed, 0, whole=True)
    nodes, edges = _tables(path)
    ids = _ids(nodes)
    y, classes = _labels(nodes, unknown)
    return Graph(
        X=_features(nodes),
        features=tuple(name for name in nodes.header if name.lower() not in NOT_FEATURES),
        edges=merged(_edges(edges, ids), directed=directed),
        y=y,
        splits=_splits(nodes, y, seed),
        directed=directed,
        name=path.resolve().name,
        nodes=tuple(ids),
        classes=classes,
    )


def _tables(path: Path) -> tuple[Table, Table]:
    for name in ("nodes.csv", "edges.csv"):
        if not (path / name).exists():
            raise DataError(f"{path} has no {name}; a graph is {FORM}")
    nodes, edges = read_table(path / "nodes.csv"), read_table(path / "edges.csv")
    if not nodes.rows:
        raise DataError("nodes.csv has a header but no rows; a graph needs at least one node")
    return nodes, edges


def _ids(nodes: Table) -> dict[str, int]:
    """id → row of X."""
    ids: dict[str, int] = {}
    for i, name in enumerate(nodes.column("id")):
        if not name:
            raise DataError(f"{nodes.place(i)} has no id; give every node one")
        if name in ids:
            first = nodes.numbers[ids[name]]
            raise DataError(
                f"{nodes.place(i)} repeats the id {name!r} of row {first}; ids must differ"
            )
        ids[name] = i
    return ids


def _features(nodes: Table) -> NDArray[np.float32] | sp.csr_array:
    places = [j for j, name in enumerate(nodes.header) if name.lower() not in NOT_FEATURES]
    names = [nodes.header[j] for j in places]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"nodes.csv has several columns called {twice!r}; rename or remove one")
    if not places:
        raise DataError(
            f"nodes.csv has no feature columns beside {', '.join(nodes.header)}; "
            "a node needs at least one"
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
    """Raise DataError for the first cell of row i that is not a finite float32 number."""
    for j in places:
        cell = nodes.rows[i][j]
        try:
            fits = abs(float(cell)) <= LARGEST
        except ValueError:
            fits = False
        if not fits:
            came = f"is {cell!r}" if cell else "is empty"
            raise DataError(
                f"{nodes.place(i)}: the feature {nodes.header[j]!r} {came}; "
                "it must be a finite number"
            )


def _labels(nodes: Table, unknown: str) -> tuple[NDArray[np.int64], tuple[str, ...] | None]:
    """(n,) class ids, -1 if unknown, and the names of the classes; None if no node has a label."""
    labels = nodes.column("label", required=False)
    missing = sum(label.lower() in MISSING for label in labels)
    if missing:
        warnings.warn(f"{missing} labels NaN or null are taken as unknown", stacklevel=5)
    labels = ["" if _is_missing(label, unknown) else label for label in labels]
    for word in MAYBE_MISSING:
        if word in labels:
            warnings.warn(
                f"{labels.count(word)} nodes have the label {word!r}, which is taken as a class; "
                f"if it means unknown, say --unknown {word} (in Python: unknown={word!r})",
                stacklevel=5,
            )
    classes = _sorted({label for label in labels if label})
    _refuse_regression(classes, sum(map(bool, labels)))
    number = {name: c for c, name in enumerate(classes)} | {"": -1}
    return np.array([number[label] for label in labels]), tuple(classes) or None


def _is_missing(label: str, unknown: str) -> bool:
    return label.lower() in MISSING or (bool(unknown) and label == unknown)


def _refuse_regression(classes: list[str], labelled: int) -> None:
    """Raise DataError where the labels look like numbers to predict, not like classes."""
    try:
        fractions = [name for name in classes if float(name) % 1]
    except ValueError:
        return
    if fractions and len(classes) > max(20, labelled / 10):
        raise DataError(
            f"the labels of {labelled} nodes are {len(classes)} different numbers, such as "
            f"{fractions[0]}; gcnii predicts classes: group the numbers into classes"
        )


def _sorted(names: set[str]) -> list[str]:
    """In numerical order if all are numbers, else in alphabetical order."""
    try:
        return sorted(names, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(names)


def _splits(nodes: Table, y: NDArray[np.int64], seed: int) -> tuple[Split, ...]:
    if nodes.has("split"):
        return (_given_split(nodes, y),)
    labelled = y[y >= 0]
    if not len(labelled):
        return ()
    if np.bincount(labelled).max() < 3:
        raise DataError(
            "every class in nodes.csv has fewer than 3 labelled nodes, so none is left for "
            "validation; label more nodes or add a split column"
        )
    return (stratified(y, np.random.default_rng(seed), at_least_one),)


def _given_split(nodes: Table, y: NDArray[np.int64]) -> Split:
    words = nodes.column("split")
    roles = [_role(word, bool(y[i] >= 0), nodes.place(i)) for i, word in enumerate(words)]
    for role in ("train", "val"):
        if role not in roles:
            raise DataError(
                f"the split column of nodes.csv has no {role} node; mark some, or remove the column"
            )
    return Split.of_roles(roles)


def _role(word: str, labelled: bool, place: str) -> str:
    role = ROLES.get(word.lower())
    if role is None:
        raise DataError(f"{place}: the split is {word!r}; it must be train, val, test or empty")
    if role and not labelled:
        raise DataError(f"{place} is in {role} but has no label; label it or empty its split")
    return role


def _edges(edges: Table, ids: dict[str, int]) -> NDArray[np.int64]:
    columns = _end_columns(edges)
    if all(name in ids for name in columns):
        raise DataError(
            "row 1 of edges.csv holds node ids; begin the file with the header source,target"
        )
    ignored = [name for name in edges.header if name not in columns]
    if ignored:
        warnings.warn(f"edges.csv: the columns {', '.join(ignored)} are not used", stacklevel=4)
    return np.array([_ends(edges, edges.column(name), ids) for name in columns], dtype=np.int64)


def _end_columns(edges: Table) -> tuple[str, str]:
    """The names of the two columns that hold the ends of the edges."""
    named = {name.lower(): name for name in edges.header}
    for source, target in ENDS:
        if source in named and target in named:
            return named[source], named[target]
    if len(edges.header) != 2:
        raise DataError(
            "the two ends of an edge must be the columns source and target of edges.csv, "
            f"whose columns are {', '.join(edges.header)}; rename them"
        )
    return edges.header[0], edges.header[1]


def _ends(edges: Table, names: list[str], ids: dict[str, int]) -> list[int]:
    try:
        return [ids[name] for name in names]
    except KeyError:
        i = next(i for i, name in enumerate(names) if name not in ids)
        raise DataError(
            f"{edges.place(i)} names the node {names[i]!r}, which nodes.csv does not have"
        ) from None
