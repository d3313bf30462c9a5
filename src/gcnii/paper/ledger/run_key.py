"""When two runs are the same: model, settings in force, graph and seed agree.  Cells that agree in
these share runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from gcnii.data import load
from gcnii.data.splits import with_stratified_splits
from gcnii.graph import Graph
from gcnii.paper.tables.cells import Cell
from gcnii.train.plan import Plan, make_plan

# What is switched off does not count, so that a run from before there was such a setting is still
# the same run.
OFF: dict[str, Any] = {
    **{
        "clip": 0.0,
        "window": 0,
        "plateau": 0,
        "drop_edge": 0.0,
        "norm": "symmetric",
        "diffusion": "none",
    },
    **{"geometry": "none", "batches": "full", "precision": "float32"},
}
# Nor do settings that nobody asks for where another one has this value.
IDLE: dict[tuple[str, Any], tuple[str, ...]] = {
    ("window", 0): ("window_from",),
    ("plateau", 0): ("plateau_factor", "plateau_floor"),
    ("drop_edge", 0.0): ("drop_form",),
    ("diffusion", "none"): ("teleport", "heat_time", "top_k", "threshold"),
    ("batches", "full"): ("batch_size", "clusters", "fanout", "history"),
    ("batches", "parts"): ("clusters", "fanout", "history"),
    ("batches", "clusters"): ("fanout", "history"),
    ("batches", "neighbours"): ("clusters",),
}
NEVER = ("memory",)  # decides where numbers are kept, not what they are


@cache
def _load(name: str, splits: str) -> Graph:
    return with_stratified_splits(load(name)) if splits == "60/20/20" else load(name)


def open_graph(cell: Cell) -> Graph:
    """The cell's graph, with the splits that it asks for."""
    return _load(cell.graph, cell.splits)


def plan_of(cell: Cell) -> Plan:
    """Model and settings in full."""
    return make_plan(cell.model, cell.settings, open_graph(cell))


def in_force(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that some number depends on."""
    settings = {**OFF, **settings}
    idle = {
        name for (other, value), names in IDLE.items() if settings[other] == value for name in names
    }
    off = {name for name, value in OFF.items() if settings[name] == value}
    return {name: value for name, value in settings.items() if name not in {*idle, *off, *NEVER}}


def run_key(cell: Cell) -> str:
    """The same for cells whose runs are the same, and for no others."""
    plan = plan_of(cell)
    identity = {
        "graph": open_graph(cell).fingerprint,
        "model": plan.model,
        "settings": in_force(plan.settings),
    }
    if cell.by_degree:
        identity["by_degree"] = "kept"
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
