"""A bundle: run.json, card.md and what was trained; whole or not at all, no pickle.

The bundle of a model has model.safetensors and curves.csv beside them.  That of an ensemble has a
folder `members`, with one for each: a member of networks is a bundle of its own, any other is one
JSON file.

run.json is the record.  It is written last and decides which of the other files count: it holds
their digests, and a seal of its own.  The folder is claimed while a training runs, and nothing in
it that somebody else made is lost.
"""

from __future__ import annotations

import csv
import glob
import json
import os
import platform
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from math import inf, isclose, nan
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from gcnii import __version__
from gcnii.errors import BundleError, InputError, did_you_mean, some_of
from gcnii.files import (
    BUNDLE,
    CARD,
    CHECKPOINT,
    CURVES,
    NOTHING,
    WEIGHTS,
    Document,
    Maybe,
    Only,
    atomic_write,
    check,
    claimed,
    document_key,
    file_sha256,
    naming,
    one_name,
    read_document,
    user_path,
    write_document,
)
from gcnii.graph import Graph
from gcnii.graph.columns import COLUMN, Columns
from gcnii.results.card import card
from gcnii.results.ensemble import (
    BESIDE,
    FITTED,
    Blend,
    Ensemble,
    Fitted,
    Member,
    Networks,
    Smoothed,
)
from gcnii.results.provenance import git_state
from gcnii.results.result import Result
from gcnii.results.trained import Origin, Trained
from gcnii.targets import target_of
from gcnii.targets.target import HALF
from gcnii.train.checkpoint import Checkpoint, before, remove, training_identity, write_tensors
from gcnii.train.clusters import cutter
from gcnii.train.features import WIDTHS, Scaling
from gcnii.train.plan import AUTO, Plan, make_plan
from gcnii.train.replicas import Stack
from gcnii.train.stopping import Run

FORMAT, COMBINED = 1, 2  # of run.json: of one model, and of an ensemble
MEMBERS, MEMBER, ASKED = "members", "member.json", "asked.json"
CHECKPOINTS = (CHECKPOINT, before(Path(CHECKPOINT)).name)
DIGESTS = {WEIGHTS: "weights_sha256", CURVES: "curves_sha256", CARD: "card_sha256"}
CURVE = ("train_loss", "val_loss", "val")
MADE = ("versions", "git", "command")
MOST_FOLDS = 100
PATIENCE = 60.0  # seconds to wait for another `save` into the same folder

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
    # bundles of older versions lack these
    "features": Maybe(NAMES),
    "columns": Maybe(([Only(COLUMN)], NOTHING)),
    "weighted": Maybe(bool),
    "targets": Maybe([str]),
    "edge_type_names": Maybe(NAMES),
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
    "units": Maybe([[float]]),
}
# The record of one model, and that of an ensemble.
EITHER = {
    "graph": Only(GRAPH),
    "fingerprint": str,
    "model": str,
    "settings": dict,  # checked by Plan, where it is that of one
    "runs": [Only(RUN)],
    "test_mean": SCORE,
    "test_std": SCORE,
    "positive": Maybe(str),
    "device": str,
    "interrupted": bool,
    "versions": {str: str},
    "git": Maybe((str, NOTHING)),
    "command": Maybe((str, NOTHING)),
}
SHAPE = EITHER | {
    "scaling": Maybe(dict),  # checked by Scaling
    "metric": Maybe(str),  # older bundles lack it
    "together": Maybe(float),
    "weights_sha256": str,
    "curves_sha256": Maybe(str),
    "card_sha256": Maybe(str),
}
ENSEMBLE = EITHER | {
    "recipe": dict,  # checked by Recipe
    "metric": str,
    "folds": int,
    "leaderboard": [dict],
    "left_out": [str],
    "departed": [dict],
    "losses": [SCORE],
    "beside": Maybe([Only(dict.fromkeys(BESIDE, float))]),
    "members": [Only({"name": str, "kind": {Networks.kind, *FITTED}, "sha256": str})],
    "blends": [Only({"rows": [int], "weights": [float]})],
    "scores": Maybe(str),  # when they were measured
    "card_sha256": str,
}
MEMBER_SHAPE = {"kind": set(FITTED), "runs": [Only(RUN)], "each": [dict], "base": Maybe(str)}


