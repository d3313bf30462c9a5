"""Runs between the ledger and files: results/cells, one JSON document a cell, and what `gcnii train --json` printed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gcnii.experiments.cells import Cell, MeasuredCell, MeasuredRun
from gcnii.experiments.identity import in_force, open_graph, plan_of, settings_hash
from gcnii.experiments.ledger import Ledger


def measured(cell: Cell, ledger: Ledger) -> MeasuredCell:
    """The cell with its runs in the ledger: those of seeds 0 … n-1, as far as none is missing."""
    key = settings_hash(cell)
    runs = tuple(run for i, run in enumerate(ledger.runs(key)) if run.seed == i)
    words = {name: getattr(cell, name) for name in ("table", "row", "column", "graph", "model", "command", "printed")}
    marks = {name: getattr(cell, name) for name in ("note", "extra", "stand_in", "splits")}
    return MeasuredCell(cell=cell.id, settings=plan_of(cell).settings, settings_hash=key, runs=runs, **words, **marks)


def export_cells(ledger: Ledger, cells: Iterable[Cell], folder: Path) -> list[Path]:
    """Write every cell that has runs; what its file holds already and the ledger does not is taken in first."""
    cells = list(cells)
    import_runs(ledger, cells, folder)
    found = (measured(cell, ledger) for cell in cells)
    return [cell.save(folder) for cell in found if cell.runs]


def import_runs(ledger: Ledger, cells: Iterable[Cell], folder: Path) -> int:
    """Take in the runs of every document below the folder that was measured as one of the cells is; how many were new.

    A measured cell must have its cell's hash.  What `gcnii train --json` printed must agree in graph, model and every
    setting in force; the version of the software is then unknown, and it is told apart by that.
    """
    cells, new = list(cells), 0
    for path in sorted(folder.rglob("*.json")):
        document = _document(path)
        for cell in _matches(document, cells):
            new += ledger.record(settings_hash(cell), cell.id, _runs(document, cell))
            break  # cells that match the same document share their runs
    return new


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text("utf-8"))
        if not {"graph", "model", "settings", "runs"} <= set(document):
            raise ValueError("graph, model, settings and runs are needed")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no runs: {error}") from None
    return dict(document)


def _matches(document: dict[str, Any], cells: Iterable[Cell]) -> Iterable[Cell]:
    if "cell" in document:
        yield from (c for c in cells if c.id == document["cell"] and settings_hash(c) == document["settings_hash"])
        return
    settings, known = in_force(document["settings"]), (document["graph"], document["model"], "published", False)
    alike = (cell for cell in cells if (cell.graph, cell.model, cell.splits, cell.by_degree) == known)
    yield from (cell for cell in alike if in_force(plan_of(cell).settings) == settings)


def _runs(document: dict[str, Any], cell: Cell) -> list[MeasuredRun]:
    """Those on the split that the cell would give their seed."""
    splits = len(open_graph(cell).splits)
    device = {"device": document["device"]} if "device" in document else {}
    return [MeasuredRun(**device | run) for run in document["runs"] if run["split"] == run["seed"] % splits]
