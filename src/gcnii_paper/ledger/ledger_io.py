"""Runs between the ledger and files: results/cells, and what `gcnii train --json` printed."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gcnii.errors import InputError
from gcnii.files import Document, Maybe, read_document
from gcnii.train.recipe import in_force
from gcnii_paper.ledger.ledger import Ledger
from gcnii_paper.ledger.run_key import open_graph, plan_of, run_key
from gcnii_paper.tables.cells import Cell, MeasuredCell, MeasuredRun, runs_of

RUNS = {
    "graph": (str, dict),  # an object in a bundle's run.json, which has runs too
    "model": str,
    "settings": dict,
    "runs": [dict],
    "device": Maybe(str),
    "cell": Maybe(str),
    "settings_hash": Maybe(str),
    "interrupted": Maybe(bool),
}
COPIED = (  # from a cell to its file
    *("table", "row", "column", "graph", "model", "command", "printed"),
    *("note", "extra", "stand_in", "splits"),
)


def measured(cell: Cell, ledger: Ledger) -> MeasuredCell:
    """The cell with its runs in the ledger: seeds 0 … n-1, up to the first that is missing."""
    key = run_key(cell)
    return MeasuredCell(
        cell=cell.id,
        settings=plan_of(cell).settings,
        settings_hash=key,
        runs=tuple(run for i, run in enumerate(ledger.runs(key)) if run.seed == i),
        **{name: getattr(cell, name) for name in COPIED},
    )


class Found(NamedTuple):
    """What the documents of a folder hold."""

    # the settings' hash, the name of the cell, and its runs
    runs: list[tuple[str, str, list[MeasuredRun]]]
    strangers: int  # number of documents that match no cell


def export_cells(ledger: Ledger, cells: Iterable[Cell], folder: Path) -> list[Path]:
    """Write every cell that has runs to its file.

    Runs that only the file holds are recorded in the ledger first.
    """
    cells = _within_reach(ledger, list(cells))
    ledger.record_all(find_runs(cells, folder).runs)
    found = [measured(cell, ledger) for cell in cells]
    for cell in found:
        if behind := len(ledger.runs(cell.settings_hash)) - cell.n:
            warnings.warn(
                f"runs of {cell.cell} left out because seed {cell.n} is missing before them: "
                f"{behind}",
                stacklevel=2,
            )
    return [cell.save(folder) for cell in found if cell.runs and _replaces(cell, cell.path(folder))]


def _replaces(cell: MeasuredCell, path: Path) -> bool:
    """Whether to overwrite the file at the cell's path; warns if that is of other settings."""
    held = _document(path) if path.exists() else {}
    if held.get("settings_hash", cell.settings_hash) == cell.settings_hash:
        return True
    if cell.stand_in and not held.get("stand_in"):
        warnings.warn(
            f"{path} is left as it is: its runs are of the paper's graph, this ledger's are of a "
            "stand-in",
            stacklevel=3,
        )
        return False
    warnings.warn(
        f"{path} held {len(held['runs'])} runs of other settings or of another graph, now replaced",
        stacklevel=3,
    )
    return True


def _within_reach(ledger: Ledger, cells: list[Cell]) -> list[Cell]:
    """The cells that may have runs in the ledger, found without a run key, which opens a graph."""
    graphs = {cell.id: cell.graph for cell in cells}
    # None for a run that was recorded under a name which no cell has any more
    recorded = {graphs.get(name) for name in ledger.cells()}
    return [cell for cell in cells if cell.graph in recorded or None in recorded]


def find_runs(cells: Iterable[Cell], folder: Path) -> Found:
    """The runs of every document below the folder that was measured as one of the cells is.

    The document of a cell must have the cell's hash.  What `gcnii train --json` printed must agree
    in graph (by its fingerprint, not only by name), in model and in every setting in force; such
    runs have no version of the software.
    """
    documents = {path: _document(path) for path in sorted(folder.rglob("*.json"))}
    cells, runs, strangers = list(cells), [], 0
    for path, document in documents.items():
        if document.get("interrupted"):
            warnings.warn(f"{path} is left out: its training was interrupted", stacklevel=2)
        # cells that match the same document share their runs
        elif cell := next(_matches(document, cells), None):
            runs.append((run_key(cell), cell.id, _on_own_splits(cell, document["runs"], path)))
        else:
            strangers += 1
    return Found(runs, strangers)


def _on_own_splits(cell: Cell, runs: list[MeasuredRun], path: Path) -> list[MeasuredRun]:
    """The runs on the split that belongs to their seed; warns of the others."""
    splits = len(open_graph(cell).splits)
    own = [run for run in runs if run.split == run.seed % splits]
    if others := len(runs) - len(own):
        warnings.warn(
            f"runs of {path} left out because their split is not their seed's: {others}",
            stacklevel=3,
        )
    return own


def _document(path: Path) -> Document:
    """The file's JSON, with a MeasuredRun in place of each run."""
    return read_document(path, RUNS, "document with runs", _with_runs)


def _with_runs(document: Document) -> Document:
    if "cell" in document and "settings_hash" not in document:
        raise InputError("a cell needs its settings_hash")
    device = {"device": document["device"]} if "device" in document else {}
    return document | {"runs": list(runs_of(document, **device))}


def _matches(document: Document, cells: Iterable[Cell]) -> Iterator[Cell]:
    """The cells that the document's runs belong to."""
    match = _is_of_cell if "cell" in document else _is_trained_as_cell
    return (cell for cell in cells if match(document, cell))


def _is_of_cell(document: Document, cell: Cell) -> bool:
    """Compares the name first: the settings need a plan, the key needs the graph."""
    return (
        (cell.id, cell.graph) == (document["cell"], document["graph"])
        and _same_settings(document, cell)
        and run_key(cell) == document["settings_hash"]
    )


def _is_trained_as_cell(document: Document, cell: Cell) -> bool:
    known = (document["graph"], document["model"], "published", False)
    return (
        (cell.graph, cell.model, cell.splits, cell.by_degree) == known
        and _same_settings(document, cell)
        and open_graph(cell).fingerprint == document.get("fingerprint")
    )


def _same_settings(document: Document, cell: Cell) -> bool:
    return in_force(plan_of(cell).settings) == in_force(document["settings"])