def read_record(folder: Path) -> Document:
    """The record of the bundle in this folder; BundleError if there is none, or it was changed."""
    path = folder / "run.json"
    try:
        record = read_document(path, {}, "bundle's record", dict)
    except FileNotFoundError:
        raise BundleError(f"{_lacking(folder)}give a folder written by `gcnii train`") from None
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
    one = record["format"] == FORMAT
    with refusing(folder / "run.json"):
        check(record, SHAPE if one else ENSEMBLE)
        _refuse_graph_and_runs(record)
        (_refuse_thresholds if one else _refuse_members)(record)


def _lacking(folder: Path) -> str:
    """Why a folder is not a bundle, and which one beside it may be meant."""
    if folder.is_dir():
        return f"{folder} holds no run.json; "
    beside = {str(path.parent): path.parent for path in folder.parent.glob("*/run.json")}
    return f"there is no folder {str(folder)!r}; {did_you_mean(str(folder), beside)}"


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Raise BundleError where a record cannot be used."""
    try:
        yield
    except (InputError, OverflowError, RecursionError) as error:
        raise BundleError(
            f"{path} is not a bundle's record: {error}; restore it, or train into another folder"
        ) from None


def _refuse_format(folder: Path, found: object) -> None:
    if type(found) is not int or not 1 <= found <= COMBINED:
        raise BundleError(
            f"{folder} has bundle format {found}, this gcnii reads up to {COMBINED}; update gcnii"
        )


def _refuse_changed(record: Document) -> None:
    """Settings and scores belong to their weights; a bundle from before there were seals has none.

    The seal covers the digest of the weights, and so the weights as well.
    """
    rest = {name: value for name, value in record.items() if name != "seal"}
    if "seal" in record and record["seal"] != document_key(rest):
        raise InputError("it was changed after the training (its seal does not fit)")


def _refuse_thresholds(record: Document) -> None:
    settings = record["settings"]
    chosen = settings.get("label_threshold") == "validation" or bool(settings.get("cost"))
    if any(("threshold" in run) != chosen for run in record["runs"]):
        raise InputError(f"runs must {'' if chosen else 'not '}have a threshold, by the settings")


def _refuse_members(record: Document) -> None:
    names = [one["name"] for one in record["members"]]
    if not names or len(set(names)) < len(names) or any(one_name(one) != one for one in names):
        raise InputError("members must be one or more, of different names that folders can have")
    if len(record["blends"]) != len(record["runs"]):
        raise InputError(f"there are {len(record['runs'])} runs of {len(record['blends'])} blends")
    if len(record["losses"]) != len(names):
        raise InputError(f"there are {len(record['losses'])} losses of {len(names)} members")
    beside = record.get("beside", [])
    if beside and len(beside) != len(names) + 1:
        raise InputError(
            f"beside must have a row for each member and the ensemble, {len(names) + 1}"
        )
    for blend in record["blends"]:
        weights = blend["weights"]
        if len(weights) != len(names) or min(weights) < 0 or not isclose(sum(weights), 1):
            raise InputError("weights must be at least 0, one for each member, and add up to 1")
        if not blend["rows"] or min(blend["rows"]) < 0:
            raise InputError("a blend needs one run or more")
    if not 0 <= record["folds"] <= MOST_FOLDS or record["folds"] == 1:
        raise InputError(f"folds must be 0 or 2 to {MOST_FOLDS}, got {record['folds']}")


def _refuse_graph_and_runs(record: Document) -> None:
    """Raise InputError if what a record says of its graph and runs cannot be."""
    graph, runs = record["graph"], record["runs"]
    for name in ("n", "d", "k"):
        if graph[name] < 1:
            raise InputError(f"graph.{name} must be at least 1, got {graph[name]}")
    targets = graph.get("targets", ())
    if targets and (graph["classes"] is not None or graph["multilabel"]):
        raise InputError("graph must have classes or targets, not both")
    for names, count in (("classes", "k"), ("features", "d"), ("targets", "k")):
        _refuse_names(graph.get(names), f"graph.{names}", graph[count])
    if (types := graph.get("edge_type_names")) is not None:
        _refuse_names(types, "graph.edge_type_names", max(len(types), 2))
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
        if not targets and not all(0 <= (run[name] or 0) <= 1 for name in ("test", "val")):
            raise InputError("scores of runs must lie between 0 and 1")
        _refuse_units(run, len(targets), one=record["format"] == FORMAT)
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


def _refuse_units(run: Document, q: int, *, one: bool) -> None:
    """Raise InputError unless a run of one model has the units of the q numbers, if there are."""
    units = run.get("units")
    if (units is not None) is not (one and q > 0):
        raise InputError("runs of one model must have units where it predicts numbers, others not")
    if units is not None and ([len(each) for each in units] != [q, q] or min(units[1]) <= 0):
        raise InputError(f"units of runs must be {q} means and {q} deviations above 0")


def _refuse_names(names: list[str] | None, what: str, count: int) -> None:
    if names is not None and (len(names) != count or len(set(names)) < count):
        raise InputError(f"{what} must be {count} different names, got {len(names)}")


def refuse_misfit(weights: Stack, plan: Plan, d: int, k: int, runs: int) -> None:
    """Raise InputError if these are not the weights of `runs` runs of the plan's model.

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


