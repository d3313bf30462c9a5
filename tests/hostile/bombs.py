"""Files that are small but ask for much, and files of other dialects: bounded, and not guessed."""

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

import gcnii
from gcnii.data import load
from hostile.converters import equal
from hostile.judging import Silent, Wrong, answer_of, nothing_written

HEAD = '<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'


class Bombs:
    """What is large when it is unpacked takes little time and memory, or is refused."""

    name, few, quick, long = "bombs", 0, 10, 50

    def __init__(self, home: Path):
        """Nothing is shared."""

    def attempt(self, random: Random, folder: Path) -> None:
        """One file or object; an answer within the time and the memory is all that is asked."""
        make = random.choice(BOMBS)
        opened = make(folder)
        with nothing_written(folder):
            answer_of(opened)

    def close(self) -> None:
        """Nothing to end."""


def _graphml_defaults(folder: Path) -> Any:
    keys = "".join(
        f'<key id="k{i}" for="node" attr.name="k{i}" attr.type="double"><default>1</default></key>'
        for i in range(4000)
    )
    nodes = "".join(f'<node id="n{i}"/>' for i in range(12_000))
    graph = f'<graph edgedefault="undirected">{nodes}</graph>'
    return _text(folder, ".graphml", f"{HEAD}{keys}{graph}</graphml>")


def _graphml_nested(folder: Path) -> Any:
    deep = 200_000
    inner = "<graph>" * deep + "</graph>" * deep
    return _text(folder, ".graphml", f"{HEAD}{inner}</graphml>")


def _graphml_attributes(folder: Path) -> Any:
    words = " ".join(f'a{i}="1"' for i in range(50_000))
    graph = f'<graph edgedefault="directed"><node id="a" {words}/></graph>'
    return _text(folder, ".graphml", f"{HEAD}{graph}</graphml>")


def _gml_keys(folder: Path) -> Any:
    nodes = "".join(f"node [ id {i} k{i} 1 ]\n" for i in range(9000))
    return _text(folder, ".gml", f"graph [\n{nodes}]\n")


def _gml_blank(folder: Path) -> Any:
    return _text(folder, ".gml", "graph [\n" + "\n" * 3_000_000 + "node [ id x y z ]\n]")


def _gml_deep(folder: Path) -> Any:
    return _text(folder, ".gml", "graph " + "[ a " * 100_000 + "1" + " ]" * 100_000)


def _gml_digits(folder: Path) -> Any:
    return _text(folder, ".gml", f"graph [ node [ id {'9' * 500_000} ] ]")


def _neo4j_wide(folder: Path) -> Any:
    target = folder / "graph"
    target.mkdir()
    head = ",".join(["a:ID", *(f"c{i}:double" for i in range(100_000))])
    (target / "nodes.csv").write_text(f"{head}\n1{',1' * 100_000}\n")
    (target / "edges.csv").write_text(":START_ID,:END_ID\n1,1\n")
    return lambda: load(target)


def _csv_wide(folder: Path) -> Any:
    return _tables(folder, ",".join(["id", *(f"c{i}" for i in range(50_000))]), f"1{',1' * 50_000}")


def _csv_quotes(folder: Path) -> Any:
    return _tables(folder, "id,x", '1,"' + '""' * 1_000_000)


def _csv_digits(folder: Path) -> Any:
    return _tables(folder, "id,x", f"1,{'9' * 1_000_000}")


def _csv_categories(folder: Path) -> Any:
    rows = "\n".join(f"{i},word{i} other{i},{'ab'[i % 2]}" for i in range(40_000))
    return _tables(folder, "id,x,label", rows)


def _npz_bomb(folder: Path) -> Any:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, shape in (("X", (2_000, 400_000)), ("edges", (2, 1)), ("y", (3,))):
            header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117)
            start = b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + b"\n"
            with archive.open(f"{name}.npy", "w") as file:
                file.write(start)
                for _ in range(64 if name == "X" else 1):
                    file.write(bytes(1 << 20))
    (folder / "g.npz").write_bytes(out.getvalue())
    return lambda: load(folder / "g.npz")


