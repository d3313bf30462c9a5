"""How a training survives kill -9 and Ctrl-C: checkpoints, and a stop between two epochs.

A checkpoint is one file, written whole, from which a killed training resumes to the same numbers.

Dropout masks are a function of seed and epoch, so there is no random state to keep: weights, Adam's
moments, the best weights so far and the runs' records are all.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from gcnii.files import Document, atomic_write
from gcnii.train.replicas.packing import Stack
from gcnii.train.results.run import Run


@dataclass
class Checkpoint:
    """The state of a training.

    identity  which training it is: plan, graph, seeds
    active    the seeds now in training
    stacks    stacks of weights, by role
    """

    identity: Document
    runs: list[Run]
    active: list[int]
    stacks: dict[str, Stack] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write it beside the old one, then put it in the old one's place."""
        note = {
            "identity": self.identity,
            "runs": [asdict(run) for run in self.runs],
            "active": self.active,
        }
        tensors = {
            f"{role}/{name}": tensor
            for role, stack in self.stacks.items()
            for name, tensor in stack.items()
        }
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        with atomic_write(path) as temporary:
            write_tensors(plain, temporary, {"checkpoint": json.dumps(note)})

    @classmethod
    def load(cls, path: Path, device: torch.device) -> Checkpoint | None:
        """The checkpoint; None where the file is missing or does not hold one."""
        try:
            with safe_open(path, "pt", device=str(device)) as file:
                note = json.loads((file.metadata() or {})["checkpoint"])
                runs = [_run(run) for run in note["runs"]]
                checkpoint = cls(note["identity"], runs, note["active"])
                for key in file.keys():  # noqa: SIM118 - an open file is not a dictionary
                    role, name = key.split("/", 1)
                    checkpoint.stacks.setdefault(role, {})[name] = file.get_tensor(key)
        except (OSError, SafetensorError, KeyError, ValueError, TypeError):
            return None
        return checkpoint


def write_tensors(tensors: Stack, path: Path, metadata: dict[str, str] | None = None) -> None:
    """`save_file`, but raising OSError when the disk refuses, as all other writers do."""
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def _run(fields: Document) -> Run:
    return Run(**fields | {"curve": [tuple(point) for point in fields["curve"]]})


class Interrupt:
    """Becomes true at the first Ctrl-C; a second one stops at once."""

    def __init__(self) -> None:
        self.asked = False

    def __bool__(self) -> bool:
        return self.asked

    def ask(self, number: int, frame: FrameType | None) -> None:
        """The handler of SIGINT."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Within, the first Ctrl-C asks to stop instead of raising.

    Nothing changes in other threads, which get no signals, or in processes that ignore Ctrl-C, as
    under nohup.
    """
    interrupt = Interrupt()
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = signal.signal(signal.SIGINT, interrupt.ask)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