def save(result: Trained, folder: Path, *, overwrite: bool = False, command: str = "") -> Path:
    """`Trained.save`; two that save into one folder do so one after the other."""
    with claimed(folder, PATIENCE):
        return save_claimed(result, folder, overwrite=overwrite, command=command)


def save_claimed(
    result: Trained, folder: Path, *, overwrite: bool = False, command: str = ""
) -> Path:
    """`save`, once the folder is claimed."""
    if isinstance(result, Ensemble):
        asked = identity_of(result.origin.fingerprint, result.settings)
        _refuse_other(folder, asked, overwrite=overwrite)
    else:
        assert isinstance(result, Result)
        _refuse_several(result, folder)
        about = (result.origin.fingerprint, result.plan, result.runs)
        refuse_bundle(folder, *about, interrupted=result.interrupted, overwrite=overwrite)
    if result.made is None:
        result = replace(result, made=_provenance(result, command))
    mark = f"{os.getpid()}.{secrets.token_hex(4)}"
    try:
        record = _write(result, folder, mark)
    except (OSError, InputError):  # such as a full disk, before run.json was in its place
        for name in DIGESTS:
            _fresh(folder, name, mark).unlink(missing_ok=True)
        raise
    settle(folder, record)
    _clean(folder)
    if isinstance(result, Ensemble):
        _remove_others(result, folder)
    else:  # or an error: what cannot be opened is not saved
        open_result(folder, read_record(folder), curves=True)
    return folder


def _refuse_several(result: Result, folder: Path) -> None:
    if result.others:
        raise InputError(
            f"a bundle holds one setting, this result {len(result.plans)}; save one of them: "
            f"result.at({result.runs[result.best].setting}).save({str(folder)!r}), or another"
        )


