"""When two runs are the same: graph, model, settings in force and seed agree.

Cells that agree in the first three share their runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache

from gcnii.data import load
from gcnii.data.splits import with_stratified_splits
from gcnii.graph import Graph
from gcnii.paper.tables.cells import Cell
from gcnii.train.plan import Plan, make_plan
from gcnii.train.presets import preset

# A setting at its neutral value does not count, so that a run made before the setting existed is
# still the same run.
NEUTRAL: dict[str, object] = {
    "clip": 0.0,
    "window": 0,
    "plateau": 0,
    "drop_edge": 0.0,
    "norm": "symmetric",
    "diffusion": "none",
    "geometry": "none",
    "batches": "full",
    "precision": "float32",
}
# Nor do settings that nothing reads while another one has this value.
UNUSED_WHEN: dict[tuple[str, object], tuple[str, ...]] = {
    ("window", 0): ("window_from",),
    ("plateau", 0): ("plateau_factor", "plateau_floor"),
    ("drop_edge", 0.0): ("drop_form",),
    ("diffusion", "none"): ("teleport", "heat_time", "top_k", "threshold"),
    ("batches", "full"): ("batch_size", "clusters", "fanout", "history"),
    ("batches", "parts"): ("clusters", "fanout", "history"),
    ("batches", "clusters"): ("fanout", "history"),
    ("batches", "neighbours"): ("clusters",),
}
IGNORED = ("memory",)  # decides where numbers are kept, not what they are


@cache
def _load(name: str, splits: str) -> Graph:
    return with_stratified_splits(load(name)) if splits == "60/20/20" else load(name)


def open_graph(cell: Cell) -> Graph:
    """The cell's graph, with the splits that the cell asks for."""
    return _load(cell.graph, cell.splits)


def plan_of(cell: Cell) -> Plan:
    """The cell's settings over the preset of its graph and model."""
    return make_plan(cell.model, {**preset(cell.graph, cell.model), **cell.settings})


def in_force(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings that some number depends on."""
    settings = {**NEUTRAL, **settings}
    neutral = {name for name, value in NEUTRAL.items() if settings[name] == value}
    unused = {
        name
        for (other, value), names in UNUSED_WHEN.items()
        if settings[other] == value
        for name in names
    }
    left_out = {*neutral, *unused, *IGNORED}
    return {name: value for name, value in settings.items() if name not in left_out}


def run_key(cell: Cell) -> str:
    """A hash that is the same for cells whose runs are the same, and for no others."""
    plan = plan_of(cell)
    identity = {
        "graph": open_graph(cell).fingerprint,
        "model": plan.model,
        "settings": in_force(plan.settings),
    }
    if cell.by_degree:
        identity["by_degree"] = "kept"
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
