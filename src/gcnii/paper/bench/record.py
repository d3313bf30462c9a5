"""What a measured case leaves behind: one JSON document, with everything needed to measure and to
judge it again.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from gcnii.files import write_document
from gcnii.paper.bench.measure import Measured, Timed
from gcnii.paper.bench.runners import plan_of
from gcnii.paper.provenance import COMMIT, versions
from gcnii.train.hardware import device_name

COUNTED = (
    "per layer and replica 13 passes over n·h numbers (training forward 4, backward 3, weight gradients 2, gradient of "
    "H0 1, evaluation 3) and 5 products of 2·n·h² operations; where n·h numbers do not fit into the cache, 3 times a "
    "row of h numbers for every entry of P̃; bandwidth and operations a second are those of a large copy and of a large "
    "matrix product on the same device"
)


def document(found: Measured) -> dict[str, Any]:
    """The case as JSON has it; times in seconds an epoch."""
    case, device, scene = found.case, found.device, found.lines[0].scene
    return {
        "case": case.name,
        "title": case.title,
        "command": f"gcnii bench {case.name} --device {device.type} --rounds {found.rounds}",
        "device": device_name(device),
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "commit": COMMIT,
        "graph": {
            "name": scene.graph.name,
            "drawn": scene.drawn,
            "n": scene.graph.n,
            "entries": scene.entries,
        },
        "per": list(case.per),
        "rates": asdict(found.rates),
        "floor": COUNTED,
        "lines": [_line(found, line) for line in found.lines],
        "notes": found.notes,
    }


def write(folder: Path, record: dict[str, Any]) -> Path:
    """Put the document into `CASE-DEVICE.json`, whole."""
    return write_document(
        folder / f"{record['case']}-{record['device'].split(':')[0]}.json", record
    )


def _line(found: Measured, timed: Timed) -> dict[str, Any]:
    line, settings, floor = timed.line, plan_of(timed.line).model_settings, found.floor(timed)
    words = {
        "who": line.who,
        "model": line.model,
        "layers": settings["layers"],
        "width": settings["width"],
    }
    return words | {
        "precision": line.precision,
        "replicas": line.replicas,
        "entries": timed.scene.entries,
        "epochs_a_round": timed.chunk,
        "seconds": timed.seconds,
        "best": timed.best if timed.seconds else None,
        "median": timed.median if timed.seconds else None,
        "ratio": found.ratio(timed),
        "peak_bytes": timed.peak,
        "floor": asdict(floor) if floor else None,
        "failed": timed.failed,
        **timed.facts,
    }


def _processor() -> str | None:
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None
    )