def _write(result: Trained, folder: Path, mark: str) -> Document:
    """Write the files beside those of the old bundle; run.json comes last and decides."""
    record = _record(result)
    if isinstance(result, Ensemble):
        write_document(
            folder / MEMBERS / ASKED, identity_of(record["fingerprint"], result.settings)
        )
        record["members"] = [save_member(member, folder) for member in result.members]
    for name, write in _writers(result).items():
        with atomic_write(_fresh(folder, name, mark)) as temporary, naming(folder / name):
            write(temporary)
            record[DIGESTS[name]] = file_sha256(temporary)
    # As it comes back from the file: what cannot be opened must not replace what can.
    again = json.loads(json.dumps(record), parse_constant=lambda word: None)
    refuse_record(folder, again)
    (open_ensemble if isinstance(result, Ensemble) else open_record)(folder, again)
    # From here on the new bundle holds, wherever its other files are: see `settle`.
    write_document(folder / "run.json", record | {"seal": document_key(record)})
    return record


def _writers(result: Trained) -> dict[str, Callable[[Path], object]]:
    """What writes each file that the record has the digest of."""
    written: dict[str, Callable[[Path], object]] = {}
    if isinstance(result, Result):
        weights = {name: weight.contiguous() for name, weight in result.weights.items()}
        written[WEIGHTS] = lambda path: write_tensors(weights, path)
        written[CURVES] = lambda path: _write_curves(result, path)
    return written | {CARD: lambda path: path.write_text(card(result), "utf-8")}


def _record(result: Trained) -> Document:
    """What run.json holds, but for the members and the digests of the files."""
    about: Document = {"graph": result.origin.document(), **(result.made or {})}
    if isinstance(result, Ensemble):
        about["recipe"] = json.loads(json.dumps(asdict(result.recipe)))
        about["blends"] = [asdict(blend) for blend in result.blends]
        about |= {"departed": list(result.departed), "losses": list(result.losses)}
        about |= {"beside": list(result.beside)} if result.beside else {}
        return {"format": COMBINED, **result.summary(), **about}
    assert isinstance(result, Result)
    if result.scaling:
        about["scaling"] = result.scaling.document()
    if result.together is not None:
        about["together"] = result.together
    return {"format": FORMAT, **result.summary(), **about}


def _write_curves(result: Result, path: Path) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("seed", "epoch", *CURVE))
        for run in result.runs:
            rows.writerows((run.seed, epoch, *point) for epoch, point in enumerate(run.curve))


def _provenance(result: Trained, command: str) -> Document:
    """What run.json says of how its bundle was made."""
    python, torch_version = platform.python_version(), str(torch.__version__)
    versions = {"gcnii": __version__, "torch": torch_version, "python": python}
    versions |= {"cutter": cutter()} if result.recipe.batches == "clusters" else {}
    return {"versions": versions, "git": git_state(Path.cwd()), "command": command or None}


def save_member(member: Member, folder: Path) -> Document:
    """Write a member to its folder, unless it is there already; what run.json says of it."""
    place = folder / MEMBERS / member.name
    if isinstance(member, Networks):
        path = place / "run.json"
        save_claimed(member.result, place, overwrite=True)
        for name in CHECKPOINTS:  # of these runs
            (place / name).unlink(missing_ok=True)
    else:
        assert isinstance(member, Fitted)
        path = write_document(place / MEMBER, member.document())
    return {"name": member.name, "kind": member.kind, "sha256": file_sha256(path)}


def _remove_others(ensemble: Ensemble, folder: Path) -> None:
    """What is not part of the bundle: files of a model, and members that left before the end."""
    for name in (WEIGHTS, CURVES, *CHECKPOINTS):
        (folder / name).unlink(missing_ok=True)
    if ensemble.interrupted:  # it is gone on from what there is
        return
    names = {member.name for member in ensemble.members}
    for path in (folder / MEMBERS).iterdir():
        if path.is_dir() and path.name not in names:
            shutil.rmtree(path, ignore_errors=True)


