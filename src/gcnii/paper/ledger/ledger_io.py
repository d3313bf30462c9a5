"""Runs between the ledger and files: results/cells, one JSON document a cell, and what `gcnii train
--json` printed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gcnii.errors import InputError
from gcnii.files import Maybe, read_document
from gcnii.paper.ledger.ledger import Ledger
from gcnii.paper.ledger.run_key import in_force, open_graph, plan_of, run_key
from gcnii.paper.tables.cells import Cell, MeasuredCell, MeasuredRun, runs_of

RUNS = {  # a bundle's run.json has them too, where `graph` is an object
    **{"graph": (str, dict), "model": str, "settings": dict, "runs": [dict]},
    **{
        "device": Maybe(str),
        "cell": Maybe(str),
        "settings_hash": Maybe(str),
        "interrupted": Maybe(bool),
    },
}


def measured(cell: Cell, ledger: Ledger) -> MeasuredCell:
    """The cell with its runs in the ledger: those of seeds 0 … n-1, as far as none is missing."""
    key = run_key(cell)
    runs = tuple(run for i, run in enumerate(ledger.runs(key)) if run.seed == i)
    words = {
        name: getattr(cell, name)
        for name in ("table", "row", "column", "graph", "model", "command", "printed")
    }
    marks = {name: getattr(cell, name) for name in ("note", "extra", "stand_in", "splits")}
    return MeasuredCell(
        cell=cell.id,
        settings=plan_of(cell).settings,
        settings_hash=key,
        runs=runs,
        **words,
        **marks,
    )


class Found(NamedTuple):
    """What the documents of a folder hold."""

    # with the settings' hash and the cell that they were measured as
    runs: list[tuple[str, str, list[MeasuredRun]]]
    strangers: int  # documents that were measured as no cell is


def export_cells(ledger: Ledger, cells: Iterable[Cell], folder: Path) -> list[Path]:
    """Write every cell that has runs; what its file holds already and the ledger does not is taken
    in first.
    """
    cells = _within_reach(ledger, list(cells))
    ledger.record_all(find_runs(cells, folder).runs)
    found = [measured(cell, ledger) for cell in cells]
    for cell in found:
        if behind := len(ledger.runs(cell.settings_hash)) - cell.n:
            warnings.warn(
                f"runs of {cell.cell} left out, as seed {cell.n} is missing before them: {behind}",
                stacklevel=2,
            )
    return [cell.save(folder) for cell in found if cell.runs and _replaces(cell, cell.path(folder))]


def _replaces(cell: MeasuredCell, path: Path) -> bool:
    """Whether to write over what lies at its path; where that is of other settings, it is told."""
    held = _document(path) if path.exists() else {}
    if held.get("settings_hash", cell.settings_hash) == cell.settings_hash:
        return True
    if cell.stand_in and not held.get("stand_in"):
        warnings.warn(
            f"{path} is left as it is: it is of the paper's graph, and this ledger's of a stand-in",
            stacklevel=3,
        )
        return False
    warnings.warn(
        f"{path} held {len(held['runs'])} runs of other settings or of another graph, now replaced",
        stacklevel=3,
    )
    return True


def _within_reach(ledger: Ledger, cells: list[Cell]) -> list[Cell]:
    """Those that may have runs in the ledger, found without a data set: to ask for their hashes
    opens it.
    """
    graphs = {cell.id: cell.graph for cell in cells}
    # None where a cell had another name then
    recorded = {graphs.get(name) for name in ledger.cells()}
    return [cell for cell in cells if cell.graph in recorded or None in recorded]


def find_runs(cells: Iterable[Cell], folder: Path) -> Found:
    """The runs of every document below the folder that was measured as one of the cells is.

    A measured cell must have its cell's hash.  What `gcnii train --json` printed must agree in
    graph, and not by name alone, in model and in every setting in force; the version of the
    software is then unknown, and so told apart.
    """
    documents = {path: _document(path) for path in sorted(folder.rglob("*.json"))}
    cells, runs, strangers = list(cells), [], 0
    for path, document in documents.items():
        if document.get("interrupted"):
            warnings.warn(
                f"{path} is left out: its training was stopped before its end", stacklevel=2
            )
        # cells that match the same document share their runs
        elif cell := next(_matches(document, cells), None):
            splits = len(open_graph(cell).splits)
            alike = [run for run in document["runs"] if run.split == run.seed % splits]
            if others := len(document["runs"]) - len(alike):
                warnings.warn(
                    f"runs of {path} left out, as their split is not their seed's: {others}",
                    stacklevel=2,
                )
            runs.append((run_key(cell), cell.id, alike))
        else:
            strangers += 1
    return Found(runs, strangers)


def _document(path: Path) -> dict[str, Any]:
    """As it stands in the file, but for its runs, which are made of what stands there."""
    return read_document(path, RUNS, "document with runs", _with_runs)


def _with_runs(document: dict[str, Any]) -> dict[str, Any]:
    if "cell" in document and "settings_hash" not in document:
        raise InputError("a cell needs its settings_hash")
    device = {"device": document["device"]} if "device" in document else {}
    return document | {"runs": list(runs_of(document, **device))}


def _matches(document: dict[str, Any], cells: Iterable[Cell]) -> Iterator[Cell]:
    if "cell" in document:
        named = (
            cell for cell in cells if (cell.id, cell.graph) == (document["cell"], document["graph"])
        )
        named = (
            cell
            for cell in named
            if in_force(plan_of(cell).settings) == in_force(document["settings"])
        )
        yield from (cell for cell in named if run_key(cell) == document["settings_hash"])
        return
    settings, known = (
        in_force(document["settings"]),
        (document["graph"], document["model"], "published", False),
    )
    alike = (
        cell for cell in cells if (cell.graph, cell.model, cell.splits, cell.by_degree) == known
    )
    alike = (cell for cell in alike if in_force(plan_of(cell).settings) == settings)
    yield from (
        cell for cell in alike if open_graph(cell).fingerprint == document.get("fingerprint")
    )
