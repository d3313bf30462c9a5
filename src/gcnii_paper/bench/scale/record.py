"""What `gcnii bench scale` finds, as a JSON document."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import torch

from gcnii.files import Document
from gcnii.results.provenance import commit, versions
from gcnii.train.hardware import device_name
from gcnii_paper.bench.record import processor
from gcnii_paper.bench.scale.cuts import PARTS, REAL, WAYS, graphs, measured_cuts
from gcnii_paper.bench.scale.growth import PLANNED, STEPS, grown, planned
from gcnii_paper.bench.scale.processes import SIZES, on_cuda, over_processes

NAME = "scale"
OnStep = Callable[[str], None]


def steps(device: torch.device) -> int:
    """How often `measure` calls `on_step`."""
    if device.type == "cuda":
        return 4
    growths = sum(len(values) for values in STEPS.values())
    cuts = (len(REAL) + 1) * len(PARTS) * len(WAYS)
    return cuts + 2 * len(SIZES) + growths + len(PLANNED)


def measure(device: torch.device, on_step: OnStep) -> Document:
    """All of it on a CPU; on a GPU, what processes and a large graph take."""
    commit()  # recorded at the end, when it might be another one

    def told(what: str, rows: Iterable[Document]) -> list[Document]:
        found = []
        for row in rows:
            on_step(what)
            found.append(row)
        return found

    if device.type == "cuda":
        found = {"processes": told("processes", on_cuda())}
    else:
        found = {
            "cuts": told("cuts", measured_cuts(graphs())),
            "growth": told("growth", grown()),
            "planned": told("plans", planned()),
            "processes": told("processes", over_processes()),
        }
    return {
        "case": NAME,
        "title": "growth, and one graph over several processes",
        "command": f"gcnii bench {NAME} --device {device.type}",
        "device": device_name(device),
        "processor": processor(),
        "cores": os.cpu_count(),
        "versions": versions(),
        "commit": commit(),
        **{part: [] for part in ("cuts", "growth", "planned")},
        **found,
    }
