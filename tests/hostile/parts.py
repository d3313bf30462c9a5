"""Graphs in parts whose files are damaged, missing, foreign, special or forged."""

import hashlib
import json
import os
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp
from safetensors.numpy import load as tensors_in
from safetensors.numpy import save as bytes_of
from support.together import graph_of

from gcnii.data import load, load_share
from gcnii.data.formats.parts import MANIFEST, NAMES, part_name
from gcnii.files import document_key
from gcnii.graph import Graph
from gcnii.train.distributed.shard import pack
from hostile.damage import damaged_bytes, damaged_document, damaged_tensors
from hostile.folders import encoded, write
from hostile.judging import Silent, Wrong, answer_of, nothing_written
from hostile.trainings import EDGES, ROWS

PARTS = 3
Files = dict[str, bytes]


class Parts:
    """Parts are the graph that was cut, or are refused in a sentence; nothing is written."""

    name, few, quick, long = "parts", 12, 100, 1500

    def __init__(self, home: Path):
        write(home / "people", encoded({"nodes.csv": ROWS, "edges.csv": EDGES}))
        graphs = [load(home / "people"), graph_of(n=60), graph_of(n=60, sparse=True, weighted=True)]
        graphs += [graph_of(n=60, directed=True), graph_of(n=60, multilabel=True, seed=1)]
        self.whole = []
        for i, graph in enumerate(graphs):
            folder = home / f"parts-{i}"
            pack(graph, folder, PARTS)
            files = {path.name: path.read_bytes() for path in folder.iterdir()}
            self.whole.append((files, self._read(folder, PARTS)))

    @staticmethod
    def _read(folder: Path, size: int) -> list[Any]:
        """The whole graph, and what each process has."""
        shares = [load_share(str(folder), rank, size) for rank in range(size)]
        return [meaning(one) for one in (load(folder), *shares)]

    def attempt(self, random: Random, folder: Path) -> None:
        """Do something to the folder, and read it, whole and by processes."""
        which = random.randrange(len(self.whole))
        files, expected = self.whole[which]
        target = folder / "parts"
        target.mkdir()
        for name, content in files.items():
            (target / name).write_bytes(content)
        how = random.choice(HOW)
        other = self.whole[which - 1][0]
        told = f"{how.__name__.strip('_')}: {how(random, target, other)}"
        size = random.choice((1, PARTS, PARTS, 2))
        # A pipe, a device or a loop of links has no content to compare.
        guarded = nothing_written(folder) if how is not _special else nothing_written(folder / "x")
        with guarded:
            answers = [answer_of(lambda: load(target))]
            shares = [lambda rank=rank: load_share(str(target), rank, size) for rank in range(size)]
            answers += [answer_of(one) for one in shares]
        if how is _harmless and not (answers[0].value and (size == 2 or answers[1].value)):
            raise Wrong(f"{told}: refused: {answers[0].sentence or answers[1].sentence}")
        found = [one.value and meaning(one.value) for one in answers]
        if how is _forged:
            return
        wanted = expected if size == PARTS else [expected[0]] * 2 if size == 1 else expected[:1]
        for one, right in zip(found, wanted, strict=False):
            if one is not None and not same(one, right):
                raise Silent(f"{told}: accepted as another graph")

    def close(self) -> None:
        """Nothing to end."""


def meaning(graph: Graph) -> dict[str, Any]:
    """All that a graph, or a process's part of it, has."""
    X = graph.X.toarray() if sp.issparse(graph.X) else np.asarray(graph.X)
    splits = [getattr(one, role) for one in graph.splits for role in ("train", "val", "test")]
    arrays = {"X": X, "edges": graph.edges, "y": graph.labels, "splits": np.array(splits)}
    arrays["rows"] = getattr(graph, "rows", np.arange(graph.n))
    arrays["weights"] = np.zeros(0) if graph.weights is None else graph.weights
    words = {name: getattr(graph, name) for name in ("classes", "features", "directed", "nodes")}
    if np.array_equal(arrays["rows"], np.arange(graph.n)):
        return arrays | words
    return arrays | words | {"nodes": None}  # a process does not read the names


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both say the same; names may be left out."""
    arrays = all(
        np.array_equal(one[name], other[name])
        for name, value in one.items()
        if isinstance(value, np.ndarray)
    )
    words = all(one[name] == other[name] for name in ("classes", "features", "directed"))
    return (
        arrays
        and words
        and (None in (one["nodes"], other["nodes"]) or one["nodes"] == other["nodes"])
    )


# What is done to a folder; each returns what it was


def _damaged(random: Random, folder: Path, other: Files) -> str:
    path = random.choice(sorted(folder.iterdir()))
    change = damaged_bytes if path.name == MANIFEST else damaged_tensors
    content, told = change(random, path.read_bytes())
    path.write_bytes(content)
    return f"{path.name}: {told}"


def _listed(random: Random, folder: Path, other: Files) -> str:
    """parts.json changed, its seal as it was."""
    path = folder / MANIFEST
    text, told = damaged_document(random, json.loads(path.read_text("utf-8")))
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return told


def _missing(random: Random, folder: Path, other: Files) -> str:
    path = random.choice(sorted(folder.iterdir()))
    path.unlink()
    return path.name


def _foreign(random: Random, folder: Path, other: Files) -> str:
    """A file of another graph's folder in the place of one here."""
    name = random.choice(sorted(other.keys() - {NAMES}))
    (folder / name).write_bytes(other[name])
    return name


