"""Damaged bundles and checkpoints of a small training."""

import hashlib
import json
import logging
import shutil
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np
from support import knobs
from support.killing import Killed, killed_after_a_save

from gcnii.data import load
from gcnii.results.bundle import open_bundle
from gcnii.results.fit import fit
from gcnii.results.result import Result
from hostile.damage import CANARY, damaged_bytes, damaged_document, damaged_tensors
from hostile.folders import encoded, write
from hostile.judging import Lost, Silent, Wrong, answer_of, nothing_written

ROWS = [["id", "age", "town", "label", "split"]] + [
    [f"p{i}", str(i * 7 % 11), ("Oslo", "Rome", "")[i % 3], "cd"[i % 2], role]
    for i, role in enumerate(("train", "train", "val", "val", "test", "test") * 4)
]
EDGES = [["source", "target"]] + [[f"p{i}", f"p{(i * i + 1) % 24}"] for i in range(24)]
WORDS: dict[str, Any] = {"layers": 2, "width": 4, "epochs": 6, "patience": 6, "device": "cpu"}
WORDS |= {"threads": 1, "verbose": False, "seeds": (0, 1)}


class Bundles:
    """A damaged bundle is refused in a sentence, or predicts what the whole one predicts."""

    name, few, quick, long = "bundles", 4, 80, 1500

    def __init__(self, home: Path):
        write(home / "people", encoded({"nodes.csv": ROWS, "edges.csv": EDGES}))
        self.graph = load(home / "people")
        self.whole = fit(self.graph, scale="standard", **WORDS).save(home / "bundle")
        self.expected = self._predicted(self.whole)

    def _predicted(self, folder: Path) -> tuple[Any, Any, Any]:
        result = open_bundle(folder)
        labels = result.predict(self.graph, "cpu")
        return labels.tolist(), result.predict_proba(self.graph, "cpu"), result.best

    def attempt(self, random: Random, folder: Path) -> None:
        """Damage the record, the weights, or both so that the SHA-256 of the weights fits."""
        bundle = folder / "bundle"
        shutil.copytree(self.whole, bundle)
        how = random.choice(("record", "record", "record", "text", "weights", "forged"))
        told = getattr(self, f"_damage_{how}")(random, bundle)
        with nothing_written(folder):
            answer = answer_of(lambda: self._predicted(bundle))
        if Path(CANARY).exists() or (folder / CANARY).exists():
            raise Wrong(f"{told}: code of the bundle was run")
        if answer.value is not None and how != "forged" and not equal(answer.value, self.expected):
            raise Silent(f"{how}: {told}: other predictions, and no error")

    def _damage_record(self, random: Random, bundle: Path) -> str:
        document = json.loads((bundle / "run.json").read_text("utf-8"))
        text, told = damaged_document(random, document)
        (bundle / "run.json").write_bytes(text.encode("utf-8", "surrogatepass"))
        return told

    def _damage_text(self, random: Random, bundle: Path) -> str:
        content, told = damaged_bytes(random, (bundle / "run.json").read_bytes())
        (bundle / "run.json").write_bytes(content)
        return told

    def _damage_weights(self, random: Random, bundle: Path) -> str:
        content, told = damaged_tensors(random, (bundle / "model.safetensors").read_bytes())
        (bundle / "model.safetensors").write_bytes(content)
        return told

    def _damage_forged(self, random: Random, bundle: Path) -> str:
        """As someone would who wants the weights to be read: no traceback is all that is asked."""
        told = self._damage_weights(random, bundle)
        digest = hashlib.sha256((bundle / "model.safetensors").read_bytes()).hexdigest()
        document = json.loads((bundle / "run.json").read_text("utf-8"))
        document["weights_sha256"] = digest
        (bundle / "run.json").write_text(json.dumps(document), "utf-8")
        return told

    def close(self) -> None:
        """Nothing to end."""


def equal(one: tuple[Any, Any, Any], other: tuple[Any, Any, Any]) -> bool:
    """Whether labels, probabilities and the best run agree, to the last bit."""
    return one[0] == other[0] and np.array_equal(one[1], other[1]) and one[2] == other[2]


class Checkpoints:
    """Training goes on from a damaged checkpoint to the same numbers, or starts over and says so.

    It never ends with other numbers.  A file in which nothing is left that tells a checkpoint from
    a file of the user's is refused, and left as it is.
    """

    name, few, quick, long = "checkpoints", 2, 30, 500

    def __init__(self, home: Path):
        self.graph = load("csbm", n=60)
        self.expected = numbers(fit(self.graph, **WORDS))
        path = home / "checkpoint.safetensors"
        self.contents = [self._content(path, saves) for saves in (1, 8)]  # in either seed

    def _content(self, path: Path, saves: int) -> bytes:
        """The checkpoint after so many epochs."""
        path.unlink(missing_ok=True)
        for _ in range(saves):
            try:
                with mock.patch(knobs.SAVE_EVERY, 0.0), killed_after_a_save():
                    fit(self.graph, checkpoint=path, **WORDS)
            except Killed:
                continue
        return path.read_bytes()

    def attempt(self, random: Random, folder: Path) -> None:
        """Damage the file, and train on."""
        path = folder / "checkpoint.safetensors"
        content, told = damaged_tensors(random, random.choice(self.contents))
        path.write_bytes(content)
        with logged() as lines:
            answer = answer_of(lambda: fit(self.graph, checkpoint=path, **WORDS))
        if answer.value is None:
            if any(mark in content for mark in (b'"checkpoint"', b"fresh_epoch")):
                raise Wrong(f"{told}: refused: {answer.sentence}")
            if path.read_bytes() != content:
                raise Lost(f"{told}: refused, but changed")
            return
        if numbers(answer.value) != self.expected:
            raise Silent(f"{told}: other numbers")
        resumed = any(line.startswith("resumed") for line in lines)
        if not resumed and not any(path.name in words for words in answer.warnings):
            raise Silent(f"{told}: started over without a word")

    def close(self) -> None:
        """Nothing to end."""


@contextmanager
def logged() -> Any:
    """Within, the lines that gcnii logs."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("gcnii")
    level = log.level
    log.addHandler(handler)
    log.setLevel("INFO")
    try:
        yield lines
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def numbers(result: Result) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """All that a training ends with, but the seconds that it took."""
    runs = [run.summary() | {"seconds": 0} for run in result.runs]
    weights = {name: weight.tolist() for name, weight in result.weights.items()}
    return runs, [run.curve for run in result.runs], weights
