"""Result: what a fit gives, and what a bundle on disk holds (safetensors and JSON, no pickle)."""

from __future__ import annotations

import csv
import glob
import hashlib
import json
import platform
import warnings
from dataclasses import asdict, dataclass, fields, replace
from math import nan
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file

from gcnii import __version__
from gcnii.errors import BundleError, GraphError, InputError, some_of
from gcnii.files import Document, atomic_write, json_value, write_document
from gcnii.graph import Graph
from gcnii.metrics.objective import mean_and_spread
from gcnii.nn import Model
from gcnii.train.batches import cutter
from gcnii.train.checkpoint import write_tensors
from gcnii.train.hardware import choose_device
from gcnii.train.plan import Plan, make_plan
from gcnii.train.replicas.packing import Stack
from gcnii.train.run import Run
from gcnii.train.scaling import Scaling
from gcnii.train.task import Task

Floats: TypeAlias = NDArray[np.floating[Any]]

FORMAT = 1  # of run.json; a reader refuses a number above its own
FILES = {"model.safetensors", "curves.csv", "run.json", "checkpoint.safetensors"}
CURVE = ("train_loss", "val_loss", "val")


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
    features: tuple[str, ...] | None = None  # a bundle from before there were names has none
    weighted: bool = False


@dataclass(frozen=True, eq=False)
class Result:
    """The runs of a fit and the best weights of each, stacked in the order of the runs."""

    graph: Origin
    plan: Plan
    runs: tuple[Run, ...]
    weights: Stack
    device: str
    interrupted: bool = False
    scaling: Scaling | None = None

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
        return cls(origin, plan, tuple(runs), weights, device, interrupted, scaling)

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

    @property
    def best(self) -> int:
        """The run that was best on validation: the one that predicts."""
        return self.plan.recipe.best(self.runs)

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

    def predict(self, graph: Graph, device: str = "auto") -> NDArray[np.int64]:
        """(n,) class ids, or (n, k) zeros and ones where a node can have several labels."""
        scores = self._run("forward", graph, device)
        return np.asarray(scores > 0 if self.graph.multilabel else scores.argmax(1), np.int64)

    def predict_proba(self, graph: Graph, device: str = "auto") -> Floats:
        """(n, k) probabilities."""
        scores = torch.tensor(self._run("forward", graph, device))
        return (scores.sigmoid() if self.graph.multilabel else scores.softmax(1)).numpy()

    def embed(self, graph: Graph, device: str = "auto") -> Floats:
        """(n, width) the last hidden layer."""
        return self._run("embed", graph, device)

    def network(self, graph: Graph, device: str = "auto") -> tuple[Model, Task]:
        """The model of the best run, in evaluation mode, and the graph made ready for it."""
        graph = self._aligned(graph)
        if graph.d != self.graph.d:
            raise GraphError(
                f"the model was trained on {self.graph.d} features per node, "
                f"but {graph.name} has {graph.d}"
            )
        task = Task.of(graph, self.plan, choose_device(device), self.scaling)
        model = self.plan.build(self.graph.d, self.graph.k)
        try:
            best = {name: weight[self.best] for name, weight in self.weights.items()}
            model.load_state_dict(best)
        except RuntimeError:
            raise BundleError(
                "the weights do not fit the settings in run.json; restore it, or train again"
            ) from None
        return model.to(task.device).eval(), task

    def _aligned(self, graph: Graph) -> Graph:
        """The graph with the feature columns of the training, by name where both have names."""
        if graph.weighted != self.graph.weighted:
            has, others = ("has", "none") if graph.weighted else ("has no", "some")
            warnings.warn(
                f"{graph.name} {has} edge weights, but the graph of the training had {others}; "
                "edges without a weight count 1",
                stacklevel=4,
            )
        if self.graph.features is not None and graph.features is not None:
            return graph.with_features(self.graph.features)
        if self.graph.features is not None or graph.features is not None:
            who = "the bundle" if self.graph.features is None else graph.name
            warnings.warn(
                f"{who} does not name its feature columns, so they are matched by position; "
                "check that both have them in the same order",
                stacklevel=4,
            )
        return graph

    @torch.no_grad()
    def _run(self, method: str, graph: Graph, device: str) -> Floats:
        model, task = self.network(graph, device)
        output: torch.Tensor = getattr(model, method)(task.P, task.X)
        return output.to_dense().cpu().numpy()

    def save(self, folder: Path | str) -> Path:
        """Write the bundle; run.json comes last, because a folder without it is not a bundle."""
        folder = Path(folder)
        with atomic_write(folder / "model.safetensors") as temporary:
            weights = {name: weight.contiguous() for name, weight in self.weights.items()}
            write_tensors(weights, temporary)
            digest = _sha256(temporary)
        with atomic_write(folder / "curves.csv") as temporary:
            self._write_curves(temporary)
        about = {"graph": asdict(self.graph), "weights_sha256": digest}
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
        origin, names = record["graph"], ("classes", "features")
        named = {name: origin.get(name) and tuple(origin[name]) for name in names}
        plan = make_plan(record["model"], record["settings"])
        scaled = plan.recipe.scale != "none"
        return {
            "graph": Origin(**origin | named),
            "plan": plan,
            "scaling": Scaling.of(record["scaling"], origin["d"]) if scaled else None,
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