def _swapped(random: Random, folder: Path, other: Files) -> str:
    one, two = random.sample(sorted(folder.iterdir()), 2)
    contents = one.read_bytes(), two.read_bytes()
    two.write_bytes(contents[0])
    one.write_bytes(contents[1])
    return f"{one.name} and {two.name}"


def _special(random: Random, folder: Path, other: Files) -> str:
    path = random.choice(sorted(folder.iterdir()))
    path.unlink()
    what = random.choice(("a folder", "a pipe", "a loop", "/dev/zero", "/dev/null", "a way out"))
    if what == "a folder":
        path.mkdir()
    elif what == "a pipe":
        os.mkfifo(path)
    else:
        links = {"a loop": path.name, "a way out": "/etc/hostname"}
        path.symlink_to(links.get(what, what))
    return f"{path.name} is {what}"


def _forged(random: Random, folder: Path, other: Files) -> str:
    """Changed by someone who mends the seal, too: no traceback is all that is asked."""
    path = folder / MANIFEST
    document = json.loads(path.read_text("utf-8"))
    if random.random() < 0.3:
        text, told = damaged_document(random, document)
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = {}
    else:
        part = random.randrange(PARTS)
        tensors = tensors_in((folder / part_name(part)).read_bytes())
        told = f"part {part}: {_changed(random, tensors)}"
        content = bytes_of(tensors, {"gcnii": ""})
        (folder / part_name(part)).write_bytes(content)
        document["parts"][part]["sha256"] = hashlib.sha256(content).hexdigest()
    if isinstance(document, dict):
        document.pop("seal", None)
        document["seal"] = document_key(document)
    path.write_bytes(json.dumps(document).encode("utf-8", "surrogatepass"))
    return told


def _changed(random: Random, tensors: dict[str, Any]) -> str:
    name = random.choice(sorted(tensors))
    one = tensors[name]
    how = random.choice(("gone", "empty", "cut", "flat", "floats", "huge", "-1", "bytes", "?"))
    if how == "gone":
        del tensors[name]
    elif how == "?":
        tensors[random.choice(("new", "X.data", "part", "weights", "first.in"))] = one
    else:
        with np.errstate(all="ignore"):
            tensors[name] = {
                "empty": one[:0],
                "cut": one[: max(len(one) - 1, 0)],
                "flat": one.reshape(-1),
                "floats": np.full(one.shape, np.nan, np.float64),
                "huge": np.full(one.shape, 2**62, np.int64),
                "-1": np.full(one.shape, -1, np.int64),
                "bytes": np.zeros(one.shape, np.uint8),
            }[how].copy()
    return f"{name}: {how}"


def _harmless(random: Random, folder: Path, other: Files) -> str:
    how = random.choice(("a file beside", "a hidden file beside", "moved", "a link"))
    if how == "a file beside":
        (folder / "notes.txt").write_text("mine")
    elif how == "a hidden file beside":
        (folder / ".DS_Store").write_bytes(b"\0\1")
    elif how == "a link":
        moved = folder.rename(folder.with_name("elsewhere"))
        folder.symlink_to(moved)
    else:
        part = folder / part_name(0)
        moved = part.rename(folder.with_name("part"))
        part.symlink_to(moved)
    return how


HOW = (_damaged, _damaged, _listed, _listed, _missing, _foreign, _swapped, _special)
HOW += (_forged, _forged, _forged, _harmless)
