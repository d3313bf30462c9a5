"""Tables in the terminal: every width keeps names, numbers and marks whole, and what diverged is
told.
"""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from gcnii.cli.terminal import WIDE
from gcnii_paper.report.markdown import as_json, reproduced_tables
from gcnii_paper.tables.cells import read_cells

CELLS = read_cells(Path(__file__).parents[3] / "results" / "cells")


def cells_of(table):
    return [cell for cell in CELLS if cell.table == table]


def shown(cells, width):
    """The lines on a terminal of that width."""
    console = Console(file=io.StringIO(), width=width, highlight=False)
    for part in reproduced_tables(cells):
        console.print(part)
    return console.file.getvalue().splitlines()


def diverge(cell, *seeds):
    """The same with nothing measured of these seeds."""
    runs = (
        replace(run, test=None, by_degree=None) if run.seed in seeds else run for run in cell.runs
    )
    return replace(cell, runs=tuple(runs))


def test_digits_are_those_that_the_paper_prints():
    (gat,) = (line for line in shown(cells_of("table5"), WIDE) if line.startswith(" GAT  "))
    assert re.search(r" \d\d\.\d\d±\d\.\d\d \(\d+\) [●▲▼◆] 86\.37 ", gat)


@pytest.mark.long
@pytest.mark.parametrize("table", ["table2", "table3", "table5", "figure1", "figure2"])
def test_a_narrow_terminal_cuts_nothing(table):
    whole = shown(cells_of(table), WIDE)
    for width in (60, 80, 120):
        lines = shown(cells_of(table), width)
        assert max(map(cell_len, lines)) <= width
        lost = set(" ".join(whole).split()) - set(" ".join(lines).split())
        assert all(re.fullmatch(r"\(\d+(/\d+)?\)", word) for word in lost), (
            "only runs of a cell may go"
        )


def test_columns_that_do_not_fit_stand_below_the_others_without_runs():
    lines = shown(cells_of("table2"), 60)
    assert re.fullmatch(r"  \d+ to 100 runs per cell", lines[1])
    assert [line.split() for line in lines if line.startswith("     ")] == [
        ["Cora", "Citeseer"],
        ["Pubmed"],
    ]
    assert "(100)" not in "".join(lines)


def test_a_cell_with_a_diverged_seed_has_failed_and_says_how_many_have_not():
    (cell,) = (diverge(cell, 0, 7) for cell in CELLS if cell.cell == "table2/gcnii/cora")
    *_, row, _, legend = shown([cell], WIDE)
    assert row.split() == ["GCNII", "failed", "(98/100)", "✕", "85.5±0.5"]
    assert legend == "ours±sd (runs/needed), mark, the paper's: ✕ failed; failed (finite/all runs)"


def test_json_has_null_for_what_is_not_finite():
    cell = diverge(next(cell for cell in cells_of("table2") if cell.n > 2), 1)
    (document,) = json.loads(json.dumps(as_json([cell]), allow_nan=False))["cells"]
    assert (document["mean"], document["sd"], document["verdict"]) == (None, None, None)


def test_a_cell_without_runs_is_missing():
    lines = shown([replace(cell, runs=()) for cell in cells_of("table2")], 60)
    assert next(line for line in lines if line.startswith(" GCN ")).split() == [
        "GCN",
        "○",
        "81.5",
        "○",
        "71.1",
        "○",
        "79.0",
    ]


@pytest.mark.parametrize(("lost", "depths"), [([0], ["2", "4"]), (range(100), ["4"])])
def test_degrees_are_shown_of_the_runs_that_came_to_an_end(lost, depths):
    two, four = (
        cell for name in ("2", "4") for cell in CELLS if cell.cell == f"figure1/cora/{name}"
    )
    lines = shown([diverge(two, *lost), four], WIDE)
    (header,) = (line for line in lines if line.startswith(" degree"))
    assert re.split("  +", header.strip()) == ["degree", "nodes", *depths]
    assert len([line for line in lines if line.startswith((" 1 ", " 128–255 "))]) == 2
