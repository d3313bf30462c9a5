"""Saving a bundle: safetensors, CSV and JSON, no pickle; whole, or not at all."""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from gcnii import __version__
from gcnii.errors import InputError, some_of
from gcnii.files import (
    Document,
    atomic_write,
    claimed,
    document_key,
    file_sha256,
    naming,
    write_document,
)
from gcnii.nn.settings import Settings
from gcnii.train.checkpoint import write_tensors
from gcnii.train.clusters import cutter
from gcnii.train.plan import Plan
from gcnii.train.recipe import in_force
from gcnii.train.results.provenance import git_state
from gcnii.train.results.record import FORMAT, read_record, refuse_record
from gcnii.train.results.result import Result
from gcnii.train.results.run import Run

WEIGHTS, CURVES, CARD = "model.safetensors", "curves.csv", "card.md"
DIGESTS = {WEIGHTS: "weights_sha256", CURVES: "curves_sha256", CARD: "card_sha256"}
CURVE = ("train_loss", "val_loss", "val")
PATIENCE = 60.0  # seconds to wait for another `save` into the same folder


def save(result: Result, folder: Path, *, overwrite: bool = False, command: str = "") -> Path:
    """`Result.save`; two that save into one folder do so one after the other."""
    with claimed(folder, PATIENCE):
        return save_claimed(result, folder, overwrite=overwrite, command=command)


def save_claimed(
    result: Result, folder: Path, *, overwrite: bool = False, command: str = ""
) -> Path:
    """`save` for whoever has claimed the folder."""
    if result.others:
        raise InputError(
            f"a bundle holds one setting, this result {len(result.plans)}; save one of them: "
            f"result.at({result.runs[result.best].setting}).save({str(folder)!r}), or another"
        )
    about = (result.graph.fingerprint, result.plan, result.runs)
    refuse_bundle(folder, *about, interrupted=result.interrupted, overwrite=overwrite)
    if result.made is None:
        result = replace(result, made=_provenance(result.plan, command))
    mark = f"{os.getpid()}.{secrets.token_hex(4)}"
    try:
        record = _write(result, folder, mark)
    except (OSError, InputError):  # such as a full disk, before run.json was in its place
        for name in DIGESTS:
            _fresh(folder, name, mark).unlink(missing_ok=True)
        raise
    settle(folder, record)
    _clean(folder)
    from gcnii.train.results.bundle import open_bundle

    open_bundle(folder, curves=True)  # or an error: what cannot be opened is not saved
    return folder


def _write(result: Result, folder: Path, mark: str) -> Document:
    """Write the files beside those of the old bundle; run.json comes last and decides."""
    from gcnii.inference.card import card  # a later room, for when all is done
    from gcnii.train.results.bundle import open_record

    with atomic_write(_fresh(folder, WEIGHTS, mark)) as temporary, naming(folder / WEIGHTS):
        weights = {name: weight.contiguous() for name, weight in result.weights.items()}
        write_tensors(weights, temporary)
        digests = {"weights_sha256": file_sha256(temporary)}
    with atomic_write(_fresh(folder, CURVES, mark)) as temporary, naming(folder / CURVES):
        _write_curves(result, temporary)
        digests["curves_sha256"] = file_sha256(temporary)
    with atomic_write(_fresh(folder, CARD, mark)) as temporary, naming(folder / CARD):
        temporary.write_text(card(result), "utf-8")
        digests["card_sha256"] = file_sha256(temporary)
    record = _record(result) | digests
    # As it comes back from the file: what cannot be opened must not replace what can.
    again = json.loads(json.dumps(record), parse_constant=lambda word: None)
    refuse_record(folder, again)
    open_record(folder, again)
    # From here on the new bundle holds, wherever its other files are: see `settle`.
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


def _fresh(folder: Path, name: str, mark: str) -> Path:
    """Where `save` writes a file before the run.json that makes it the bundle's."""
    return folder / f".{name}.{mark}.new"


def newer(folder: Path, name: str) -> list[Path]:
    """The files that a killed `save` may have left for this one; version 1.0 had no mark."""
    return sorted(folder.glob(f".{name}*.new"))


def _clean(folder: Path) -> None:
    """Remove what a `save` that was killed has left; nobody else saves here now."""
    names = "|".join(map(re.escape, ("run.json", *DIGESTS)))
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
