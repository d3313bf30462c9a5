"""What two CSV tables mean, read in the plainest way: the judge of what `load` makes of them."""

import csv
import io
import math
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hostile.judging import Silent

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
Rows = list[list[str]]
ENDS = (("source", "target"), ("from", "to"), ("src", "dst"), ("u", "v"))
ROLES = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


class NotATable(Exception):
    """The file cannot be read in one way only: it must be refused."""


class Meaning(NamedTuple):
    """What a graph says, by the names of its nodes.

    edges  (name, name) in order of the names → weight, 1 if it has none
    cells  (column, node) → a number or a text; None where it is missing
    """

    nodes: list[str]
    labels: dict[str, str | None]
    roles: dict[str, str] | None
    edges: dict[tuple[str, str], float]
    cells: dict[tuple[str, str], float | str | None]


def meaning_of_folder(folder: Path) -> Meaning:
    """What nodes.csv and edges.csv mean; NotATable if they mean nothing for sure."""
    return meaning_of_tables(*(read_table(folder / name) for name in ("nodes.csv", "edges.csv")))


def meaning_of_tables(nodes: Rows, edges: Rows) -> Meaning:
    """What two tables mean, each with its header; NotATable if they mean nothing for sure."""
    ids = _column(nodes, "id")
    names = [row[ids] for row in nodes[1:]]
    if not names or "" in names or len(set(names)) < len(names):
        raise NotATable("ids are missing or repeated")
    label, split = (_column(nodes, name, needed=False) for name in ("label", "split"))
    labels = {
        name: None if label is None or row[label].lower() in ("", "nan", "null") else row[label]
        for name, row in zip(names, nodes[1:], strict=True)
    }
    roles = None
    if split is not None:
        words = {name: row[split].lower() for name, row in zip(names, nodes[1:], strict=True)}
        if not set(words.values()) <= {*ROLES, ""}:
            raise NotATable("a split is neither train, val nor test")
        roles = {name: ROLES[word] for name, word in words.items() if word}
    features = [j for j, name in enumerate(nodes[0]) if name and j not in (ids, label, split)]
    cells = {
        (nodes[0][j], name): _cell(row[j])
        for name, row in zip(names, nodes[1:], strict=True)
        for j in features
    }
    return Meaning(names, labels, roles, _edges(edges, set(names)), cells)


def read_table(path: Path, *, stripped: bool = True) -> Rows:
    """The header and the rows that have text, all as wide as the header."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        text = path.read_bytes().decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise NotATable(str(error)) from None
    finally:
        csv.field_size_limit(limit)
    if "\0" in text:
        raise NotATable("NUL")
    if stripped:
        rows = [[cell.strip() for cell in row] for row in rows]
    rows = [row for row in rows if any(row)]
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise NotATable("rows of different widths")
    named = [name for name in rows[0] if name]
    if len(set(named)) < len(named):
        raise NotATable("columns of one name")
    return rows


def _column(table: Rows, wanted: str, needed: bool = True) -> int | None:
    found = [j for j, name in enumerate(table[0]) if name.lower() == wanted]
    if len(found) > 1 or (needed and not found):
        raise NotATable(f"{len(found)} columns {wanted}")
    return found[0] if found else None


def _cell(text: str) -> float | str | None:
    return float(np.float32(text)) if NUMBER.fullmatch(text.strip()) else text or None


def _edges(table: Rows, names: set[str]) -> dict[tuple[str, str], float]:
    u, v, w = _ends(table[0])
    arrows: dict[tuple[str, str], float] = defaultdict(float)
    for row in table[1:]:
        if not {row[u], row[v]} <= names:
            raise NotATable("an edge to an unknown node")
        weight = 1.0 if w is None else float(row[w]) if NUMBER.fullmatch(row[w]) else -1.0
        if not 0 <= weight < math.inf:
            raise NotATable("a weight that is no number of 0 or more")
        arrows[row[u], row[v]] += weight
    if w is None:
        return {(min(pair), max(pair)): 1.0 for pair in arrows}
    for (one, other), weight in arrows.items():
        if not math.isclose(arrows.get((other, one), weight), weight):
            raise NotATable("two weights of one edge")
    return {(min(pair), max(pair)): weight for pair, weight in arrows.items() if weight}


def _ends(header: list[str]) -> tuple[int, int, int | None]:
    lower = [name.lower() for name in header]
    for names in (*ENDS, ("weight",)):
        if any(lower.count(name) > 1 for name in names):
            raise NotATable("an end or the weight is there twice")
    weight = lower.index("weight") if "weight" in lower else None
    for source, target in ENDS:
        if source in lower and target in lower:
            return lower.index(source), lower.index(target), weight
    rest = [j for j, name in enumerate(header) if name and j != weight]
    if len(rest) != 2:
        raise NotATable("no two ends")
    return rest[0], rest[1], weight


def meaning_of_graph(graph: Any) -> Meaning:
    """What a graph says."""
    names = list(graph.nodes)
    known = graph.classes or ()
    labels = {
        name: known[y] if y >= 0 else None for name, y in zip(names, graph.y.tolist(), strict=True)
    }
    roles = (
        {
            names[i]: role
            for role in ("train", "val", "test")
            for i in np.flatnonzero(getattr(graph.splits[0], role))
        }
        if graph.splits
        else {}
    )
    weights = np.ones(graph.edges.shape[1]) if graph.weights is None else graph.weights
    edges = {
        (min(names[u], names[v]), max(names[u], names[v])): float(w)
        for u, v, w in zip(*graph.edges.tolist(), weights.tolist(), strict=True)
    }
    cells = {
        (column, name): _value(cell)
        for column, values in (graph.table.columns if graph.table else {}).items()
        for name, cell in zip(names, values, strict=True)
    }
    return Meaning(names, labels, roles, edges, cells)


def _value(cell: Any) -> float | str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return None if np.isnan(cell) else float(cell)


def compare(graph: Any, expected: Meaning) -> None:
    """Raise Silent unless the graph says what is expected; true and false are numbers."""
    found = meaning_of_graph(graph)
    if not np.isfinite(graph.X.data if hasattr(graph.X, "indptr") else graph.X).all():
        raise Silent("features that are not finite")
    for name in ("nodes", "labels"):
        if getattr(found, name) != getattr(expected, name):
            raise Silent(f"other {name}: {getattr(found, name)}, not {getattr(expected, name)}")
    if expected.roles is not None and found.roles != expected.roles:
        raise Silent(f"another split: {found.roles}, not {expected.roles}")
    if found.edges.keys() != expected.edges.keys():
        raise Silent(f"other edges: {sorted(found.edges.keys() ^ expected.edges.keys())[:4]}")
    for pair, weight in found.edges.items():
        if not math.isclose(weight, expected.edges[pair], rel_tol=1e-9):
            raise Silent(f"edge {pair} weighs {weight}, not {expected.edges[pair]}")
    _compare_cells(found.cells, expected.cells)


def _compare_cells(found: dict[Any, Any], expected: dict[Any, Any]) -> None:
    truth = {"true": 1.0, "false": 0.0}
    for place, cell in found.items():
        if place not in expected:
            raise Silent(f"a cell from nowhere: {place}")
        wanted = expected[place]
        if isinstance(cell, float) and isinstance(wanted, str):
            wanted = truth.get(wanted.lower(), wanted)
        if isinstance(cell, str) and isinstance(wanted, float):
            cell = float(np.float32(cell)) if NUMBER.fullmatch(cell) else cell
        if cell != wanted:
            raise Silent(f"the cell {place} is {cell!r}, not {wanted!r}")
