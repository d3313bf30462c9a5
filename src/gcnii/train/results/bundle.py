"""Opening a bundle: what `Result.save` wrote is checked before any of it is used."""

from __future__ import annotations

import csv
import glob
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from math import nan
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file

from gcnii.errors import BundleError, InputError
from gcnii.files import Document, file_sha256, refuse_special, user_path
from gcnii.targets.objective import RANKINGS
from gcnii.train.adam import Stack
from gcnii.train.plan import Plan, make_plan
from gcnii.train.results.record import read_record, refuse_misfit, refusing
from gcnii.train.results.result import Origin, Result
from gcnii.train.results.run import Run
from gcnii.train.results.saving import CURVE, CURVES, WEIGHTS, newer, settle
from gcnii.train.scaling import Scaling

MADE = ("versions", "git", "command")


def open_bundle(folder: Path | str, *, curves: bool = False) -> Result:
    """The result that `save` wrote; neither the data nor the device of its training is needed.

    Parameters
    ----------
    folder : path
        A bundle; or the beginning of its name, if one bundle alone has it.
    curves : bool
        Whether its runs have their curves, too, which predictions do not need.

    Returns
    -------
    Result

    Raises
    ------
    BundleError
        If the folder holds no bundle, or one that was changed after its training.

    Examples
    --------
    >>> import gcnii
    >>> graph = gcnii.load("csbm", n=60)
    >>> folder = gcnii.fit(graph, layers=2, epochs=3).save("runs/small")
    >>> gcnii.open_bundle(folder).predict(graph).shape
    (60,)
    """
    with _refusing_special():
        folder = _bundle_folder(user_path(folder))
    record = read_record(folder)
    parts = open_record(folder, record)
    with suppress(OSError), _refusing_special():  # the folder may be read-only
        settle(folder, record)
    result = Result(weights=_open_weights(folder, record), **parts)
    sizes = (result.graph.d, result.graph.k, len(result.runs))
    with refusing(folder / "run.json"):
        refuse_misfit(result.weights, result.plan, *sizes)
    return _with_curves(result, folder, record) if curves else result


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


def open_record(folder: Path, record: Document) -> Document:
    """The parts of a Result, but its weights, from the record of the bundle in this folder."""
    with refusing(folder / "run.json"):
        plan = make_plan(record["model"], record["settings"])
        origin = Origin.of_document(record["graph"])
        return {
            "graph": origin,
            "plan": plan,
            "scaling": _open_scaling(record.get("scaling"), plan.recipe.scale, origin.d),
            "runs": tuple(_open_run(run) for run in record["runs"]),
            "together": record.get("together"),
            "positive": _open_positive(record, origin, plan),
            "device": record["device"],
            "interrupted": record["interrupted"],
            "made": {name: record[name] for name in MADE if name in record},
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


def _open_positive(record: Document, origin: Origin, plan: Plan) -> int | None:
    if "positive" in record:
        return origin.names.index(record["positive"])
    # Before it could be chosen, a score of two classes was that of the second.
    old = "positive" not in record["settings"] and plan.recipe.scored_by in RANKINGS
    return 1 if old and origin.k == 2 and not origin.multilabel else None


def _open_run(summary: Document) -> Run:
    fields: Document = {name: nan if one is None else one for name, one in summary.items()}
    return Run(**fields)


def _with_curves(result: Result, folder: Path, record: Document) -> Result:
    """The result with what curves.csv has of each of its runs."""
    content = _read(folder, CURVES, record.get("curves_sha256"))
    found: dict[int, list[tuple[float, float, float]]] = {}
    try:
        for row in csv.DictReader(content.decode().splitlines()):
            train_loss, val_loss, val = (float(row[name]) for name in CURVE)
            found.setdefault(int(row["seed"]), []).append((train_loss, val_loss, val))
    except (ValueError, KeyError, TypeError):
        raise BundleError(f"{folder / CURVES} does not hold {', '.join(CURVE)} by epoch") from None
    runs = (replace(run, curve=found.get(run.seed, [])) for run in result.runs)
    return replace(result, runs=tuple(runs))


def _read(folder: Path, name: str, digest: str | None) -> bytes:
    """A file of the bundle: the one with this digest, if one is known."""
    for path in (*newer(folder, name), folder / name):
        with suppress(FileNotFoundError), _refusing_special():
            refuse_special(path)
            content = path.read_bytes()
            if digest in (None, sha256(content).hexdigest()):
                return content
    raise BundleError(
        f"{folder / name} is not the file that run.json was written with; train again or restore it"
    )


@contextmanager
def _refusing_special() -> Iterator[None]:
    """Within, what is not a regular file, or not a path, makes the folder no bundle."""
    try:
        yield
    except InputError as error:
        raise BundleError(str(error)) from None


def _open_weights(folder: Path, record: Document) -> Stack:
    path = folder / WEIGHTS
    try:
        for one in (*newer(folder, WEIGHTS), path):
            with _refusing_special():
                found = file_sha256(one)
            if found == record["weights_sha256"]:
                return load_file(one)
    except (OSError, SafetensorError) as error:
        raise BundleError(f"{path} cannot be read: {error}") from None
    raise BundleError(
        f"{path} is not the file that run.json was written with; train again or restore it"
    )
