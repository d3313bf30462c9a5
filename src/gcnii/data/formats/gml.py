"""A graph in a .gml file (Himsolt 1997), as igraph, networkx, Gephi and Mark Newman write it.

A node is called by its `label` if all have different ones, as networkx does it, else by its `id`.
Other attributes are read as those of a GraphML file; nested ones, such as `graphics`, are left out,
and a key that a record has twice is a list, as networkx writes and reads it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from gcnii.data.converters.networkx_graph import Records
from gcnii.data.formats.graphml import graph_of
from gcnii.errors import DataError, notice
from gcnii.graph import Graph
from gcnii.graph.columns import Columns

FORM = "a .gml file"
TOKEN = re.compile(
    r"""\s*+ (?: (?P<comment>\#[^\n]*) | (?P<sign>[][]) | "(?P<text>[^"]*)"
    | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:nan|inf)\b)
    | (?P<key>[a-z_][\w.-]*) )""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
Pairs: TypeAlias = list[tuple[str, "Value"]]
Value: TypeAlias = "int | float | str | Pairs"


def read(path: Path, *, columns: Columns | None = None, **options: object) -> Graph:
    """The graph in a GML file.

    columns  what its attributes are, if that was learnt on another graph
    options  those of `Reading`
    """
    try:
        records = _records(_parsed(path.read_bytes().decode("utf-8-sig")))
    except UnicodeDecodeError:
        raise DataError(f"{path.name} is not UTF-8 text; save the file as UTF-8") from None
    except ValueError as error:  # DataError, or a number of thousands of digits
        raise DataError(f"{path.name}: {error}") from None
    return graph_of(records, path, columns, options)


def _parsed(text: str) -> Pairs:
    """The document: each key with its value, or with the pairs between its brackets."""
    outer: Pairs = []
    stack, key = [outer], ""
    for kind, value, place in _tokens(text):
        if kind == "key" and not key:
            key = str(value)
        elif kind == "value" and key:
            stack[-1].append((key, value))
            key = ""
        elif value == "[" and key:
            inner: Pairs = []
            stack[-1].append((key, inner))
            stack.append(inner)
            key = ""
        elif value == "]" and not key and len(stack) > 1:
            stack.pop()
        else:
            line = text.count("\n", 0, place) + 1
            raise DataError(f"line {line} is not GML: {value!r} cannot stand there")
    if key or len(stack) > 1:
        raise DataError("the file ends inside a record; it must be complete GML")
    return outer


def _tokens(text: str) -> Iterator[tuple[str, int | float | str, int]]:
    """Kind (key, value or sign), value and place of each token."""
    text, place = text.rstrip(), 0
    while found := TOKEN.match(text, place):  # finditer would try every place after the last
        kind, place = str(found.lastgroup), found.end()
        if kind == "text":
            yield "value", html.unescape(found[kind]), place
        elif kind == "number":
            number = found[kind]
            yield "value", int(number) if number.lstrip("+-").isdecimal() else float(number), place
        elif kind != "comment":
            yield kind, found[kind], place
    if rest := text[place:].lstrip():
        line = text.count("\n", 0, len(text) - len(rest)) + 1
        raise DataError(f"line {line} is not GML: {rest[:20].strip()!r}")


def _records(document: Pairs) -> Records:
    graphs = _inner(document, "graph")
    if len(graphs) != 1:
        raise DataError(f"a GML file must hold one graph, but this one holds {len(graphs)}")
    nodes, links = (_inner(graphs[0], kind) for kind in ("node", "edge"))
    if not nodes:
        raise DataError("the graph has no nodes; it needs at least one")
    place: dict[int, int] = {}
    for i, node in enumerate(nodes):
        if place.setdefault(_whole(node, "id", f"node {i}"), i) != i:
            raise DataError(f"node {i} has the id of another; ids must differ")
    ends = (
        tuple(_whole(link, end, f"edge {i}") for end in ("source", "target"))
        for i, link in enumerate(links)
    )
    labels = [_one(node, "label", f"node {i}") for i, node in enumerate(nodes)]
    named = None not in labels and len(set(map(str, labels))) == len(labels)
    return Records(
        names=[str(name) for name in (labels if named else place)],
        nodes=_attributes(nodes, {"id", "label"} if named else {"id"}),
        edges=[(_node(place, u, i), _node(place, v, i)) for i, (u, v) in enumerate(ends)],
        links=_attributes(links, {"source", "target"}),
        directed=_directed(graphs[0]),
    )


def _directed(graph: Pairs) -> bool:
    said = _one(graph, "directed", "the graph")
    if said not in (None, 0, 1) or isinstance(said, float):
        raise DataError(f"directed must be 0 or 1, without quotes, got {said!r}")
    return said == 1


def _inner(pairs: Pairs, key: str) -> list[Pairs]:
    """The records of this key."""
    return [value for name, value in pairs if name == key and isinstance(value, list)]


def _one(record: Pairs, key: str, owner: str) -> int | float | str | None:
    """The value of a key that may be there once, as one number or one text."""
    values = [value for name, value in record if name == key]
    if len(values) > 1:
        raise DataError(f"{owner} has the key {key} {len(values)} times; keep one")
    value = values[0] if values else None
    if isinstance(value, list):
        raise DataError(f"{owner} must have one number or text as its {key}, got a record")
    return value


def _whole(record: Pairs, key: str, owner: str) -> int:
    value = _one(record, key, owner)
    if not isinstance(value, int):
        raise DataError(f"{owner} must have a whole number as its {key}, got {value!r}")
    return value


def _node(place: dict[int, int], number: int, edge: int) -> int:
    if number not in place:
        raise DataError(f"edge {edge} names the node {number}, which is not there")
    return place[number]


def _attributes(records: list[Pairs], known: set[str]) -> list[dict[str, object]]:
    """The values of each record; of a key that it has several times, a list of them."""
    nested: set[str] = set()
    found: list[dict[str, object]] = []
    for record in records:
        values: dict[str, list[object]] = {}
        for key, value in record:
            if isinstance(value, list):
                nested.add(key)
            elif key not in known and value != "":
                values.setdefault(key, []).append(value)
        found.append({key: one[0] if len(one) == 1 else one for key, one in values.items()})
    if nested:
        notice(f"the attributes {', '.join(sorted(nested))} hold records and are not used")
    return [{key: value for key, value in one.items() if key not in nested} for one in found]
