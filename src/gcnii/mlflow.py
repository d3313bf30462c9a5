"""MLflow: trained models in its registry, and curves in its runs.  Needs `gcnii[mlflow]`.

    import gcnii.mlflow
    gcnii.mlflow.log_model(result)                        # within mlflow.start_run()
    result = gcnii.mlflow.load_model("runs:/…/model")     # what gcnii.open_bundle returns
    mlflow.pyfunc.load_model("runs:/…/model").predict({"nodes": nodes, "edges": edges})

A model in MLflow is a bundle: safetensors and JSON, nothing pickled.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from gcnii import __version__
from gcnii.data.converters.frames import open_frames
from gcnii.data.tables.assemble import assemble
from gcnii.errors import InputError
from gcnii.inference.new_nodes import reading_of
from gcnii.inference.predict import label_table
from gcnii.results.bundle import open_bundle
from gcnii.results.trained import Trained
from gcnii.train.callbacks import EpochReport

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from pandas import DataFrame

BUNDLE = "bundle"  # the folder of the artifact
EVERY = 2.0  # seconds between two writes of curves


def log_model(result: Trained, name: str = "model", **options: object) -> str:
    """Log a trained model, its settings and scores into the active run of MLflow, or a new one.

    Parameters
    ----------
    result : Result or Ensemble
        What `fit` or `open_bundle` returned.
    name : str
        Of the model in the run.
    **options
        What `mlflow.pyfunc.log_model` takes beside, such as `registered_model_name`.

    Returns
    -------
    str
        The address of the model, for `load_model`.
    """
    mlflow = _mlflow()
    run = mlflow.active_run() or mlflow.start_run()
    with tempfile.TemporaryDirectory() as folder:
        result.save(Path(folder) / BUNDLE)
        made = mlflow.pyfunc.log_model(
            name=name,
            loader_module=__name__,
            data_path=str(Path(folder) / BUNDLE),
            pip_requirements=[f"gcnii=={__version__}"],
            **options,
        )
    settings = {"model": result.model, "metric": result.metric, **result.in_force()}
    there = mlflow.get_run(run.info.run_id).data.params  # of its training, which MLflow keeps
    mlflow.log_params({name: one for name, one in settings.items() if name not in there})
    scores = {"test": result.test.mean(), "val": result.val.mean()}
    mlflow.log_metrics({name: float(one) for name, one in scores.items() if isfinite(one)})
    return str(made.model_uri)


def load_model(address: str) -> Trained:
    """Open the bundle of a logged model.

    Parameters
    ----------
    address : str
        Such as `runs:/RUN/model` or `models:/NAME/1`.

    Returns
    -------
    Result or Ensemble
    """
    folder = Path(_mlflow().artifacts.download_artifacts(address))
    (found,) = [path.parent for path in folder.glob("**/run.json") if "members" not in path.parts]
    return open_bundle(found)


@dataclass(frozen=True)
class Predictor:
    """What MLflow calls: tables of nodes and edges in, the table of labels out."""

    result: Trained

    def predict(
        self,
        tables: Mapping[str, IntoDataFrame],
        params: Mapping[str, object] | None = None,
    ) -> DataFrame:
        """One row per node, of the data frames `nodes` and `edges`."""
        if not isinstance(tables, Mapping) or set(tables) != {"nodes", "edges"}:
            raise InputError('predict takes two data frames, {"nodes": …, "edges": …}')
        origin = self.result.origin
        reading = reading_of(origin.loaded_with, origin.directed)
        found = open_frames(tables["nodes"], tables["edges"], reading, origin.columns)
        return label_table(self.result, assemble(*found, "graph"))


def _load_pyfunc(path: str) -> Predictor:
    """By which MLflow loads what `log_model` has logged."""
    return Predictor(open_bundle(path))


class MlflowLog:
    """A callback of `fit` that logs settings and curves into a run of MLflow.

    Each seed has curves of its own: `seed-0/val_loss`.  Points are written every two seconds, and
    when `fit` closes it.  Where a fit tries several settings, the curves of the second are those
    called `setting-1/seed-0/val_loss`, and what it has otherwise than the first is logged so, too.

    Parameters
    ----------
    name : str
        Of the run that is made; within an active run, that one is taken.
    """

    def __init__(self, name: str = "gcnii"):
        self.mlflow, self.name = _mlflow(), name
        self.run: str | None = None
        self.settings: dict[int, Mapping[str, object]] = {}
        self.points: list[object] = []
        self.written = time.monotonic()

    def __call__(self, now: EpochReport) -> None:
        """Add the points of this epoch."""
        if self.run is None:
            self.own = self.mlflow.active_run() is None
            active = self.mlflow.active_run() or self.mlflow.start_run(run_name=self.name)
            self.run = active.info.run_id
        if now.setting not in self.settings:
            self.settings[now.setting] = now.settings
            first = self.settings.get(0, {}) if now.setting else {}
            own = {key: value for key, value in now.settings.items() if value != first.get(key)}
            self.mlflow.log_params({f"{now.prefix}{key}": own[key] for key in own})
        stamp = int(time.time() * 1000)
        for seed, measures in now.measures.items():
            for name, value in measures._asdict().items():
                self.points.append(
                    self.mlflow.entities.Metric(
                        f"{now.prefix}seed-{seed}/{name}", value, stamp, now.epoch
                    )
                )
        if time.monotonic() - self.written > EVERY:
            self._write()

    def _write(self) -> None:
        client = self.mlflow.MlflowClient()
        for start in range(0, len(self.points), 1000):  # as many as it takes at once
            client.log_batch(self.run, metrics=self.points[start : start + 1000])
        self.points, self.written = [], time.monotonic()

    def close(self) -> None:
        """Write what is left, and end the run if it was made here."""
        if self.run is not None:
            self._write()
            if self.own:
                self.mlflow.end_run()
            self.run, self.settings = None, {}


def _mlflow() -> ModuleType:
    try:
        import mlflow
        import mlflow.pyfunc
    except ImportError:
        raise InputError(
            "this needs MLflow: pip install 'gcnii[mlflow]', or 'mlflow' for its server and page"
        ) from None
    return mlflow  # type: ignore[no-any-return]
