"""Saving a bundle: safetensors, CSV and JSON, no pickle; whole, or not at all."""

from __future__ import annotations

import csv
import hashlib
import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from gcnii import __version__
from gcnii.errors import InputError, some_of
from gcnii.files import Document, atomic_write, document_key, write_document
from gcnii.nn.settings import Settings
from gcnii.train.batches import cutter
from gcnii.train.checkpoint import write_tensors
from gcnii.train.plan import Plan
from gcnii.train.recipe import in_force
from gcnii.train.results.git import git_state
from gcnii.train.results.record import FORMAT, read_record
from gcnii.train.results.result import Result
from gcnii.train.results.run import Run

WEIGHTS, CURVES, CARD = "model.safetensors", "curves.csv", "card.md"
DIGESTS = {WEIGHTS: "weights_sha256", CURVES: "curves_sha256", CARD: "card_sha256"}
CURVE = ("train_loss", "val_loss", "val")


def save(result: Result, folder: Path, *, overwrite: bool = False, command: str = "") -> Path:
    """`Result.save`."""
    if result.others:
        raise InputError(
            f"a bundle holds one setting, this result {len(result.plans)}; save one of them: "
            f"result.at({result.runs[result.best].setting}).save({str(folder)!r}), or another"
        )
    about = (result.graph.fingerprint, result.plan, result.runs)
    refuse_replacing(folder, *about, interrupted=result.interrupted, overwrite=overwrite)
    if result.made is None:
        result = replace(result, made=_provenance(result.plan, command))
    try:
        record = _write(result, folder)
    except OSError:  # a full disk, before run.json was in its place
        for name in DIGESTS:
            fresh(folder, name).unlink(missing_ok=True)
        raise
    settle(folder, record)
    return folder


def _write(result: Result, folder: Path) -> Document:
    """Write the files beside those of the old bundle; run.json comes last and decides."""
    from gcnii.inference.card import card  # a later room, for when all is done

    with atomic_write(fresh(folder, WEIGHTS)) as temporary:
        weights = {name: weight.contiguous() for name, weight in result.weights.items()}
        write_tensors(weights, temporary)
        digests = {"weights_sha256": file_sha256(temporary)}
    with atomic_write(fresh(folder, CURVES)) as temporary:
        _write_curves(result, temporary)
        digests["curves_sha256"] = file_sha256(temporary)
    with atomic_write(fresh(folder, CARD)) as temporary:
        temporary.write_text(card(result), "utf-8")
        digests["card_sha256"] = file_sha256(temporary)
    record = _record(result) | digests
    # From here on the new bundle holds, wherever its other files are: see `_settle`.
    write_document(folder / "run.json", record | {"seal": document_key(record)})
    return record


def _record(result: Result) -> Document:
    """What run.json holds, but for the digests of the other files."""
    scaling = {"scaling": result.scaling.document()} if result.scaling else {}
    together = {} if result.together is None else {"together": result.together}
    about = {"graph": result.graph.document(), **scaling, **together, **(result.made or {})}
    return {"format": FORMAT, **result.summary(), **about}


def _write_curves(result: Result, path: Path) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("seed", "epoch", *CURVE))
        for run in result.runs:
            rows.writerows((run.seed, epoch, *point) for epoch, point in enumerate(run.curve))


def _provenance(plan: Plan, command: str) -> Document:
    """What run.json says of how its bundle was made."""
    python, torch_version = platform.python_version(), str(torch.__version__)
    versions = {"gcnii": __version__, "torch": torch_version, "python": python}
    clustered = plan.recipe.batches == "clusters"
    versions |= {"cutter": cutter()} if clustered else {}
    return {"versions": versions, "git": git_state(Path.cwd()), "command": command or None}


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
        if strangers := [name for name in DIGESTS if (folder / name).exists()]:
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
    for name, digest in DIGESTS.items():
        newer = fresh(folder, name)
        with suppress(FileNotFoundError):  # another process may do the same
            if newer.exists() and file_sha256(newer) == record.get(digest):
                newer.replace(folder / name)


def file_sha256(path: Path) -> str:
    """The digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
