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
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
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
# Options that a file of nodes and edges has no use for.
IN_THE_FILE = ("id", "edge_from", "edge_to", "source")


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
    parser.CharacterDataHandler = document.builder.data
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
    builder: TreeBuilder = field(default_factory=TreeBuilder)
    around: int = 0  # how many <data> elements are around this place: what is in them is markup

    def refuse_doctype(self, *_: object) -> None:
        """A document type can declare entities that expand without end."""
        raise DataError("a document type is not read; remove the <!DOCTYPE …> declaration")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if name in REFUSED and not self.around:
            raise DataError(f"{REFUSED[name]} are not read; write plain nodes and edges")
        if name == "graph" and not self.around:
            self._begin(attributes)
        self.around += name == "data"
        self.builder.start(name, attributes)

    def end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        element = self.builder.end(name)
        self.around -= name == "data"
        if not self.around and name in ("key", "node", "edge"):
            getattr(self, f"_{name}")(element)
            element.clear()

    def _begin(self, attributes: dict[str, str]) -> None:
        if self.directed is not None:
            raise DataError("a second graph begins; a file must hold one, without others in it")
        said = attributes.get("edgedefault", "undirected")
        if said not in DIRECTED:
            raise DataError(f"edgedefault must be directed or undirected, got {said!r}")
        self.directed = DIRECTED[said]

    def _key(self, element: Element) -> None:
        own, name = _required(element, "id"), element.get("attr.name", "")
        if own in self.keys:
            raise DataError(f"the key {own!r} is declared twice; ids must differ")
        defaults = ["".join(one.itertext()) for one in element.findall("default")]
        if len(defaults) > 1:
            raise DataError(f"the key {name or own!r} has two defaults; keep one")
        kind, owner = element.get("attr.type", "string").lower(), element.get("for", "all")
        self.keys[own] = Key(name or own, kind, owner, defaults[0] if defaults else None)

    def _node(self, element: Element) -> None:
        name = _required(element, "id")
        if name in self.place:
            raise DataError(f"the node {name!r} is there twice; ids must differ")
        self.place[name] = len(self.nodes)
        self.nodes.append(self._values(element))

    def _edge(self, element: Element) -> None:
        said = element.get("directed")
        if said is not None and said.lower() not in TRUTH:
            raise DataError(f"directed of an edge must be true or false, got {said!r}")
        if said is not None and TRUTH[said.lower()] is not self.directed:
            raise DataError("some edges are one-way and some are not; write all in one way")
        self.ends.append((_required(element, "source"), _required(element, "target")))
        self.links.append(self._values(element))

    def _values(self, element: Element) -> dict[str, object]:
        """The attributes of a node or an edge; those that hold markup are not used."""
        values: dict[str, object] = {}
        for data in element.findall("data"):
            said = _required(data, "key")
            if said not in self.keys:
                raise DataError(f"<data> names the key {said!r}, which is not declared")
            key = self.keys[said]
            if len(data):
                self.unused.add(key.name)
            elif key.name in values:
                raise DataError(f"this {element.tag} has two attributes {key.name!r}; keep one")
            elif key.name not in self.unused:
                values[key.name] = key.value(data.text or "")
        return values

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


def _required(element: Element, name: str) -> str:
    if name not in element.attrib:
        raise DataError(f"<{element.tag}> has no {name}")
    return element.attrib[name]
