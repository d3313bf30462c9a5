"""How a training survives kill -9 and a full disk.

A checkpoint is one file, written whole, from which a killed training resumes to the same numbers.
It holds its SHA-256, and the one before it stays beside it: a damaged file costs a few epochs, and
changes no number.

Dropout masks are a function of seed and epoch, so there is no random state to keep: weights, Adam's
moments, the best weights so far and the runs' records are all.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from math import nan
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from gcnii.errors import InputError, notice
from gcnii.files import (
    NOTHING,
    Document,
    Maybe,
    atomic_write,
    check,
    disk_errors,
    first_bytes,
    refuse_special,
    remove_stale,
)
from gcnii.graph import Graph
from gcnii.train.clusters import cutter
from gcnii.train.plan import Plan
from gcnii.train.recipe import in_force
from gcnii.train.replicas import MOMENTS, Stack
from gcnii.train.stopping import Run

WHOLE = dict.fromkeys(("seed", "split", "best_epoch", "epochs", "fresh_epoch", "stale"), int)
# NaN and infinity are read as null; a Run then has what it begins with, which is one of them.
MEASURED = dict.fromkeys(("test", "val", "val_loss", "lowest", "highest"), (float, NOTHING))
RUN = {
    **WHOLE,
    **MEASURED,
    "seconds": float,
    "lr_scale": float,
    "stopped": bool,
    "curve": [[float, float, (float, NOTHING)]],
    "setting": Maybe(int),  # a checkpoint of version 0.1 has none
}
NOTE = {"identity": {"settings": Maybe(dict)}, "runs": [RUN], "active": [(int, [int])]}
MARKS = (b'"checkpoint"', b"fresh_epoch")  # in the header, which comes first
LAYOUT = ("now", "best", *MOMENTS, "done")  # stacks that hold the same weights


@dataclass
class Checkpoint:
    """The state of a training.

    identity  which training it is: plan, graph, seeds
    active    the keys of the runs now in training
    stacks    stacks of weights, by role
    """

    identity: Document
    runs: list[Run]
    active: list[tuple[int, int]]
    stacks: dict[str, Stack] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write it, and put it in the place of the old one, which becomes the one before."""
        note = json.dumps(
            {
                "identity": self.identity,
                "runs": [asdict(run) for run in self.runs],
                "active": self.active,
            }
        )
        tensors = {
            f"{role}/{name}": tensor.detach().cpu().contiguous()
            for role, stack in self.stacks.items()
            for name, tensor in stack.items()
        }
        with atomic_write(path) as temporary:
            metadata = {"checkpoint": note, "sha256": _sha256(note, tensors)}
            write_tensors(tensors, temporary, metadata)
            with suppress(FileNotFoundError):
                path.replace(before(path))

    @classmethod
    def load(cls, path: Path, device: torch.device) -> Checkpoint | None:
        """The checkpoint, or the one before it if it is damaged; None where neither can be used.

        Partial files of a killed process are removed.
        """
        remove_stale(path)
        refuse_foreign(path)
        damaged = []
        for file in (path, before(path)):
            try:
                checkpoint = cls._read(file, device)
            except FileNotFoundError:
                continue
            except (OSError, SafetensorError, ValueError, RecursionError) as error:
                damaged.append(f"{file} is damaged ({error})")
            else:
                if damaged:
                    notice(f"{damaged[0]}; resuming from the checkpoint before it")
                    with suppress(OSError):  # the folder is read-only
                        file.replace(path)  # or the next save would keep the damaged one instead
                return checkpoint
        if damaged:
            notice(f"{', and '.join(damaged)}; starting over")
        return None

    @classmethod
    def _read(cls, path: Path, device: torch.device) -> Checkpoint:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - no dict
        note = metadata.get("checkpoint", "")
        # Version 0.1 wrote no checksum, and nothing else beside the note.
        if set(metadata) != {"checkpoint"} and metadata.get("sha256") != _sha256(note, tensors):
            raise InputError("its SHA-256 differs from the one written in it")
        document = json.loads(note, parse_constant=lambda word: None)
        check(document, NOTE)
        runs = [_run(run) for run in document["runs"]]
        checkpoint = cls(document["identity"], runs, [_key(one) for one in document["active"]])
        for key, tensor in tensors.items():
            role, _, name = key.partition("/")
            checkpoint.stacks.setdefault(role, {})[name] = tensor.to(device)
        checkpoint._refuse_partial()
        return checkpoint

    def is_of(self, identity: Document) -> bool:
        """Whether it belongs to this training, as one written before a setting existed may."""
        return _in_force(self.identity) == _in_force(identity)

    def _refuse_partial(self) -> None:
        """Raise InputError for missing weights, which no checksum of version 0.1 tells."""
        begun = {run.key for run in self.runs if run.epochs}
        needed = {"adam", *LAYOUT[:-1]} if self.active else set()
        needed |= {"done"} if begun - set(self.active) else set()
        if missing := needed - set(self.stacks):
            raise InputError(f"it holds no {', '.join(sorted(missing))}")
        stacks = [self.stacks[role] for role in LAYOUT if role in self.stacks]
        shapes = [{name: W.shape[1:] for name, W in stack.items()} for stack in stacks]
        if any(one != shapes[0] for one in shapes):
            raise InputError("its weights do not have the same names and shapes throughout")


