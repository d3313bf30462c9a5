"""Measured results: the JSON documents of `gcnii train --json`, each with the command that printed it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Measured:
    """One file of results/train."""

    command: str
    graph: str
    model: str
    settings: dict[str, Any]
    test: tuple[float, ...]  # in per cent, one a seed
    device: str


def read_results(folder: Path) -> list[Measured]:
    """Every result in the folder, in the order of their names."""
    return [_read(path) for path in sorted(folder.glob("*.json"))]


def _read(path: Path) -> Measured:
    record = json.loads(path.read_text("utf-8"))
    test = tuple(100 * run["test"] for run in record["runs"])
    words = {name: record[name] for name in ("command", "graph", "model", "settings", "device")}
    return Measured(**words, test=test)