def refuse_bundle(
    folder: Path,
    fingerprint: str,
    plan: Plan,
    runs: Sequence[Run],
    *,
    interrupted: bool = False,
    overwrite: bool = False,
) -> None:
    """Raise InputError if a bundle of these runs may not be saved to the folder: see `Result.save`.

    The weights are not read: damage to them must not prevent training them again.
    """
    if not (folder / "run.json").exists():
        if strangers := [name for name in DIGESTS if (folder / name).exists()]:
            raise InputError(
                f"{folder} holds {some_of(strangers)} without the run.json of a bundle; choose "
                "another folder, or move that away"
            )
        return
    record = read_record(folder)
    if record["format"] == FORMAT:
        held = Result(weights={}, **open_record(folder, record))
        why = _why_kept(held, plan.identity(fingerprint), runs, interrupted)
    else:
        why = "the bundle of an ensemble"
    if not overwrite:
        _refuse_kept(folder, why)
    settle(folder, record)


def _refuse_kept(folder: Path, why: str) -> None:
    if why:
        raise InputError(
            f"{folder} holds {why}; choose another folder, or overwrite it "
            "(--overwrite; in Python, overwrite=True)"
        )


def _why_kept(held: Result, training: Document, runs: Sequence[Run], interrupted: bool) -> str:
    """Why a bundle must not be replaced by one of these runs; empty where it may be."""
    if held.plan.identity(held.origin.fingerprint) != training:
        return f"the bundle of another training run ({held!r})"
    new = {(run.seed, run.split) for run in runs}
    if lost := [run for run in held.runs if (run.seed, run.split) not in new]:
        first, count = lost[0], "1 run" if len(lost) == 1 else f"{len(lost)} runs"
        which = f"{'' if len(lost) == 1 else 'first '}seed {first.seed} on split {first.split}"
        return f"{count} that the new bundle would lack ({which})"
    if interrupted and not held.interrupted:
        return "the finished bundle of this training run, and the new one was interrupted"
    return ""


def _fresh(folder: Path, name: str, mark: str) -> Path:
    """Where `save` writes a file before the run.json that makes it the bundle's."""
    return folder / f".{name}.{mark}.new"


def newer(folder: Path, name: str) -> list[Path]:
    """The files that a killed `save` may have left for this one; version 1.0 had no mark."""
    return sorted(folder.glob(f".{name}*.new"))


def _clean(folder: Path) -> None:
    """Remove what a `save` that was killed has left; nobody else saves here now."""
    names = "|".join(map(re.escape, BUNDLE))
    for path in folder.iterdir():
        if re.fullmatch(rf"\.\.?({names})\..+", path.name):
            path.unlink(missing_ok=True)


def settle(folder: Path, record: Document) -> None:
    """Put the files that run.json names into their places, as a killed `save` could not."""
    for name, digest in DIGESTS.items():
        for one in newer(folder, name):
            with suppress(FileNotFoundError):  # another process may do the same
                if file_sha256(one) == record.get(digest):
                    one.replace(folder / name)


