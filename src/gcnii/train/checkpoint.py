"""Checkpoints: one file that appears whole or not at all, from which a killed training goes on to
the same numbers.

Dropout masks are a function of seed and epoch, so there is no random state to keep: weights, Adam's
moments, the best weights so far and the runs' records are all.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from gcnii.files import atomic_write
from gcnii.train.replicas.packing import Stack
from gcnii.train.run import Run


@dataclass
class Checkpoint:
    """`identity` says whose it is (plan, graph, seeds); `stacks` are named stacks of weights, by
    role.
    """

    identity: dict[str, Any]
    runs: list[Run]
    active: list[int]  # positions in `runs` of the replicas now in training
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
        """The checkpoint, or None where there is none or what is there is no checkpoint."""
        try:
            with safe_open(path, "pt", device=str(device)) as file:
                note = json.loads((file.metadata() or {})["checkpoint"])
                checkpoint = cls(
                    note["identity"], [_run(run) for run in note["runs"]], note["active"]
                )
                for key in file.keys():  # noqa: SIM118 - an open file is no dictionary
                    role, name = key.split("/", 1)
                    checkpoint.stacks.setdefault(role, {})[name] = file.get_tensor(key)
        except (OSError, SafetensorError, KeyError, ValueError, TypeError):
            return None
        return checkpoint


def write_tensors(tensors: Stack, path: Path, metadata: dict[str, str] | None = None) -> None:
    """`save_file`, but what the disk refuses is an OSError, as it is wherever else a file is
    written.
    """
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def _run(fields: dict[str, Any]) -> Run:
    return Run(**fields | {"curve": [tuple(point) for point in fields["curve"]]})
