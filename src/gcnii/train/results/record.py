"""run.json, the record of a bundle: its shape, its seal, and what in it must agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from pathlib import Path

import torch

from gcnii.errors import BundleError, InputError, did_you_mean
from gcnii.files import NOTHING, Document, Maybe, Only, check, document_key, read_document
from gcnii.graph.columns import SHAPE as COLUMN
from gcnii.graph.columns import Columns
from gcnii.targets.calibration import HALF
from gcnii.train.adam import Stack
from gcnii.train.plan import Plan

FORMAT = 1  # of run.json; a reader refuses a number above its own
NAMES = ([str], NOTHING)
SCORE = (float, NOTHING)
OPTION = (bool, float, str, NOTHING)
GRAPH = {
    "name": str,
    "fingerprint": str,
    "n": int,
    "d": int,
    "k": int,
    "multilabel": bool,
    "directed": bool,
    "classes": NAMES,
    "source": str,
    # A bundle from before there were these has none of them.
    "features": Maybe(NAMES),
    "columns": Maybe(([Only(COLUMN)], NOTHING)),
    "weighted": Maybe(bool),
    "loaded_with": Maybe({str: (*OPTION, [OPTION])}),
}
RUN = {
    "seed": int,
    "split": int,
    "test": SCORE,
    "val": SCORE,
    "val_loss": SCORE,
    "best_epoch": int,
    "epochs": int,
    "seconds": float,
    "threshold": Maybe(float),
    "temperature": Maybe(float),
    "weights": Maybe([float]),
}
SHAPE = {
    "graph": Only(GRAPH),
    "fingerprint": str,
    "model": str,
    "settings": dict,  # Plan knows what they must be
    "scaling": Maybe(dict),  # and Scaling what this must
    "metric": Maybe(str),  # a bundle from before there were several has none
    "runs": [Only(RUN)],
    "test_mean": SCORE,
    "test_std": SCORE,
    "together": Maybe(float),
    "positive": Maybe(str),
    "device": str,
    "interrupted": bool,
    "weights_sha256": str,
    "curves_sha256": Maybe(str),
    "card_sha256": Maybe(str),
    "versions": {str: str},
    "git": Maybe((str, NOTHING)),
    "command": Maybe((str, NOTHING)),
}


def read_record(folder: Path) -> Document:
    """The record of the bundle in this folder; BundleError if it is none, or was changed."""
    path = folder / "run.json"
    try:
        record = read_document(path, {}, "bundle's record", dict)
    except FileNotFoundError:
        raise BundleError(f"{_lacking(folder)}give the folder that `gcnii train` wrote") from None
    except OSError as error:
        raise BundleError(f"{path} cannot be read: {error}") from None
    except InputError as error:
        raise BundleError(str(error)) from None
    _refuse_format(folder, record.get("format"))
    with refusing(path):
        _refuse_changed(record)
    refuse_record(folder, record)
    return record


def refuse_record(folder: Path, record: Document) -> None:
    """Raise BundleError if this is not what the run.json of a bundle holds."""
    with refusing(folder / "run.json"):
        check(record, SHAPE)
        _refuse_contradictions(record)


def _lacking(folder: Path) -> str:
    """Why a folder is not a bundle, and which one beside it may be meant."""
    if folder.is_dir():
        return f"{folder} holds no run.json; "
    beside = {str(path.parent): path.parent for path in folder.parent.glob("*/run.json")}
    return f"{folder} does not exist; {did_you_mean(str(folder), beside)}"


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Within, what cannot be used is no bundle's record."""
    try:
        yield
    except (InputError, OverflowError, RecursionError) as error:
        raise BundleError(
            f"{path} is not a bundle's record: {error}; restore it, or train into another folder"
        ) from None


def _refuse_format(folder: Path, found: object) -> None:
    if type(found) is not int or not 1 <= found <= FORMAT:
        raise BundleError(
            f"{folder} has bundle format {found}, this gcnii reads up to {FORMAT}; update gcnii"
        )


def _refuse_changed(record: Document) -> None:
    """Settings and scores belong to their weights; a bundle from before there were seals has none.

    The seal covers the digest of the weights, and so the weights as well.
    """
    rest = {name: value for name, value in record.items() if name != "seal"}
    if "seal" in record and record["seal"] != document_key(rest):
        raise InputError("it was changed after the training (its seal does not fit)")


def _refuse_contradictions(record: Document) -> None:
    graph, runs = record["graph"], record["runs"]
    for name in ("n", "d", "k"):
        if graph[name] < 1:
            raise InputError(f"graph.{name} must be at least 1, got {graph[name]}")
    for names, count in (("classes", "k"), ("features", "d")):
        _refuse_names(graph.get(names), f"graph.{names}", graph[count])
    if graph.get("columns") is not None:
        width = sum(column.width for column in Columns.of_document(graph["columns"]).used)
        if width != graph["d"]:
            raise InputError(f"graph.columns make {width} features, but d is {graph['d']}")
    if record["fingerprint"] != graph["fingerprint"]:
        raise InputError("fingerprint and graph.fingerprint differ")
    if not runs or len({run["seed"] for run in runs}) < len(runs):
        raise InputError(f"runs must be one or more, of different seeds, got {len(runs)}")
    for run in runs:
        if min(run["seed"], run["split"]) < 0:
            raise InputError("seeds and splits of runs must be at least 0")
        if not all(0 <= (run[name] or 0) <= 1 for name in ("test", "val")):
            raise InputError("scores of runs must lie between 0 and 1")
        if not 0 <= run.get("threshold", HALF) < 1:
            raise InputError("thresholds of runs must lie between 0 and 1")
        if not 0 < run.get("temperature", 1.0) < inf:
            raise InputError("temperatures of runs must be above 0")
        weights = run.get("weights", [1.0] * graph["k"])
        if len(weights) != graph["k"] or not all(0 < one < inf for one in weights):
            raise InputError(f"weights of runs must be {graph['k']} numbers above 0")
    if not 0 < record.get("together", 1.0) < inf:
        raise InputError("together must be above 0")
    known = graph["classes"] or [*map(str, range(graph["k"]))]
    if (positive := record.get("positive", known[0])) not in known:
        raise InputError(f"positive must be one of graph.classes, got {positive!r}")
    chosen = record["settings"].get("label_threshold") == "validation"
    if any(("threshold" in run) != chosen for run in runs):
        raise InputError(f"runs must {'' if chosen else 'not '}have a threshold, by the settings")


def _refuse_names(names: list[str] | None, what: str, count: int) -> None:
    if names is not None and (len(names) != count or len(set(names)) < count):
        raise InputError(f"{what} must be {count} different names, got {len(names)}")


def refuse_misfit(weights: Stack, plan: Plan, d: int, k: int, runs: int) -> None:
    """Raise InputError if these are not the weights of so many runs of the plan's model.

    A network with a layer for each tensor, and two more, has too many weights already if its layers
    have any; so no larger one is built to find out, and on the meta device it takes no memory.
    """
    most = len(weights) + 2
    settings = {**plan.model_settings}
    if "layers" in settings:
        settings["layers"] = min(settings["layers"], most)
    try:
        with torch.device("meta"):
            model = replace(plan, model_settings=settings).build(d, k)
    except (RuntimeError, TypeError, ValueError, OverflowError):  # sizes beyond any tensor's
        raise InputError("no network can have its settings") from None
    wanted = {name: ((runs, *one.shape), one.dtype) for name, one in model.state_dict().items()}
    if {name: (tuple(one.shape), one.dtype) for name, one in weights.items()} != wanted:
        raise InputError("the weights do not fit its settings and runs")
