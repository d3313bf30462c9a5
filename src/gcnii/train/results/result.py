"""Result: what a fit gives, and what a bundle on disk holds (safetensors and JSON, no pickle)."""

from __future__ import annotations

import csv
import glob
import hashlib
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
from gcnii.files import Document, atomic_write, document_key, json_value, write_document
from gcnii.graph import Graph
from gcnii.metrics.objective import mean_and_spread, metric_name
from gcnii.nn.settings import Settings
from gcnii.train.batches import cutter
from gcnii.train.checkpoint import write_tensors
from gcnii.train.plan import Plan, make_plan
from gcnii.train.recipe import in_force
from gcnii.train.replicas.packing import Stack
from gcnii.train.results.predictor import Predictor
from gcnii.train.results.record import FORMAT, read_record, refuse_misfit, refusing
from gcnii.train.results.run import Run
from gcnii.train.scaling import Scaling

WEIGHTS, CURVES = "model.safetensors", "curves.csv"
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
        options = {name: _storable(one) for name, one in self.loaded_with.items()}
        columns = self.columns and self.columns.document()
        return plain | {"columns": columns, "loaded_with": options}

    @classmethod
    def of_document(cls, document: Document) -> Origin:
        """From JSON."""
        named = {name: document.get(name) and tuple(document[name]) for name in NAMES}
        columns = document.get("columns")
        made = {"columns": columns and Columns.of_document(columns)}
        options = document.get("loaded_with", {})
        options |= {name: one for name, one in made.items() if name in options}
        return cls(**document | named | made | {"loaded_with": options})


def _storable(option: object) -> object:
    """An option of `load` as JSON has it; columns that were given are X's own, and stored once."""
    if isinstance(option, Columns):
        return None
    return sorted(option) if isinstance(option, set | frozenset) else option


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
        return metric_name(self.plan.recipe.scored_by, multilabel=self.graph.multilabel)

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
            "metric": self.metric,
            "runs": [run.summary() for run in self.runs],
            "test_mean": json_value(self.test.mean()),
            "test_std": json_value(self.std),
            "device": self.device,
            "interrupted": self.interrupted,
        }

    def save(self, folder: Path | str, *, overwrite: bool = False) -> Path:
        """Write the bundle; until it is whole, the folder keeps the one that it held.

        A bundle is replaced only by one of the same training that has all its runs, and a finished
        one only by a finished one; `overwrite` replaces any bundle, but nothing else.
        """
        folder = Path(folder)
        about = (self.graph.fingerprint, self.plan, self.runs)
        refuse_replacing(folder, *about, interrupted=self.interrupted, overwrite=overwrite)
        try:
            record = self._write(folder)
        except OSError:  # a full disk, before run.json was in its place
            for name in (WEIGHTS, CURVES):
                _fresh(folder, name).unlink(missing_ok=True)
            raise
        _settle(folder, record)
        return folder

    def _write(self, folder: Path) -> Document:
        """Write the files beside those of the old bundle; run.json comes last and decides."""
        with atomic_write(_fresh(folder, WEIGHTS)) as temporary:
            weights = {name: weight.contiguous() for name, weight in self.weights.items()}
            write_tensors(weights, temporary)
            digests = {"weights_sha256": _sha256(temporary)}
        with atomic_write(_fresh(folder, CURVES)) as temporary:
            self._write_curves(temporary)
            digests["curves_sha256"] = _sha256(temporary)
        record = self._record() | digests
        # From here on the new bundle holds, wherever its other files are: see `_settle`.
        write_document(folder / "run.json", record | {"seal": document_key(record)})
        return record

    def _record(self) -> Document:
        """What run.json holds, but for the digests of the other files."""
        scaling = {"scaling": self.scaling.document()} if self.scaling else {}
        about = {"graph": self.graph.document(), **scaling, "versions": self._versions()}
        return {"format": FORMAT, **self.summary(), **about}

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


