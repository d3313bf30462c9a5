"""The folder of a training: claimed while it trains; what somebody else made there is not lost."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from gcnii.errors import InputError, some_of
from gcnii.files import BUNDLE, CHECKPOINT, claimed, document_key
from gcnii.graph import Graph
from gcnii.results.bundle import refuse_bundle, save_claimed
from gcnii.results.result import Result
from gcnii.train.checkpoint import Checkpoint, before, remove, training_identity
from gcnii.train.plan import Plan
from gcnii.train.run import Run

FILES = {*BUNDLE, CHECKPOINT, before(Path(CHECKPOINT)).name}


def run_folder(graph: Graph, plan: Plan) -> Path:
    """runs/GRAPH-MODEL-KEY: another graph of this name, or other settings, have another folder."""
    key = document_key(plan.identity(graph.fingerprint))[:8]
    return Path("runs") / f"{graph.name}-{plan.model}-{key}"


@contextmanager
def claimed_folder(
    folder: Path, graph: Graph, plan: Plan, runs: Sequence[Run], overwrite: bool = False
) -> Iterator[None]:
    """Within, the folder is this training's; InputError, before any work, if it may not be."""
    with claimed(folder):
        entries = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        # What a killed write leaves behind is hidden, and so is what systems put into any folder.
        if foreign := sorted(name for name in entries - FILES if not name.startswith(".")):
            raise InputError(
                f"{folder} holds {some_of(foreign)}, which gcnii did not write; choose another "
                "folder (--out)"
            )
        refuse_bundle(folder, graph.fingerprint, plan, runs, overwrite=overwrite)
        saved = Checkpoint.load(folder / CHECKPOINT, torch.device("cpu"))
        if saved and not overwrite and not saved.is_of(training_identity(graph, [plan], runs)):
            raise InputError(
                f"{folder} holds the checkpoint of another training; choose another folder "
                "(--out), or give up that training (--overwrite)"
            )
        yield


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
    """Save what was trained although its folder was taken meanwhile; words that say where it is."""
    spare = folder.with_name(f"{folder.name}-{secrets.token_hex(4)}")
    try:
        result.save(spare, command=command)
    except (InputError, OSError):
        return ""
    return f"; this training is saved as {spare}"