def open_bundle(folder: Path | str, *, curves: bool = False) -> Trained:
    """What `save` wrote; neither the data nor the device of its training is needed.

    Parameters
    ----------
    folder : path
        A bundle; or the beginning of its name, if one bundle alone has it.
    curves : bool
        Whether its runs have their curves, too, which predictions do not need.

    Returns
    -------
    Result or Ensemble

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
    with suppress(OSError), _refusing_special():  # the folder may be read-only
        settle(folder, record)
    opened = open_result if record["format"] == FORMAT else open_ensemble
    return opened(folder, record, curves=curves)


def open_result(folder: Path, record: Document, *, curves: bool = False) -> Result:
    """The result of one model, whose record has been read and checked."""
    parts = open_record(folder, record)
    result = Result(weights=_open_weights(folder, record), **parts)
    sizes = (result.origin.d, result.origin.k, len(result.runs))
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
        raise BundleError(
            f"{len(found)} bundles have names that begin like this; give one of {names}"
        )
    return found[0] if found else folder


def open_record(folder: Path, record: Document) -> Document:
    """The parts of a Result, but its weights, from the record of the bundle in this folder."""
    with refusing(folder / "run.json"):
        plan, parts = make_plan(record["model"], record["settings"]), _parts(record)
        if names := parts["origin"].edge_type_names:
            plan = plan.over(len(names))
        target = target_of(parts["origin"])
        # Before it could be chosen, a score of two classes was that of the second.
        ranked = target.score(plan.recipe.scored_by).ranks
        if "positive" not in (*record, *record["settings"]) and ranked and target.binary:
            parts["positive"] = 1
        scaling = _open_scaling(record.get("scaling"), plan, parts["origin"].d)
        return parts | {"plan": plan, "scaling": scaling, "together": record.get("together")}


def _parts(record: Document) -> Document:
    """Those that a Result and an Ensemble have in common."""
    origin = Origin.of_document(record["graph"])
    names = target_of(origin).names
    return {
        "origin": origin,
        "runs": tuple(map(_open_run, record["runs"])),
        "positive": names.index(record["positive"]) if "positive" in record else None,
        "device": record["device"],
        "interrupted": record["interrupted"],
        "made": {name: record[name] for name in MADE if name in record},
    }


def _open_scaling(document: Document | None, plan: Plan, d: int) -> Scaling | None:
    scale = plan.recipe.scale
    if scale == plan.structure == "none":
        return None
    if document is None:
        raise InputError("scaling is missing")
    scaling = Scaling.of(document, d, WIDTHS[plan.structure])
    if scale not in ("auto", scaling.kind):
        raise InputError(f"scaling.kind must be {scale}, as in the settings, got {scaling.kind}")
    return scaling


def _open_run(summary: Document) -> Run:
    """The run of what `summary` gave."""
    fields: Document = {name: nan if one is None else one for name, one in summary.items()}
    return Run(**fields)


def _with_curves(result: Result, folder: Path, record: Document) -> Result:
    """The result with what curves.csv has of each of its runs."""
    path = _file(folder, CURVES, record.get("curves_sha256"))
    found: dict[int, list[tuple[float, float, float]]] = {}
    try:
        for row in csv.DictReader(path.read_text("utf-8").splitlines()):
            train_loss, val_loss, val = (float(row[name]) for name in CURVE)
            found.setdefault(int(row["seed"]), []).append((train_loss, val_loss, val))
    except (ValueError, KeyError, TypeError):
        raise BundleError(f"{folder / CURVES} does not hold {', '.join(CURVE)} by epoch") from None
    runs = (replace(run, curve=found.get(run.seed, [])) for run in result.runs)
    return replace(result, runs=tuple(runs))


def _file(folder: Path, name: str, digest: str | None) -> Path:
    """A file of the bundle: the one with this digest, if one is known."""
    for path in (*newer(folder, name), folder / name):
        with suppress(FileNotFoundError), _refusing_special():
            if digest in (None, file_sha256(path)):
                return path
    raise _changed(folder / name)


def _changed(path: Path) -> BundleError:
    return BundleError(
        f"{path} is not the file that run.json was written with; train again or restore it"
    )


@contextmanager
def _refusing_special() -> Iterator[None]:
    """Raise BundleError for what is not a regular file, or not a path."""
    try:
        yield
    except InputError as error:
        raise BundleError(str(error)) from None


def _open_weights(folder: Path, record: Document) -> Stack:
    try:
        if not newer(folder, WEIGHTS):
            (folder / WEIGHTS).stat()  # or the error says that it is missing
        return load_file(_file(folder, WEIGHTS, record["weights_sha256"]))
    except (OSError, SafetensorError) as error:
        raise BundleError(f"{folder / WEIGHTS} cannot be read: {error}") from None


def open_ensemble(folder: Path, record: Document, *, curves: bool = False) -> Ensemble:
    """The ensemble whose record has been read and checked."""
    with refusing(folder / "run.json"):
        parts, recipe = _parts(record), make_plan("mlp", record["recipe"]).recipe
    members: dict[str, Member] = {}
    for one in record["members"]:
        members[one["name"]] = _open_member(folder, one, members, curves=curves)
    return Ensemble(
        **parts,
        members=tuple(members.values()),
        blends=tuple(Blend(tuple(one["rows"]), tuple(one["weights"])) for one in record["blends"]),
        shared=recipe,
        folds=record["folds"],
        left_out=tuple(record["left_out"]),
        departed=tuple(record["departed"]),
        losses=tuple(nan if one is None else one for one in record["losses"]),
        beside=tuple(record.get("beside", ())),
        settings=record["settings"],
    )


def _open_member(
    folder: Path, listed: Document, earlier: Mapping[str, Member], *, curves: bool
) -> Member:
    """A member of the bundle in this folder; it may build on those before it."""
    place = folder / MEMBERS / listed["name"]
    path = place / ("run.json" if listed["kind"] == Networks.kind else MEMBER)
    try:
        same = file_sha256(path) == listed["sha256"]
    except (OSError, InputError):
        same = False
    if not same:
        raise _changed(path)
    found = read_member(place, earlier, curves=curves)
    if found is None:
        raise BundleError(f"{place} holds no member; train again or restore it")
    return found


def read_member(
    place: Path, earlier: Mapping[str, Member], *, curves: bool = False
) -> Member | None:
    """The member in a folder; None if there is none."""
    if (place / "run.json").exists():
        record = read_record(place)
        if record["format"] != COMBINED:
            return Networks(place.name, open_result(place, record, curves=curves))
    if not (place / MEMBER).exists():
        return None
    with refusing(place / MEMBER):
        document = read_document(place / MEMBER, MEMBER_SHAPE, "member of an ensemble", dict)
        runs, each = tuple(map(_open_run, document["runs"])), document["each"]
        if not runs or len(each) != len(runs):
            raise InputError(f"there are {len(runs)} runs and {len(each)} of what answers them")
        kind = FITTED[document["kind"]]
        own: Document = {"runs": runs, "each": tuple(map(kind.fits.of, each))}
        if kind is not Smoothed:
            return kind(place.name, **own)
        if document.get("base") not in earlier:
            raise InputError(f"base must be a member, got {document.get('base')!r}")
        return Smoothed(place.name, **own, base=earlier[document["base"]])


def run_folder(graph: Graph, plan: Plan) -> Path:
    """runs/GRAPH-MODEL-KEY: another graph of this name, or other settings, have another folder."""
    key = document_key(plan.identity(graph.fingerprint))[:8]
    return Path("runs") / f"{graph.name}-{plan.model}-{key}"


@contextmanager
def claimed_folder(
    folder: Path, graph: Graph, plan: Plan, runs: Sequence[Run], overwrite: bool = False
) -> Iterator[None]:
    """Claim the folder for this training; InputError, before any work, if that is not possible."""
    with claimed(folder):
        _refuse_foreign(folder, {*BUNDLE, *CHECKPOINTS}, "which gcnii did not write")
        refuse_bundle(folder, graph.fingerprint, plan, runs, overwrite=overwrite)
        saved = Checkpoint.load(folder / CHECKPOINT, torch.device("cpu"))
        if saved and not overwrite and not saved.is_of(training_identity(graph, [plan], runs)):
            raise InputError(
                f"{folder} holds the checkpoint of another training run; choose another folder "
                "(--out), or give up that run (--overwrite)"
            )
        yield


def _refuse_foreign(folder: Path, ours: Iterable[str], what: str) -> None:
    """Raise InputError for other files than ours, and say what they are."""
    entries = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    # What a killed write leaves behind is hidden, and so is what systems put into any folder.
    if foreign := sorted(name for name in entries - {*ours} if not name.startswith(".")):
        raise InputError(
            f"{folder} holds {some_of(foreign)}, {what}; choose another folder (--out)"
        )


def save_run(result: Result, folder: Path, *, overwrite: bool = False, command: str = "") -> bool:
    """Save a bundle to its claimed folder, and remove the checkpoint of a training that is done.

    False if the training was interrupted and the bundle there is worth more.
    """
    checkpoint = folder / CHECKPOINT
    try:
        replace = overwrite and not result.interrupted
        save_claimed(result, folder, overwrite=replace, command=command)
    except InputError as error:
        if not result.interrupted:
            raise InputError(f"{error}{_saved_elsewhere(result, folder, command)}") from None
        return False
    except OSError as error:
        if checkpoint.exists():
            error.strerror = f"{error.strerror}; run the same command again to resume"
        raise
    if not result.interrupted:
        remove(checkpoint)
    return True


def _saved_elsewhere(result: Result, folder: Path, command: str) -> str:
    """Save to a spare folder, because the folder was taken meanwhile; words that say where."""
    spare = folder.with_name(f"{folder.name}-{secrets.token_hex(4)}")
    try:
        result.save(spare, command=command)
    except (InputError, OSError):
        return ""
    return f"; this one is saved as {spare}"


def identity_of(fingerprint: str, settings: Document) -> Document:
    """What decides an ensemble: the graph, and what was asked for."""
    return {"graph": fingerprint, "model": AUTO, "settings": settings}


def ensemble_folder(name: str, fingerprint: str, settings: Document) -> Path:
    """runs/GRAPH-auto-KEY: another graph of this name, or other settings, have another folder."""
    return Path("runs") / f"{name}-{AUTO}-{document_key(identity_of(fingerprint, settings))[:8]}"


@contextmanager
def claimed_ensemble(
    folder: Path, fingerprint: str, settings: Document, *, overwrite: bool = False
) -> Iterator[None]:
    """Claim the folder for this ensemble; InputError, before any work, if that is not possible.

    Members of this ensemble that it holds stay, to go on from; those of another are given up with
    `overwrite`.
    """
    identity = identity_of(fingerprint, settings)
    with claimed(folder):
        ours = {"run.json", CARD, MEMBERS}
        ours |= {WEIGHTS, CURVES, *CHECKPOINTS} if overwrite else set()
        _refuse_foreign(folder, ours, "which are not of an ensemble")
        _refuse_other(folder, identity, overwrite=overwrite)
        if _asked_for(folder) != identity:
            shutil.rmtree(folder / MEMBERS, ignore_errors=True)
            write_document(folder / MEMBERS / ASKED, identity)
        yield


def _asked_for(folder: Path) -> Document | None:
    """What decides the ensemble whose members the folder holds; None if it holds none."""
    path = folder / MEMBERS / ASKED
    return read_document(path, {}, "ensemble's settings", dict) if path.exists() else None


def _refuse_other(folder: Path, identity: Document, *, overwrite: bool) -> None:
    """Raise InputError if what the folder holds is worth more than what will replace it."""
    if overwrite:
        return
    why = ""
    if (folder / "run.json").exists():
        held = read_record(folder)
        if held["format"] != COMBINED:
            why = "the bundle of another training run"
        elif identity_of(held["fingerprint"], held["settings"]) != identity:
            why = "the bundle of another ensemble"
    elif _asked_for(folder) not in (None, identity):
        why = "members of another ensemble"
    _refuse_kept(folder, why)


def finished_ensemble(folder: Path, fingerprint: str, settings: Document) -> Ensemble | None:
    """This ensemble, if the folder holds a whole bundle of it."""
    if not (folder / "run.json").exists():
        return None
    record = read_record(folder)
    identity = identity_of(fingerprint, settings)
    if record["format"] != COMBINED or record["interrupted"]:
        return None
    if identity_of(record["fingerprint"], record["settings"]) != identity:
        return None
    try:
        return open_ensemble(folder, record)
    except BundleError:  # what is left of it is gone on from
        return None