def _npz_header(folder: Path) -> Any:
    deep = "(" * 20_000 + ")" * 20_000
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {deep}, }}\n".encode()
    content = b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in ("X", "edges", "y"):
            archive.writestr(f"{name}.npy", content)
    (folder / "g.npz").write_bytes(out.getvalue())
    return lambda: load(folder / "g.npz")


def _npz_members(folder: Path) -> Any:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for i in range(20_000):
            archive.writestr(f"a{i}", b"")
    (folder / "g.npz").write_bytes(out.getvalue())
    return lambda: load(folder / "g.npz")


def _parquet_wide(folder: Path) -> Any:
    target = folder / "graph"
    target.mkdir()
    columns = {f"c{i}": [float(i), 2.0] for i in range(2000)}
    pq.write_table(pa.table({"id": ["a", "b"], **columns}), target / "nodes.parquet")
    pq.write_table(pa.table({"source": ["a"], "target": ["b"]}), target / "edges.parquet")
    return lambda: load(target)


def _networkx_twice(folder: Path) -> Any:
    G = nx.Graph()
    G.add_nodes_from(range(40_000))
    G.add_node("39999")
    return lambda: gcnii.from_networkx(G)


def _networkx_keys(folder: Path) -> Any:
    G = nx.Graph()
    G.add_nodes_from((i, {f"k{i}": 1}) for i in range(6000))
    return lambda: gcnii.from_networkx(G)


def _sparse_wide(folder: Path) -> Any:
    X = sp.csr_array((np.ones(3), np.array([0, 1, 2**31 - 2]), np.array([0, 1, 2, 3])))
    return lambda: gcnii.from_scipy(np.ones((3, 3)), X, [0, 1, 0])


def _frame_wide(folder: Path) -> Any:
    nodes = pd.DataFrame(np.ones((3, 20_000))).rename(columns=str)
    nodes.insert(0, "id", [0, 1, 2])
    edges = pd.DataFrame({"source": [0], "target": [1]})
    return lambda: gcnii.from_frames(nodes, edges)


def _packed_lies(folder: Path) -> Any:
    header = {"X": {"dtype": "F32", "shape": [2**40, 2**20], "data_offsets": [0, 4]}}
    text = json.dumps(header).encode()
    content = len(text).to_bytes(8, "little") + text + bytes(4)
    (folder / "g.safetensors").write_bytes(content)
    return lambda: load(folder / "g.safetensors")


def _pipe(folder: Path) -> Any:
    end = (".safetensors", ".npz", ".graphml", ".gml", "")[len(str(folder)) % 5]
    os.mkfifo(folder / f"g{end}")
    return lambda: load(folder / f"g{end}")


def _device(folder: Path) -> Any:
    end = (".safetensors", ".npz", ".graphml", ".gml")[len(str(folder)) % 4]
    (folder / f"g{end}").symlink_to("/dev/zero")
    return lambda: load(folder / f"g{end}")


def _text(folder: Path, end: str, content: str) -> Any:
    (folder / f"g{end}").write_text(content, "utf-8")
    return lambda: load(folder / f"g{end}")


def _tables(folder: Path, head: str, row: str) -> Any:
    target = folder / "graph"
    target.mkdir()
    (target / "nodes.csv").write_text(f"{head}\n{row}\n")
    (target / "edges.csv").write_text("source,target\n1,1\n")
    return lambda: load(target)


BOMBS: tuple[Callable[[Path], Any], ...] = (
    *(_graphml_defaults, _graphml_nested, _graphml_attributes, _gml_keys, _gml_blank, _gml_deep),
    *(_gml_digits, _neo4j_wide, _csv_wide, _csv_quotes, _csv_digits, _csv_categories, _npz_bomb),
    *(_npz_header, _npz_members, _parquet_wide, _networkx_twice, _networkx_keys, _sparse_wide),
    *(_frame_wide, _packed_lies, _pipe, _device),
)


