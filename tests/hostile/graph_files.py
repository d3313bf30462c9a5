"""Damaged graphs in the other formats: packed, .npz, GraphML, GML and Neo4j."""

import io
import warnings
import zipfile
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import scipy.sparse as sp

from gcnii.data import load
from gcnii.data.formats.packed import save
from gcnii.graph import Graph
from hostile.damage import CANARY, PICKLE, damaged_bytes, damaged_tensors
from hostile.folders import Rows, drawn_tables, encoded, text_of, write
from hostile.judging import Silent, Wrong, answer_of, nothing_written
from hostile.tables import (
    NotATable,
    compare,
    meaning_of_graph,
    meaning_of_tables,
    read_table,
)


class GraphFiles:
    """A file is the graph that it says, or is refused in a sentence; nothing is written."""

    name, few, quick, long, suffix = "", 4, 30, 500, ""

    def __init__(self, home: Path):
        """Nothing is shared: each case draws its own graph."""

    def attempt(self, random: Random, folder: Path) -> None:
        """A graph, some damage, and `load`."""
        tables = drawn_tables(random)
        target = folder / f"graph{self.suffix}"
        told = self.damage(random, tables, target)
        with nothing_written(folder):
            answer = answer_of(lambda: load(target))
        if (folder / CANARY).exists() or Path(CANARY).exists():
            raise Wrong(f"{told}: code of the file was run")
        if answer.value is None:
            return
        try:
            self.judge(answer.value, target, tables)
        except Wrong as wrong:
            raise wrong.after(told) from None

    def damage(self, random: Random, tables: dict[str, Rows], target: Path) -> str:
        """Write the tables in this format, damaged; say how."""
        content, told = damaged_bytes(random, self.content(tables, target))
        target.write_bytes(content)
        return told

    def content(self, tables: dict[str, Rows], target: Path) -> bytes:
        """The graph in this format."""
        raise NotImplementedError

    def judge(self, graph: Graph, target: Path, tables: dict[str, Rows]) -> None:
        """Raise Wrong unless the graph is the one that was saved."""
        same(graph, loaded(tables, target.parent / "tables"))

    def close(self) -> None:
        """Nothing to end."""


def loaded(tables: dict[str, Rows], folder: Path) -> Graph:
    """The graph of the tables."""
    if not folder.exists():
        write(folder, encoded(tables))
    return answer_of(lambda: load(folder)).value


def same(graph: Graph, other: Graph) -> None:
    """Raise Wrong unless both graphs are equal."""
    if graph.fingerprint != other.fingerprint:
        raise Silent("accepted as another graph")
    for name in ("nodes", "classes", "features"):
        if getattr(graph, name) != getattr(other, name):
            raise Silent(f"accepted with other {name}")


class Packed(GraphFiles):
    """Files of gcnii.save: a SHA-256 protects all that is in them."""

    name, suffix = "packed", ".safetensors"

    def damage(self, random: Random, tables: dict[str, Rows], target: Path) -> str:
        """Damage the bytes or the header."""
        content, told = damaged_tensors(random, self.content(tables, target))
        target.write_bytes(content)
        return told

    def content(self, tables: dict[str, Rows], target: Path) -> bytes:
        """What `save` writes."""
        path = save(loaded(tables, target.parent / "tables"), target.with_name("saved.safetensors"))
        return path.read_bytes()

    def judge(self, graph: Graph, target: Path, tables: dict[str, Rows]) -> None:
        """The graph and its table, down to the cells."""
        whole = loaded(tables, target.parent / "tables")
        same(graph, whole)
        if meaning_of_graph(graph).cells != meaning_of_graph(whole).cells:
            raise Silent("accepted with other cells")


class Npz(GraphFiles):
    """Archives of arrays, each with a checksum; arrays that lie about their size or are pickles."""

    name, suffix = "npz", ".npz"

    def damage(self, random: Random, tables: dict[str, Rows], target: Path) -> str:
        """Damage the archive, or put another array into it."""
        whole = self.content(tables, target)
        if random.random() < 0.5:
            content, told = damaged_bytes(random, whole)
            target.write_bytes(content)
            return told
        names = ("X", "edges", "y", "weights", "node_names", "train_masks", "new")
        content, told = with_another_array(random, whole, names)
        target.write_bytes(content)
        self.replaced = True
        return told

    def content(self, tables: dict[str, Rows], target: Path) -> bytes:
        """The arrays of the graph."""
        self.replaced = False
        graph = loaded(tables, target.parent / "tables")
        arrays = {"X": np.asarray(graph.X), "edges": graph.edges.T, "y": graph.y}
        arrays |= {"node_names": np.array(graph.nodes)}
        if graph.weights is not None:
            arrays["weights"] = graph.weights
        for role in ("train", "val", "test"):
            arrays[f"{role}_masks"] = np.array([getattr(one, role) for one in graph.splits])
        out = io.BytesIO()
        np.savez_compressed(out, **arrays)
        return out.getvalue()

    def judge(self, graph: Graph, target: Path, tables: dict[str, Rows]) -> None:
        """The same arrays, unless one was replaced by another valid one."""
        whole = loaded(tables, target.parent / "tables")
        if not np.isfinite(graph.X if not hasattr(graph.X, "indptr") else graph.X.data).all():
            raise Silent("features that are not finite")
        if not self.replaced and graph.fingerprint != whole.fingerprint:
            raise Silent("accepted as another graph")


