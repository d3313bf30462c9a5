"""Result: what a fit gives, and what a bundle on disk holds (safetensors and JSON, no pickle)."""

from __future__ import annotations

import csv
import glob
import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import nan
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file

from gcnii import __version__
from gcnii.columns import Columns
from gcnii.errors import BundleError, InputError, some_of
from gcnii.files import Document, atomic_write, json_value, write_document
from gcnii.graph import Graph
from gcnii.metrics.objective import mean_and_spread
from gcnii.train.batches import cutter
from gcnii.train.checkpoint import write_tensors
from gcnii.train.plan import Plan, make_plan
from gcnii.train.replicas.packing import Stack
from gcnii.train.results.predictor import Predictor
from gcnii.train.results.run import Run
from gcnii.train.scaling import Scaling

FORMAT = 1  # of run.json; a reader refuses a number above its own
FILES = {"model.safetensors", "curves.csv", "run.json", "checkpoint.safetensors"}
CURVE = ("train_loss", "val_loss", "val")
NAMES = ("classes", "features")


@dataclass(frozen=True)
class Origin:
    """What a result remembers of its graph, so that it opens where the data is not."""

    name: str
    fingerprint: str
    n: int
    d: int
    k: int
    multilabel: bool
    directed: bool
    classes: tuple[str, ...] | None
    source: str
    # A bundle from before there were these has none of them.
    features: tuple[str, ...] | None = None
    columns: Columns | None = None
    weighted: bool = False
    loaded_with: Mapping[str, object] = field(default_factory=dict)

    def document(self) -> Document:
        """As JSON."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return plain | {"columns": self.columns and self.columns.document()}

    @classmethod
    def of_document(cls, document: Document) -> Origin:
        """From JSON."""
        named = {name: document.get(name) and tuple(document[name]) for name in NAMES}
        columns = document.get("columns")
        return cls(**document | named | {"columns": columns and Columns.of_document(columns)})


@dataclass(frozen=True, eq=False)
class Result(Predictor):
    """The runs of a fit and the best weights of each: their scores, what they predict, `save`."""

    device: str
    interrupted: bool = False

    @classmethod
    def of(
        cls,
        graph: Graph,
        plan: Plan,
        runs: list[Run],
        weights: Stack,
        device: str,
        interrupted: bool,
        scaling: Scaling | None = None,
    ) -> Result:
        """Keep of the graph what a bundle needs."""
        origin = Origin(**{field.name: getattr(graph, field.name) for field in fields(Origin)})
        return cls(origin, plan, tuple(runs), weights, scaling, device, interrupted)

    @property
    def test(self) -> NDArray[np.float64]:
        """(runs,) test scores in [0, 1]."""
        return np.array([run.test for run in self.runs])

    @property
    def val(self) -> NDArray[np.float64]:
        """(runs,) validation scores in [0, 1]."""
        return np.array([run.val for run in self.runs])

    @property
    def std(self) -> float:
        """The sample standard deviation of the test scores (ddof 1); NaN of a single run."""
        return float(self.test.std(ddof=1)) if len(self.runs) > 1 else nan

    def alone(self, i: int) -> Result:
        """The result of run i, without the others."""
        weights = {name: weight[i : i + 1] for name, weight in self.weights.items()}
        return replace(self, runs=self.runs[i : i + 1], weights=weights)

    @property
    def metric(self) -> str:
        """What the scores are."""
        return "micro-F1" if self.graph.multilabel else "accuracy"

    def __repr__(self) -> str:
        """One line: what was trained, on what, how well."""
        layers = self.plan.model_settings.get("layers")
        model = self.plan.model + (f", {layers} layers" if layers else "")
        test = mean_and_spread(self.test)
        return f"{model}, on {self.graph.name}: test {self.metric} {test}"

    def summary(self) -> Document:
        """The one JSON document of `gcnii train --json`."""
        return {
            "graph": self.graph.name,
            "fingerprint": self.graph.fingerprint,
            "model": self.plan.model,
            "settings": self.plan.settings,
            "runs": [run.summary() for run in self.runs],
            "test_mean": json_value(self.test.mean()),
            "test_std": json_value(self.std),
            "device": self.device,
            "interrupted": self.interrupted,
        }

    def save(self, folder: Path | str) -> Path:
        """Write the bundle; run.json comes last, because a folder without it is not a bundle."""
        folder = Path(folder)
        with atomic_write(folder / "model.safetensors") as temporary:
            weights = {name: weight.contiguous() for name, weight in self.weights.items()}
            write_tensors(weights, temporary)
            digest = _sha256(temporary)
        with atomic_write(folder / "curves.csv") as temporary:
            self._write_curves(temporary)
        about = {"graph": self.graph.document(), "weights_sha256": digest}
        about |= {"scaling": self.scaling.document()} if self.scaling else {}
        record = {"format": FORMAT, **self.summary(), **about, "versions": self._versions()}
        write_document(folder / "run.json", record)
        return folder

    def _write_curves(self, path: Path) -> None:
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("seed", "epoch", *CURVE))
            for run in self.runs:
                rows.writerows((run.seed, epoch, *point) for epoch, point in enumerate(run.curve))

    def _versions(self) -> dict[str, str]:
        python, torch_version = platform.python_version(), str(torch.__version__)
        versions = {"gcnii": __version__, "torch": torch_version, "python": python}
        clustered = self.plan.recipe.batches == "clusters"
        return versions | ({"cutter": cutter()} if clustered else {})


def refuse_replacing(folder: Path, graph: Graph, plan: Plan) -> None:
    """Raise InputError if saving this plan's result would replace anything but its own bundle.

    The weights are not asked: a kill between the files of a bundle must not stop its repetition.
    """
    entries = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    # What a killed write leaves behind is hidden, and so is what systems put into any folder.
    if foreign := sorted(name for name in entries - FILES if not name.startswith(".")):
        raise InputError(
            f"{folder} holds {some_of(foreign)}, which gcnii did not write; choose another --out"
        )
    if "run.json" not in entries:
        return
    held = Result(weights={}, **_open_record(folder, _read_record(folder)))
    identity = held.plan.identity(graph) | {"graph": held.graph.fingerprint}
    if identity != plan.identity(graph):
        raise InputError(
            f"{folder} holds the bundle of another training ({held!r}); "
            "choose another --out, or remove it"
        )


def open_bundle(folder: Path | str) -> Result:
    """The result that `save` wrote; neither the data nor the device of its training is needed."""
    folder = _bundle_folder(Path(folder))
    record = _read_record(folder)
    return Result(weights=_open_weights(folder, record), **_open_record(folder, record))


def _read_record(folder: Path) -> Document:
    """run.json, if its format is known."""
    try:
        record = json.loads((folder / "run.json").read_text("utf-8"))
    except FileNotFoundError:
        raise BundleError(
            f"{folder} holds no run.json; give the folder that `gcnii train` wrote"
        ) from None
    except (OSError, ValueError) as error:
        raise BundleError(f"{folder / 'run.json'} cannot be read: {error}") from None
    found = record.get("format") if isinstance(record, dict) else None
    if not isinstance(found, int) or found > FORMAT:
        raise BundleError(
            f"{folder} has bundle format {found}, this gcnii reads up to {FORMAT}; update gcnii"
        )
    return record  # type: ignore[no-any-return]


def _bundle_folder(folder: Path) -> Path:
    """The folder itself, or the one bundle whose name goes on from it: runs/cora-gcnii-1f3a…"""
    if (folder / "run.json").exists():
        return folder
    pattern = f"{glob.escape(folder.name)}-{'[0-9a-f]' * 8}"
    found = sorted(path.parent for path in folder.parent.glob(f"{pattern}/run.json"))
    if len(found) > 1:
        names = ", ".join(map(str, found))
        raise BundleError(f"{len(found)} bundles have names that begin so; give one of {names}")
    return found[0] if found else folder


def _open_record(folder: Path, record: Document) -> Document:
    try:
        plan = make_plan(record["model"], record["settings"])
        origin, scaled = Origin.of_document(record["graph"]), plan.recipe.scale != "none"
        return {
            "graph": origin,
            "plan": plan,
            "scaling": Scaling.of(record["scaling"], origin.d) if scaled else None,
            "runs": tuple(_open_run(run) for run in record["runs"]),
            "device": record["device"],
            "interrupted": record["interrupted"],
        }
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(f"{folder / 'run.json'} is not a bundle's record: {error}") from None


def _open_run(summary: Document) -> Run:
    fields: Document = {name: nan if one is None else one for name, one in summary.items()}
    return Run(**fields)


def _open_weights(folder: Path, record: Document) -> Stack:
    path = folder / "model.safetensors"
    try:
        if _sha256(path) != record.get("weights_sha256"):
            raise BundleError(
                f"{path} is not the file that run.json was written with; train again or restore it"
            )
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise BundleError(f"{path} cannot be read: {error}") from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
