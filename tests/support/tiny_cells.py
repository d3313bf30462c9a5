"""Cells that train in a moment."""

from gcnii_paper.tables.cells import Cell, MeasuredRun
from gcnii_paper.tables.printed import Printed

SETTINGS = {"layers": 2, "width": 4, "epochs": 3, "patience": 3}


def cell(row="GCNII", model="gcnii", runs=3, **changes):
    """GCNII on a graph of 1,000 drawn nodes, as a cell of Table 2."""
    settings = SETTINGS | changes.pop("settings", {})
    fields = {
        "table": "table2",
        "column": "Drawn",
        "graph": "csbm",
        "printed": Printed(60.0),
    } | changes
    return Cell(row=row, model=model, settings=settings, runs=runs, **fields)


def run(seed=0, test=0.5, **changes):
    """A made-up run."""
    fields = {
        "split": 0,
        "val": 0.5,
        "val_loss": 1.0,
        "best_epoch": 2,
        "epochs": 3,
        "seconds": 0.1,
        "device": "cpu",
    }
    return MeasuredRun(seed=seed, test=test, **fields | changes)
