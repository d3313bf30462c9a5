"""Result: what a fit gives, and what a bundle on disk holds (safetensors and JSON, no pickle)."""

from __future__ import annotations

import csv
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

from gcnii import __version__
from gcnii.columns import Columns
from gcnii.errors import InputError, some_of
from gcnii.files import Document, atomic_write, document_key, json_value, write_document
from gcnii.graph import Graph
from gcnii.metrics.conformal import Sets
from gcnii.metrics.objective import mean_and_spread, metric_name
from gcnii.nn.settings import Settings
from gcnii.train.batches import cutter
from gcnii.train.checkpoint import write_tensors
from gcnii.train.plan import Plan
from gcnii.train.recipe import in_force
from gcnii.train.replicas.packing import Stack
from gcnii.train.results.predictor import Predictor
from gcnii.train.results.record import FORMAT, read_record
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
    """The runs of a fit and the best weights of each: their scores, what they predict, `save`.

    trained_on  the graph, where the training was in this process; a bundle does not hold it
    """

    device: str
    interrupted: bool = False
    trained_on: Graph | None = field(default=None, repr=False, kw_only=True)

    @classmethod
    def of(
        cls,
        graph: Graph,
        plans: Sequence[Plan],
        runs: list[Run],
        weights: Stack,
        device: str,
        interrupted: bool,
        scaling: Scaling | None = None,
    ) -> Result:
        """Keep of the graph what a bundle needs."""
        origin = Origin(**{field.name: getattr(graph, field.name) for field in fields(Origin)})
        result = cls(origin, plans[0], tuple(runs), weights, scaling, device, interrupted)
        return replace(result, others=tuple(plans[1:]), trained_on=graph)

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
        return self.part([i])

    def at(self, setting: int) -> Result:
        """The result of one of several settings, without the others."""
        if not 0 <= setting < len(self.plans):
            raise InputError(f"settings are numbered 0 to {len(self.plans) - 1}, got {setting}")
        return self.part([i for i, run in enumerate(self.runs) if run.setting == setting])

    def part(self, rows: list[int]) -> Result:
        """The result of these runs of one setting."""
        weights = {name: weight[rows] for name, weight in self.weights.items()}
        plan = self.plans[self.runs[rows[0]].setting]
        runs = tuple(replace(self.runs[i], setting=0) for i in rows)
        return replace(self, runs=runs, weights=weights, plan=plan, others=())

    @property
    def metric(self) -> str:
        """What the scores are."""
        return metric_name(self.plan.recipe.scored_by, multilabel=self.graph.multilabel)

    def predict_sets(
        self,
        graph: Graph | None = None,
        coverage: float = 0.9,
        device: str = "auto",
        *,
        kind: Sets = "lac",
        ensemble: bool = True,
    ) -> NDArray[np.bool_]:
        """(n, k) sets of classes that hold the true one: `inference.predict_sets`."""
        from gcnii.inference.sets import predict_sets

        return predict_sets(self, graph, coverage, device, kind=kind, ensemble=ensemble)

    def __repr__(self) -> str:
        """One line: what was trained, on what, how well."""
        layers = self.plan.model_settings.get("layers")
        model = self.plan.model + (f", {layers} layers" if layers else "")
        if self.others:
            return f"{model}, on {self.graph.name}: {self._best_of_several()}"
        test = mean_and_spread(self.test)
        return f"{model}, on {self.graph.name}: test {self.metric} {test}"

    def _best_of_several(self) -> str:
        setting = self.runs[self.best].setting
        val = mean_and_spread(self.at(setting).val)
        count = len(self.plans)
        return f"{count} settings, the best run of setting {setting}, val {self.metric} {val}"

    def summary(self) -> Document:
        """The one JSON document of `gcnii train --json`."""
        several = {"others": [plan.settings for plan in self.others]} if self.others else {}
        return several | {
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
        if self.others:
            raise InputError(
                f"a bundle holds one setting, this result {len(self.plans)}; save one of them: "
                f"result.at({self.runs[self.best].setting}).save({str(folder)!r}), or another"
            )
        folder = Path(folder)
        about = (self.graph.fingerprint, self.plan, self.runs)
        refuse_replacing(folder, *about, interrupted=self.interrupted, overwrite=overwrite)
        try:
            record = self._write(folder)
        except OSError:  # a full disk, before run.json was in its place
            for name in (WEIGHTS, CURVES):
                fresh(folder, name).unlink(missing_ok=True)
            raise
        settle(folder, record)
        return folder

    def _write(self, folder: Path) -> Document:
        """Write the files beside those of the old bundle; run.json comes last and decides."""
        with atomic_write(fresh(folder, WEIGHTS)) as temporary:
            weights = {name: weight.contiguous() for name, weight in self.weights.items()}
            write_tensors(weights, temporary)
            digests = {"weights_sha256": file_sha256(temporary)}
        with atomic_write(fresh(folder, CURVES)) as temporary:
            self._write_curves(temporary)
            digests["curves_sha256"] = file_sha256(temporary)
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
    from gcnii.train.results.bundle import open_record

    record = read_record(folder)
    held = Result(weights={}, **open_record(folder, record))
    why = _why_kept(held, (fingerprint, plan.model, in_force(plan.settings)), runs, interrupted)
    if why and not overwrite:
        raise InputError(
            f"{folder} holds {why}; choose another folder, or overwrite it "
            "(--overwrite; in Python, overwrite=True)"
        )
    settle(folder, record)


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


def fresh(folder: Path, name: str) -> Path:
    """Where `save` writes a file before the run.json that makes it the bundle's."""
    return folder / f".{name}.new"


def settle(folder: Path, record: Document) -> None:
    """Put the files that run.json names into their places, as a killed `save` could not."""
    for name, digest in ((WEIGHTS, "weights_sha256"), (CURVES, "curves_sha256")):
        newer = fresh(folder, name)
        with suppress(FileNotFoundError):  # another process may do the same
            if newer.exists() and file_sha256(newer) == record.get(digest):
                newer.replace(folder / name)


def file_sha256(path: Path) -> str:
    """The digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