class Dialects:
    """GraphML and GML that say one thing twice, or in another way, are refused or read alike."""

    name, few, quick, long = "dialects", 20, 80, 800

    def __init__(self, home: Path):
        """Nothing is shared."""

    def attempt(self, random: Random, folder: Path) -> None:
        """A plain file, and one that differs in one place."""
        n = 12
        ages = [random.randint(1, 90) for _ in range(n)]
        towns = [random.choice(("Oslo", "Rome")) for _ in range(n)]
        pairs = sorted({tuple(sorted((i, (i + random.randint(1, 4)) % n))) for i in range(n)})
        links = [(u, v, random.randint(2, 9)) for u, v in pairs]
        end, write, changes = random.choice(
            ((".graphml", _graphml, GRAPHML), (".gml", _gml, GML), (".graphml", _graphml, GRAPHML))
        )
        (folder / f"plain{end}").write_text(write(ages, towns, links), "utf-8")
        told = random.choice(list(changes))
        change, sort = changes[told]
        text = change(random, write(ages, towns, links))
        (folder / f"odd{end}").write_text(text, "utf-8")
        with nothing_written(folder):
            plain = answer_of(lambda: load(folder / f"plain{end}")).value
            answer = answer_of(lambda: load(folder / f"odd{end}"))
        told = f"{end}: {told}"
        if answer.value is None:
            if sort == "right":
                raise Wrong(f"{told}: refused: {answer.sentence}")
        elif sort == "wrong" and not answer.warnings:
            raise Silent(f"{told}: accepted as {answer.value!r}")
        elif sort != "wrong":
            equal(answer.value, plain, told)

    def close(self) -> None:
        """Nothing to end."""


def _graphml(ages: Any, towns: Any, links: Any) -> str:
    keys = (
        '<key id="d0" for="node" attr.name="age" attr.type="double"/>\n'
        '<key id="d1" for="node" attr.name="town" attr.type="string"/>\n'
        '<key id="d2" for="node" attr.name="label" attr.type="string"/>\n'
        '<key id="d3" for="edge" attr.name="weight" attr.type="double"/>\n'
    )
    nodes = "".join(
        f'<node id="n{i}"><data key="d0">{age}</data><data key="d1">{town}</data>'
        f'<data key="d2">{"ab"[i % 2]}</data></node>\n'
        for i, (age, town) in enumerate(zip(ages, towns, strict=True))
    )
    edges = "".join(
        f'<edge source="n{u}" target="n{v}"><data key="d3">{w}</data></edge>\n' for u, v, w in links
    )
    return f'{HEAD}\n{keys}<graph edgedefault="undirected">\n{nodes}{edges}</graph></graphml>\n'


def _gml(ages: Any, towns: Any, links: Any) -> str:
    nodes = "".join(
        f'node [ id {i} age {age} town "{town}" label "{"ab"[i % 2]}" ]\n'
        for i, (age, town) in enumerate(zip(ages, towns, strict=True))
    )
    edges = "".join(f"edge [ source {u} target {v} weight {w} ]\n" for u, v, w in links)
    return f"graph [\ndirected 0\n{nodes}{edges}]\n"


def _put(old: str, new: str) -> Callable[[Random, str], str]:
    """The first of these words is replaced."""

    def change(random: Random, text: str) -> str:
        assert old in text, old
        return text.replace(old, new, 1)

    return change


def _lines(begin: str, how: Callable[[Random, list[str]], list[str]]) -> Any:
    """The lines that begin so, in another order or form."""

    def change(random: Random, text: str) -> str:
        lines = text.splitlines(keepends=True)
        places = [i for i, line in enumerate(lines) if line.startswith(begin)]
        for i, line in zip(places, how(random, [lines[i] for i in places]), strict=True):
            lines[i] = line
        return "".join(lines)

    return change


def _shuffled(random: Random, lines: list[str]) -> list[str]:
    return random.sample(lines, len(lines))


def _twice(begin: str) -> Any:
    """One line is there twice."""

    def change(random: Random, text: str) -> str:
        lines = text.splitlines(keepends=True)
        i = random.choice([i for i, line in enumerate(lines) if line.startswith(begin)])
        return "".join([*lines[: i + 1], lines[i], *lines[i + 1 :]])

    return change


def _data_order(random: Random, lines: list[str]) -> list[str]:
    """The attributes of each node in another order."""
    found = []
    for line in lines:
        head, *data = line.strip().removesuffix("</node>").split("<data")
        found.append(
            head + "".join("<data" + one for one in random.sample(data, len(data))) + "</node>\n"
        )
    return found