class WideFeatures(GraphFiles):
    """Folders with a damaged features.npz beside their tables."""

    name = "features"

    def damage(self, random: Random, tables: dict[str, Rows], target: Path) -> str:
        """Damage the archive, or put another array into it."""
        out = io.BytesIO()
        shape = (len(tables["nodes.csv"]) - 1, 5)
        sp.save_npz(out, sp.random_array(shape, density=0.5, format="csr", rng=0))
        whole = out.getvalue()
        self.replaced = random.random() < 0.5
        names = ("data", "indices", "indptr", "shape", "format", "new")
        change = with_another_array if self.replaced else damaged_bytes
        content, told = change(random, whole, *([names] if self.replaced else []))
        write(target, encoded(tables) | {"features.npz": content})
        write(target.with_name("whole"), encoded(tables) | {"features.npz": whole})
        return told

    def judge(self, graph: Graph, target: Path, tables: dict[str, Rows]) -> None:
        """The same features, unless an array was replaced by another valid one."""
        X = sp.csr_array(graph.X)
        if not np.isfinite(X.data).all() or X.indices.max(initial=0) >= graph.d:
            raise Silent("features that are not finite, or beyond the last column")
        if not self.replaced:
            same(graph, answer_of(lambda: load(target.with_name("whole"))).value)


def with_another_array(random: Random, content: bytes, names: Sequence[str]) -> tuple[bytes, str]:
    """An archive with a strange array in the place of one of these names, and what it is."""
    name, out = random.choice(names), io.BytesIO()
    array, told = random.choice(list(_strange_arrays().items()))
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for member in old.namelist():
            if member != f"{name}.npy":
                new.writestr(member, old.read(member))
        new.writestr(f"{name}.npy", array, zipfile.ZIP_DEFLATED)
    return out.getvalue(), f"{name} is {told}"


@cache
def _strange_arrays() -> dict[bytes, str]:
    def npy(array: Any) -> bytes:
        out = io.BytesIO()
        np.save(out, array)
        return out.getvalue()

    def lying(shape: str, kind: str = "<f8") -> bytes:
        header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117)
        return b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + b"\n" + bytes(64)

    return {
        lying("(1000000000000,)"): "an array of 8 TB, it says",
        lying("(-1, 8)"): "an array of negative size",
        lying("(8,)", "|O"): "objects",
        lying("(8,)", "|O")[:128] + PICKLE: "a pickle",
        lying("(8, '__import__')"): "an array with a word for a size",
        npy(np.zeros((4, 10**6))): "4 million zeros",
        npy(np.array([np.nan])): "NaN",
        npy(np.full((3, 3), np.inf)): "infinite",
        npy(np.zeros((0, 0))): "empty",
        npy(np.array(7)): "a number",
        npy(np.array(["a", "b"])): "two words",
        npy(np.array([-1, 2**62])): "huge numbers",
        npy(np.zeros(4, "M8[s]")): "dates",
        npy(np.zeros(3, [("a", int)])): "records",
        npy(np.zeros((2, 2), complex)): "complex",
        b"": "no bytes at all",
    }


KEYS = {"age": "double", "town": "string", "label": "string", "weight": "double"}
LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))


class GraphMl(GraphFiles):
    """GraphML, judged by what networkx reads; entities that expand without end, files named."""

    name, suffix = "graphml", ".graphml"

    def content(self, tables: dict[str, Rows], target: Path) -> bytes:
        """As networkx writes it, more or less."""
        keys = "".join(
            f'<key id="{name}" for="{"edge" if name == "weight" else "node"}" '
            f'attr.name="{name}" attr.type="{kind}"/>\n'
            for name, kind in KEYS.items()
        )
        nodes = "".join(
            f'<node id="{row[0]}">{_data(tables["nodes.csv"][0][1:4], row[1:4])}</node>\n'
            for row in tables["nodes.csv"][1:]
        )
        edges = "".join(
            f'<edge source="{row[0]}" target="{row[1]}">{_data(["weight"], row[2:])}</edge>\n'
            for row in tables["edges.csv"][1:]
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
            f'{keys}<graph edgedefault="undirected">\n{nodes}{edges}</graph></graphml>\n'
        ).encode()

    def damage(self, random: Random, tables: dict[str, Rows], target: Path) -> str:
        """Damage the bytes, or declare entities."""
        if random.random() < 0.8:
            return super().damage(random, tables, target)
        told, entities = random.choice(
            (
                ("a billion laughs", f'<!ENTITY l0 "ha">{LAUGHS}<!ENTITY e "&l11;">'),
                ("an entity of a file", '<!ENTITY e SYSTEM "file:///etc/hostname">'),
                ("an entity of a server", '<!ENTITY e SYSTEM "http://127.0.0.1:9/">'),
            )
        )
        head, rest = self.content(tables, target).decode().split("\n", 1)
        rest = rest.replace(">Oslo<", ">&e;<").replace(">Rome<", ">&e;<")
        target.write_text(f"{head}\n<!DOCTYPE graphml [{entities}]>\n{rest}", "utf-8")
        return told

    def judge(self, graph: Graph, target: Path, tables: dict[str, Rows]) -> None:
        """Well-formed, and as networkx reads it."""
        try:
            ElementTree.parse(target)
        except (ElementTree.ParseError, ValueError, LookupError) as error:
            raise Silent(f"accepted, but it is not XML: {error}") from None
        judge_by_networkx(graph, lambda: nx.read_graphml(target))