def refuse_foreign(path: Path) -> None:
    """Raise InputError if a checkpoint would replace a file that is not one, or could not."""
    found = [file for file in (path, before(path)) if file.exists()]
    for file in found:
        refuse_special(file)
    # A damaged one is recognised by what is left of it, or by the one beside it.
    if found and not any(_is_checkpoint(file) for file in found):
        raise InputError(f"{found[0]} is not a checkpoint; choose another name, or move it away")


def _is_checkpoint(file: Path) -> bool:
    head = first_bytes(file, 20_000)
    length, text = int.from_bytes(head[:8], "little"), head[8:]
    if len(head) < 9:  # cut short in or before the length of its header
        return head[-1:] in (b"", b"\0")
    in_header = text.startswith(b'{"__metadata__"') and len(text) < min(length, 10_000)
    return in_header or any(mark in head for mark in MARKS)


def before(path: Path) -> Path:
    """Where the checkpoint that this one has replaced is kept."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def remove(path: Path) -> None:
    """Remove a checkpoint, the one before it, and partial files of killed processes."""
    for file in (path, before(path)):
        file.unlink(missing_ok=True)
    remove_stale(path)


def _sha256(note: str, tensors: Stack) -> str:
    """Of the note, and of each tensor's name, type, shape and numbers."""
    digest = hashlib.sha256(note.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\n{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def write_tensors(tensors: Stack, path: Path, metadata: dict[str, str] | None = None) -> None:
    """`save_file`, but raising OSError when the disk refuses."""
    with disk_errors():
        save_file(tensors, path, metadata)


def _key(active: int | list[int]) -> tuple[int, int]:
    """The key of a run in training, of which version 0.1 wrote the seed alone."""
    setting, seed = [0, active] if isinstance(active, int) else active
    return setting, seed


def _run(held: Document) -> Run:
    known = {name: held[name] for name in RUN if held.get(name) is not None}
    curve = [tuple(nan if one is None else one for one in point) for point in held["curve"]]
    return Run(**known | {"curve": curve})


def training_identity(graph: Graph, plans: Sequence[Plan], runs: Sequence[Run]) -> Document:
    """What identifies a training: only its own checkpoint resumes it."""
    identity: Document = {
        "model": plans[0].model,
        "settings": plans[0].settings,
        "graph": graph.fingerprint,
        "runs": [(run.seed, run.split) for run in runs if run.setting == 0],
        "cutter": cutter() if plans[0].recipe.batches == "clusters" else None,
    }
    if len(plans) > 1:
        identity["others"] = [plan.settings for plan in plans[1:]]
    document: Document = json.loads(json.dumps(identity))  # as it comes back from a file
    return document


def _in_force(identity: Document) -> Document:
    return identity | {"settings": in_force(identity.get("settings", {}))}
