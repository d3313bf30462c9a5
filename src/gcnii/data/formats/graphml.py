"""A graph in a .graphml file (Brandes et al. 2002), as Gephi, igraph, networkx and yEd write it.

The attributes of the nodes are the features; `label`, `split` and, of the edges, `weight` are what
they are called, and options give other names (`gcnii.data.tables.reading`).  Whether edges are
one-way is written in the file.  Values keep their declared types, and a missing one is the default
that the file declares, or missing.

A file with a document type is refused before any of its entities is expanded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.parsers.expat import ExpatError, ParserCreate

from gcnii.data.converters.networkx_graph import Records
from gcnii.data.tables.reading import Reading
from gcnii.errors import DataError, InputError, notice
from gcnii.graph import Graph
from gcnii.graph.columns import Columns

FORM = "a .graphml file"
TRUTH = {"true": True, "1": True, "false": False, "0": False}
DIRECTED = {"directed": True, "undirected": False}
KINDS: dict[str, Callable[[str], object]] = {
    "boolean": lambda text: TRUTH[text.strip().lower()],
    "int": int,
    "long": int,
    "integer": int,
    "float": float,
    "double": float,
    "string": str,
}
# How numbers are written: Python's int and float take 1_000 and the digits of all scripts as well.
WHOLE = re.compile(r"[+-]?[0-9]+")
NUMBER = re.compile(
    r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE
)
WRITTEN: dict[object, re.Pattern[str]] = {int: WHOLE, float: NUMBER}
REFUSED = {"hyperedge": "hyperedges", "port": "ports"}
IN_THE_FILE = ("id", "source", "target")  # options that a file of nodes and edges has no use for


def read(path: Path, *, columns: Columns | None = None, **options: object) -> Graph:
    """The graph in a GraphML file.

    columns  what its attributes are, if that was learnt on another graph
    options  those of `Reading`
    """
    document = Document()
    parser = ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = document.refuse_doctype
    parser.StartElementHandler = document.start
    parser.EndElementHandler = document.end
    parser.CharacterDataHandler = document.text
    try:
        with path.open("rb") as stream:
            parser.ParseFile(stream)
    except DataError as error:
        raise DataError(f"line {parser.CurrentLineNumber} of {path.name}: {error}") from None
    except (ExpatError, LookupError, ValueError) as error:
        raise DataError(f"{path.name} is not a complete XML document ({error})") from None
    if document.unused:
        names = ", ".join(sorted(document.unused))
        notice(f"{path.name}: the attributes {names} hold markup and are not used")
    return graph_of(document.records(path), path, columns, options)


def graph_of(
    records: Records, path: Path, columns: Columns | None, options: Mapping[str, object]
) -> Graph:
    """The graph of what a file holds; InputError if the options contradict the file."""
    for name in IN_THE_FILE:
        if name in options:
            raise InputError(f"{path.name} has nodes and edges, not columns; leave out {name}")
    if options.get("directed", records.directed) is not records.directed:
        kind = "directed" if records.directed else "undirected"
        raise InputError(f"{path.name} says that its edges are {kind}; leave out directed")
    return records.graph(path.stem, Reading.of(**options), columns=columns)


@dataclass(frozen=True)
class Key:
    """An attribute: its name, how its text becomes a value, and the text of its default."""

    name: str
    kind: str
    owner: str  # node, edge, graph or all
    default: str | None = None

    def value(self, text: str) -> object:
        """The value that the text of a <data> element stands for."""
        try:
            made = KINDS[self.kind]
            if made not in WRITTEN or WRITTEN[made].fullmatch(text.strip()):
                return made(text)
        except (KeyError, ValueError):
            pass
        raise DataError(f"{self.name} is {text!r}, which is not of type {self.kind}")


@dataclass
class Document:
    """What has been read of a file so far."""

    keys: dict[str, Key] = field(default_factory=dict)
    place: dict[str, int] = field(default_factory=dict)  # id of a node → its number
    nodes: list[dict[str, object]] = field(default_factory=list)
    ends: list[tuple[str, str]] = field(default_factory=list)
    links: list[dict[str, object]] = field(default_factory=list)
    directed: bool | None = None  # None until the graph begins
    unused: set[str] = field(default_factory=set)
    open: list[str] = field(default_factory=list)  # the elements around this place
    data: int = 0  # how many elements are around the <data> element around this place, if any is
    key: str = ""  # of the <key> or <data> element around this place
    pieces: list[str] = field(default_factory=list)  # of its text

    def refuse_doctype(self, *_: object) -> None:
        """A document type can declare entities that expand without end."""
        raise DataError("a document type is not read; remove the <!DOCTYPE …> declaration")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if self.data:
            self.unused.add(self.keys[self.key].name)
        elif name in REFUSED:
            raise DataError(f"{REFUSED[name]} are not read; write plain nodes and edges")
        elif starter := getattr(self, f"_start_{name}", None):
            starter(attributes)
        self.open.append(name)

    def text(self, text: str) -> None:
        """Take a piece of text, which counts inside <data> and <default> alone."""
        if self.open and self.open[-1] in ("data", "default"):
            self.pieces.append(text)

    def end(self, tag: str) -> None:
        name = self.open.pop()
        if self.data and len(self.open) == self.data:
            self.data = 0
            self._set(self.keys[self.key], "".join(self.pieces))
        elif name == "default" and not self.data and self.open[-1:] == ["key"]:
            self._set_default("".join(self.pieces))

    def _set_default(self, text: str) -> None:
        key = self.keys[self.key]
        if key.default is not None:
            raise DataError(f"the key {key.name!r} has two defaults; keep one")
        self.keys[self.key] = replace(key, default=text)

    def _start_key(self, attributes: dict[str, str]) -> None:
        self.key, name = _required(attributes, "id", "key"), attributes.get("attr.name", "")
        kind = attributes.get("attr.type", "string").lower()
        if self.key in self.keys:
            raise DataError(f"the key {self.key!r} is declared twice; ids must differ")
        self.keys[self.key] = Key(name or self.key, kind, attributes.get("for", "all"))

    def _start_default(self, attributes: dict[str, str]) -> None:
        self.pieces = []

    def _start_graph(self, attributes: dict[str, str]) -> None:
        if self.directed is not None:
            raise DataError("a second graph begins; a file must hold one, without others in it")
        said = attributes.get("edgedefault", "undirected")
        if said not in DIRECTED:
            raise DataError(f"edgedefault must be directed or undirected, got {said!r}")
        self.directed = DIRECTED[said]

    def _start_node(self, attributes: dict[str, str]) -> None:
        name = _required(attributes, "id", "node")
        if name in self.place:
            raise DataError(f"the node {name!r} is there twice; ids must differ")
        self.place[name] = len(self.nodes)
        self.nodes.append({})

    def _start_edge(self, attributes: dict[str, str]) -> None:
        said = attributes.get("directed")
        if said is not None and said.lower() not in TRUTH:
            raise DataError(f"directed of an edge must be true or false, got {said!r}")
        if said is not None and TRUTH[said.lower()] is not self.directed:
            raise DataError("some edges are one-way and some are not; write all in one way")
        source, target = (_required(attributes, end, "edge") for end in ("source", "target"))
        self.ends.append((source, target))
        self.links.append({})

    def _start_data(self, attributes: dict[str, str]) -> None:
        self.key, self.pieces = _required(attributes, "key", "data"), []
        if self.key not in self.keys:
            raise DataError(f"<data> names the key {self.key!r}, which is not declared")
        self.data = len(self.open)

    def _set(self, key: Key, text: str) -> None:
        owner = self.open[-1]
        if key.name in self.unused or owner not in ("node", "edge"):
            return
        row = (self.nodes if owner == "node" else self.links)[-1]
        if key.name in row:
            raise DataError(f"this {owner} has two attributes {key.name!r}; keep one")
        row[key.name] = key.value(text)

    def records(self, path: Path) -> Records:
        """What was read; DataError if an edge names a node that is not there."""
        if not self.nodes:
            raise DataError(f"{path.name} has no nodes; a graph needs at least one")
        for i, ends in enumerate(self.ends):
            for name in ends:
                if name not in self.place:
                    raise DataError(f"edge {i} of {path.name} names {name!r}, which is no node")
        of_nodes, of_links = (self._defaults(owner, path) for owner in ("node", "edge"))
        return Records(
            names=list(self.place),
            nodes=[self._given(one, of_nodes) for one in self.nodes],
            edges=[(self.place[u], self.place[v]) for u, v in self.ends],
            links=[self._given(one, of_links) for one in self.links],
            directed=bool(self.directed),
            of_nodes=of_nodes,
            of_links=of_links,
        )

    def _defaults(self, owner: str, path: Path) -> dict[str, object]:
        """The declared defaults of the attributes of nodes or edges."""
        keys = [key for key in self.keys.values() if key.owner in (owner, "all")]
        name, count = next(iter(Counter(key.name for key in keys).most_common(1)), ("", 0))
        if count > 1:
            raise DataError(
                f"{path.name} declares {count} keys called {name!r} for an element {owner}; "
                "give them different names"
            )
        values = {key.name: key.value(key.default) for key in keys if key.default is not None}
        return {
            name: value for name, value in values.items() if name not in self.unused and value != ""
        }

    def _given(self, own: dict[str, object], defaults: dict[str, object]) -> dict[str, object]:
        """The attributes that an element has; an empty text is none, and no default either."""
        return {
            name: None if value == "" else value
            for name, value in own.items()
            if name not in self.unused and (value != "" or name in defaults)
        }


def _required(attributes: dict[str, str], name: str, element: str) -> str:
    if name not in attributes:
        raise DataError(f"<{element}> has no {name}")
    return attributes[name]
