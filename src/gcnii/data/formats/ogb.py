"""A graph as the Open Graph Benchmark ships it (Hu et al. 2020), such as ogbn-arxiv.

raw/edge.csv.gz         source and target of each edge
raw/node-feat.csv.gz    the features, one row per node
raw/node-label.csv.gz   the class, or zeros and ones for several labels; empty or nan if unknown
raw/num-node-list.csv.gz, raw/num-edge-list.csv.gz   how many there are
split/NAME/{train,valid,test}.csv.gz   the nodes of each mask

None has a header.  Other files, such as the years of ogbn-arxiv, are not used.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from gcnii.data.labels import array_labels, splits_or_stratified
from gcnii.errors import DataError, GraphError
from gcnii.graph import Graph, Split
from gcnii.graph.arrays import Array, merged

FORM = "a folder of the Open Graph Benchmark with raw/edge.csv.gz"
MARKS = tuple(f"{folder}{name}" for folder in ("raw/", "") for name in ("edge.csv.gz", "relations"))
FILES = {"train": "train", "val": "valid", "test": "test"}  # mask → the name of its file


def read(path: Path, directed: bool = False, seed: int = 0, split: str = "") -> Graph:
    """The graph in a folder of the Open Graph Benchmark.

    directed  whether edges are one-way, which the files do not say
    split     the name of the split, if there are several
    seed      draws the split if there is none
    """
    raw = path / "raw" if (path / "raw").is_dir() else path
    if (raw / "relations").exists():
        raise DataError(f"{path} has several types of nodes; gcnii reads graphs of one type")
    n, m = (_count(raw / f"num-{what}-list.csv.gz") for what in ("node", "edge"))
    X = _table(raw / "node-feat.csv.gz", np.float32, n)
    edges = _table(raw / "edge.csv.gz", np.int64, m)
    y = _table(raw / "node-label.csv.gz", np.float64, n)
    if edges.shape[1] != 2:
        raise DataError(f"edge.csv.gz must have 2 columns, got {edges.shape[1]}")
    _refuse_nodes(edges, n, "edge.csv.gz")
    try:
        labels = array_labels(y, n)
        splits = _splits(_split_folder(raw.parent / "split", split), n)
        return Graph(
            X=X,
            edges=merged(edges.T, directed=directed),
            **labels._asdict(),
            splits=splits_or_stratified(splits, labels, seed),
            directed=directed,
            name=raw.resolve().parent.name,
        )
    except GraphError as error:
        raise DataError(f"{path}: {error}") from None


def _table(path: Path, kind: type, rows: int | None = None) -> Array:
    import pandas as pd

    if not path.exists():
        raise DataError(
            f"{path.parent} has no {path.name}; a graph is {FORM}, node-feat.csv.gz, "
            "node-label.csv.gz, num-node-list.csv.gz and num-edge-list.csv.gz"
        )
    try:
        table: Array = pd.read_csv(path, header=None, dtype=kind, compression="gzip").to_numpy()
    except pd.errors.EmptyDataError:
        table = np.zeros((0, 2), kind)
    except (OSError, EOFError, ValueError, OverflowError, zlib.error) as error:
        raise DataError(
            f"{path.name} is not a compressed table of numbers ({error}); fetch it again"
        ) from None
    if rows is not None and len(table) != rows:
        raise DataError(
            f"{path.name} must have {rows} rows, as num-node-list.csv.gz and "
            f"num-edge-list.csv.gz say, but has {len(table)}"
        )
    return table


def _count(path: Path) -> int:
    counts = _table(path, np.int64)
    if counts.shape != (1, 1) or counts[0, 0] < 0:
        raise DataError(
            f"{path.name} must hold one number, for one graph, got {counts.ravel()[:3].tolist()}"
        )
    return int(counts[0, 0])


def _refuse_nodes(rows: Array, n: int, name: str) -> None:
    if rows.size and not 0 <= rows.min() <= rows.max() < n:
        raise DataError(
            f"{name} names nodes from {rows.min()} to {rows.max()}, but there are 0 to {n - 1}"
        )


def _split_folder(folder: Path, wanted: str) -> Path | None:
    found = sorted(path for path in folder.glob("*") if path.is_dir())
    if wanted:
        found = [path for path in found if path.name == wanted] or found
        if found[:1] != [folder / wanted]:
            raise DataError(f"{folder} has no split {wanted!r}; it has {_listed(found)}")
    if len(found) > 1:
        raise DataError(f"{folder} has several splits; choose one: split={_listed(found, ' or ')}")
    return found[0] if found else None


def _listed(paths: list[Path], between: str = ", ") -> str:
    return between.join(repr(path.name) for path in paths) or "none"


def _splits(folder: Path | None, n: int) -> tuple[Split, ...]:
    if folder is None:
        return ()
    masks = {}
    for role, name in FILES.items():
        rows = _table(folder / f"{name}.csv.gz", np.int64)
        _refuse_nodes(rows, n, f"{name}.csv.gz")
        masks[role] = np.isin(np.arange(n), rows)
    return (Split(**masks),)