def _gml_order(random: Random, lines: list[str]) -> list[str]:
    found = []
    for line in lines:
        words = line.strip().removeprefix("node [ ").removesuffix(" ]").split(" ")
        pairs = [words[i : i + 2] for i in range(0, len(words), 2)]
        pairs = [pairs[0], *random.sample(pairs[1:], len(pairs) - 1)]
        found.append(f"node [ {' '.join(' '.join(one) for one in pairs)} ]\n")
    return found


GRAPHML: dict[str, tuple[Callable[[Random, str], str], str]] = {
    "edges in another order": (_lines("<edge", _shuffled), "odd"),
    "attributes in another order": (_lines("<node", _data_order), "right"),
    "keys in another order": (_lines("<key", _shuffled), "right"),
    "a key twice": (_twice("<key"), "wrong"),
    "a node twice": (_twice("<node"), "wrong"),
    "an attribute twice": (
        _put('<data key="d0">', '<data key="d0">1</data><data key="d0">'),
        "wrong",
    ),
    "two keys of one name": (_put('attr.name="town"', 'attr.name="age"'), "wrong"),
    "edgedefault Directed": (_put('"undirected"', '"Directed"'), "wrong"),
    "edgedefault nonsense": (_put('"undirected"', '"sideways"'), "wrong"),
    "edgedefault empty": (_put('"undirected"', '""'), "wrong"),
    "no edgedefault": (_put(' edgedefault="undirected"', ""), "odd"),
    "an edge that is directed": (_put("<edge ", '<edge directed="true" '), "wrong"),
    "an edge directed nonsense": (_put("<edge ", '<edge directed="maybe" '), "wrong"),
    "1_000": (_put('<data key="d0">', '<data key="d0">1_00'), "wrong"),
    "Arabic digits": (_put('<data key="d3">', '<data key="d3">٣'), "wrong"),
    "a weight that is a word": (_put('<data key="d3">', '<data key="d3">heavy'), "wrong"),
    "a key for nothing": (_put('<data key="d0">', '<data key="d9">'), "wrong"),
    "an edge to nowhere": (_put('target="n', 'target="m'), "wrong"),
    "a node without an id": (_put('<node id="n3"', "<node"), "wrong"),
    "two graphs": (_put("</graph></graphml>", "</graph><graph/></graphml>"), "wrong"),
    "a hyperedge": (_put("</graph>", "<hyperedge/></graph>"), "wrong"),
    "a port": (_put("</node>", '<port name="p"/></node>'), "odd"),
    "a comment": (_put("<graph ", "<!-- c --><graph "), "right"),
    "spaces in data": (_put('<data key="d0">', '<data key="d0"> '), "right"),
    "both directions": (
        lambda random, text: text.replace(
            "</graph>",
            "".join(
                line.replace("source", "x").replace("target", "source").replace(" x=", " target=")
                for line in text.splitlines(keepends=True)
                if line.startswith("<edge")
            )
            + "</graph>",
        ),
        "odd",
    ),
}
GML: dict[str, tuple[Callable[[Random, str], str], str]] = {
    "edges in another order": (_lines("edge", _shuffled), "odd"),
    "attributes in another order": (_lines("node", _gml_order), "right"),
    "a node twice": (_twice("node"), "wrong"),
    "an attribute twice": (_put(" age ", " age 1 age "), "wrong"),
    "a label twice": (_put(' label "', ' label "b" label "'), "wrong"),
    "a source twice": (_put(" source ", " source 0 source "), "wrong"),
    "directed twice": (_put("directed 0", "directed 1\ndirected 0"), "wrong"),
    'directed "1"': (_put("directed 0", 'directed "1"'), "wrong"),
    "directed 2": (_put("directed 0", "directed 2"), "wrong"),
    "directed nonsense": (_put("directed 0", 'directed "maybe"'), "wrong"),
    "1_000": (_put(" age ", " age 1_00"), "wrong"),
    "Arabic digits": (_put(" weight ", " weight ٣"), "wrong"),
    "an edge to nowhere": (_put(" target ", " target 99"), "wrong"),
    "a node without an id": (_put("node [ id 3", "node ["), "wrong"),
    "two graphs": (lambda random, text: text + text, "wrong"),
    "a comment": (_put("graph [", "# c\ngraph ["), "right"),
    "capitals": (_put("directed 0", "Directed 0"), "odd"),
}
DIALECTS = (Bombs, Dialects)
