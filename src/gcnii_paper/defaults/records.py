"""What was measured: a document for each graph, in a folder or all of them in one file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from gcnii.files import NOTHING, Document, Maybe, atomic_write, read_document
from gcnii.nn.settings import Settings
from gcnii.train.own import Traits

_SCORES = [(float, NOTHING)]
RUNS = {"model": str, "settings": dict, "seeds": [int], "val": _SCORES, "test": _SCORES}
TRAITS = {
    **{"n": int, "d": int, "train": int, "sparse": bool, "multilabel": bool},
    # Documents from before these were measured lack them: then they are assumed.
    **{"homophily": Maybe(float), "links": Maybe(float), "features": Maybe(float)},
}
SHAPE = {"graph": str, "metric": str, **TRAITS, "runs": [RUNS]}
WHAT = "record of settings"


class Records:
    """Documents by the names of their graphs; `add` writes at once.

    path  a folder for NAME.json, or a file *.json for all
    """

    def __init__(self, path: Path):
        self.path, self.one = path, path.suffix == ".json"
        self.documents: dict[str, Document] = {}
        if self.one and path.exists():
            self.documents = read_document(path, {str: SHAPE}, WHAT, dict)
        for file in () if self.one else sorted(path.glob("*.json")):
            self.documents[file.stem] = read_document(file, SHAPE, WHAT, dict)

    def held(self, name: str, model: str) -> list[Settings]:
        """The settings that this model was measured with on this graph."""
        runs = self.documents.get(name, {"runs": []})["runs"]
        return [run["settings"] for run in runs if run["model"] == model]

    def traits(self, name: str) -> Traits:
        """Those of a graph that was measured."""
        return traits_of(self.documents[name])

    def add(self, name: str, about: Document, runs: Iterable[Document]) -> None:
        """Keep more runs on a graph, and what is known about it."""
        before = self.documents.get(name, {"runs": []})
        self.documents[name] = before | about | {"runs": [*before["runs"], *runs]}
        if self.one:
            write_text(self.path, texts(self.documents))
        else:
            write_text(self.path / f"{name}.json", text(self.documents[name]))


def traits_of(document: Document) -> Traits:
    """Those of the graph that a document is about."""
    return Traits(**{trait: document[trait] for trait in TRAITS if trait in document})


def text(document: Document) -> str:
    """JSON with a line for each run."""
    about = {name: value for name, value in document.items() if name != "runs"}
    runs = ",\n  ".join(json.dumps(run) for run in document["runs"])
    return f'{json.dumps(about, indent=1)[:-2]},\n "runs": [\n  {runs}\n ]\n}}\n'


def texts(documents: Mapping[str, Document]) -> str:
    """The documents as one JSON object."""
    return (
        "{\n"
        + ",\n".join(f"{json.dumps(name)}: {text(one)}" for name, one in documents.items())
        + "}\n"
    )


def write_text(path: Path, words: str) -> None:
    """Write atomically."""
    with atomic_write(path) as temporary:
        temporary.write_text(words, "utf-8")