def refuse_replacing(
    folder: Path,
    fingerprint: str,
    plan: Plan,
    runs: Sequence[Run],
    *,
    interrupted: bool = False,
    overwrite: bool = False,
) -> None:
    """Raise InputError if a bundle of these runs may not be saved to the folder: see `Result.save`.

    The weights are not asked: damage to them must not stop the repetition of their training.
    """
    if not (folder / "run.json").exists():
        if strangers := [name for name in (WEIGHTS, CURVES) if (folder / name).exists()]:
            raise InputError(
                f"{folder} holds {some_of(strangers)} without the run.json of a bundle; choose "
                "another folder, or move that away"
            )
        return
    record = read_record(folder)
    held = Result(weights={}, **_open_record(folder, record))
    why = _why_kept(held, (fingerprint, plan.model, in_force(plan.settings)), runs, interrupted)
    if why and not overwrite:
        raise InputError(
            f"{folder} holds {why}; choose another folder, or overwrite it "
            "(--overwrite; in Python, overwrite=True)"
        )
    _settle(folder, record)


def _why_kept(
    held: Result, training: tuple[str, str, Settings], runs: Sequence[Run], interrupted: bool
) -> str:
    """What makes a bundle worth more than one of these runs; empty where nothing does."""
    settings = in_force(held.plan.settings)
    if (held.graph.fingerprint, held.plan.model, settings) != training:
        return f"the bundle of another training ({held!r})"
    new = {(run.seed, run.split) for run in runs}
    if lost := [run for run in held.runs if (run.seed, run.split) not in new]:
        first, count = lost[0], "1 run" if len(lost) == 1 else f"{len(lost)} runs"
        which = f"{'' if len(lost) == 1 else 'first '}seed {first.seed} on split {first.split}"
        return f"{count} of this training that the new bundle would lack ({which})"
    if interrupted and not held.interrupted:
        return "the finished bundle of this training, and the new one was interrupted"
    return ""


def open_bundle(folder: Path | str) -> Result:
    """The result that `save` wrote; neither the data nor the device of its training is needed."""
    folder = _bundle_folder(Path(folder))
    record = read_record(folder)
    parts = _open_record(folder, record)
    with suppress(OSError):  # the folder may be read-only
        _settle(folder, record)
    result = Result(weights=_open_weights(folder, record), **parts)
    sizes = (result.graph.d, result.graph.k, len(result.runs))
    with refusing(folder / "run.json"):
        refuse_misfit(result.weights, result.plan, *sizes)
    return result


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
    with refusing(folder / "run.json"):
        plan = make_plan(record["model"], record["settings"])
        origin = Origin.of_document(record["graph"])
        return {
            "graph": origin,
            "plan": plan,
            "scaling": _open_scaling(record.get("scaling"), plan.recipe.scale, origin.d),
            "runs": tuple(_open_run(run) for run in record["runs"]),
            "device": record["device"],
            "interrupted": record["interrupted"],
        }


def _open_scaling(document: Document | None, scale: str, d: int) -> Scaling | None:
    if scale == "none":
        return None
    if document is None:
        raise InputError("scaling is missing")
    scaling = Scaling.of(document, d)
    if scale not in ("auto", scaling.kind):
        raise InputError(f"scaling.kind must be {scale}, as in the settings, got {scaling.kind}")
    return scaling


def _open_run(summary: Document) -> Run:
    fields: Document = {name: nan if one is None else one for name, one in summary.items()}
    return Run(**fields)


def _open_weights(folder: Path, record: Document) -> Stack:
    path, fresh = folder / WEIGHTS, _fresh(folder, WEIGHTS)
    try:
        for one in (fresh, path) if fresh.exists() else (path,):
            if _sha256(one) == record["weights_sha256"]:
                return load_file(one)
    except (OSError, SafetensorError) as error:
        raise BundleError(f"{path} cannot be read: {error}") from None
    raise BundleError(
        f"{path} is not the file that run.json was written with; train again or restore it"
    )


def _fresh(folder: Path, name: str) -> Path:
    """Where `save` writes a file before the run.json that makes it the bundle's."""
    return folder / f".{name}.new"


def _settle(folder: Path, record: Document) -> None:
    """Put the files that run.json names into their places, as a killed `save` could not."""
    for name, digest in ((WEIGHTS, "weights_sha256"), (CURVES, "curves_sha256")):
        fresh = _fresh(folder, name)
        with suppress(FileNotFoundError):  # another process may do the same
            if fresh.exists() and _sha256(fresh) == record.get(digest):
                fresh.replace(folder / name)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