def _data(names: list[str], cells: list[str]) -> str:
    return "".join(
        f'<data key="{name}">{escape(cell)}</data>'
        for name, cell in zip(names, cells, strict=False)
    )


class Gml(GraphFiles):
    """GML, judged by what networkx reads."""

    name, suffix = "gml", ".gml"

    def content(self, tables: dict[str, Rows], target: Path) -> bytes:
        """Nodes by number; labels repeat, so they are classes."""
        place = {row[0]: i for i, row in enumerate(tables["nodes.csv"][1:])}
        nodes = "".join(
            f'node [ id {place[name]} age {age} town "{town.encode("ascii", "ignore").decode()}" '
            f'label "{label}" ]\n'
            for name, age, town, label, *_ in tables["nodes.csv"][1:]
        )
        edges = "".join(
            f"edge [ source {place[u]} target {place[v]} {f'weight {w[0]}' if w else ''} ]\n"
            for u, v, *w in tables["edges.csv"][1:]
        )
        return f"graph [\ndirected 0\n{nodes}{edges}]\n".encode()

    def judge(self, graph: Graph, target: Path, tables: dict[str, Rows]) -> None:
        """As networkx reads it."""
        judge_by_networkx(graph, lambda: nx.read_gml(target, label="id"))


def judge_by_networkx(graph: Graph, read: Any) -> None:
    """Raise Wrong unless networkx reads the same nodes, edges and labels, if it reads the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = read()
    except Exception:  # networkx is not judged
        return
    names = [str(node) for node in other]
    if list(graph.nodes) != names:
        if len(set(graph.nodes)) == graph.n == len(names) and graph.classes is None:
            return  # GML: labels that all differ are names
        raise Silent(f"other nodes: {graph.nodes}, not {names}")
    found = meaning_of_graph(graph)
    pairs = {(min(map(str, pair)), max(map(str, pair))) for pair in other.edges()}
    weights = nx.get_edge_attributes(other, "weight")
    pairs -= {
        (min(map(str, pair[:2])), max(map(str, pair[:2])))
        for pair, weight in weights.items()
        if weight == 0
    }
    if set(found.edges) != pairs:
        raise Silent(f"other edges: {sorted(set(found.edges) ^ pairs)[:4]}")
    for node, about in other.nodes(data=True):
        label = about.get("label")
        if isinstance(label, str) and label.strip() != (found.labels[str(node)] or "").strip():
            raise Silent(f"the label of {node} is {found.labels[str(node)]!r}, not {label!r}")


FIELDS = {"id": "person:ID", "label": ":LABEL", "age": "age:double", "town": "town:string"}
FIELDS |= {"split": "split:string", "source": ":START_ID", "target": ":END_ID"}
FIELDS |= {"weight": "weight:double"}


class Neo4j(GraphFiles):
    """Folders of CSV files with typed headers."""

    name = "neo4j"

    def damage(self, random: Random, tables: dict[str, Rows], target: Path) -> str:
        """Damage the bytes of one of two files."""
        files = {
            name: text_of([[FIELDS[head] for head in rows[0]], *rows[1:]]).encode()
            for name, rows in tables.items()
        }
        name = random.choice(list(files))
        files[name], told = damaged_bytes(random, files[name])
        write(target, files)
        return f"{name}: {told}"

    def judge(self, graph: Graph, target: Path, tables: dict[str, Rows]) -> None:
        """As the tables say, if the headers are as they were."""
        try:
            found = {name: read_table(target / name, stripped=False) for name in tables}
        except NotATable as error:
            raise Silent(f"accepted, but it is not CSV: {error}") from None
        for name, rows in found.items():
            if rows[0] != [FIELDS[head] for head in tables[name][0]]:
                return
            rows[0] = tables[name][0]
        try:
            expected = meaning_of_tables(found["nodes.csv"], found["edges.csv"])
        except NotATable as error:
            raise Silent(f"accepted, but {error}") from None
        compare(graph, expected)


FORMATS = (Packed, Npz, WideFeatures, GraphMl, Gml, Neo4j)
