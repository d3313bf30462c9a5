"""When two runs are the same: graph, model, settings in force and seed agree.

Cells that agree in the first three share their runs.
"""

from __future__ import annotations

from functools import cache

from gcnii.data import load
from gcnii.data.splits import with_stratified_splits
from gcnii.files import document_key
from gcnii.graph import Graph
from gcnii.train.plan import Plan, make_plan
from gcnii.train.presets import preset
from gcnii_paper.tables.cells import Cell


@cache
def _load(name: str, splits: str) -> Graph:
    return with_stratified_splits(load(name)) if splits == "60/20/20" else load(name)


def open_graph(cell: Cell) -> Graph:
    """The cell's graph, with the splits that the cell asks for."""
    return _load(cell.graph, cell.splits)


def plan_of(cell: Cell) -> Plan:
    """The cell's settings over the preset of its graph and model."""
    return make_plan(cell.model, {**preset(cell.graph, cell.model), **cell.settings})


def run_key(cell: Cell) -> str:
    """A hash that is the same for cells whose runs are the same, and for no others."""
    identity = plan_of(cell).identity(open_graph(cell))
    return document_key(identity | ({"by_degree": "kept"} if cell.by_degree else {}))
