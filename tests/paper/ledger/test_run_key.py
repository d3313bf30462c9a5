"""Runs are the same if their keys are: graph, model and settings in force."""

from pathlib import Path

import pytest
from support import knobs

from gcnii.train.plan import make_plan
from gcnii.train.recipe import in_force
from gcnii_paper.ledger import plan_of, run_key
from gcnii_paper.tables import beyond
from gcnii_paper.tables.cells import read_cells
from gcnii_paper.tables.registry import CELLS, choose, stand_in

VIEWS = ("views", "drop_node", "consistency", "sharpen", "warm_up")
MEASURED = Path(__file__).parents[3] / "results" / "cells"


def test_cells_that_agree_share_their_runs(real_data, monkeypatch):
    monkeypatch.setattr(knobs.LEDGER_LOAD, real_data)
    names = (
        "table2/gcnii/cora",
        "table3/cora-gcnii/64",
        "figure2/cora-gcnii/64",
        "table3/cora-gcnii/32",
    )
    first, second, third, other = (run_key(choose("all", name)[0]) for name in names)
    assert first == second == third != other


def test_settings_that_change_no_number_do_not_count():
    plan = make_plan("gcnii", {}).settings
    assert in_force(plan) == in_force(
        plan | {"memory": "keep", "fanout": [3], "clusters": 7, "drop_form": "pairs"}
    )
    assert in_force(plan) != in_force(plan | {"alpha": 0.3})
    assert in_force(plan | {"drop_edge": 0.5}) != in_force(
        plan | {"drop_edge": 0.5, "drop_form": "pairs"}
    )


def test_a_setting_that_is_off_was_always_off():
    plan = make_plan("gcnii", {}).settings
    older = {
        name: value
        for name, value in plan.items()
        if name not in ("clip", "norm", "batches", "precision", *VIEWS)
    }
    assert in_force(plan) == in_force(older)
    assert not set(in_force(plan)) & set(VIEWS)


def test_a_plan_has_the_paper_s_settings_without_opening_a_graph(monkeypatch):
    monkeypatch.setattr(knobs.LEDGER_LOAD, None)
    (cell,) = choose("table2", "table2/gcnii/pubmed")
    settings = plan_of(cell).settings
    assert [settings[name] for name in ("layers", "width", "lam", "dropout")] == [16, 256, 0.4, 0.5]
    (cell,) = choose("table3", "table3/pubmed-gcnii/4")
    assert plan_of(cell).settings == settings | {"layers": 4}


@pytest.fixture(scope="module")
def measured():
    """Every file of results/cells beside the cell that is declared for it."""
    stand_ins = map(stand_in, CELLS["table4"])
    declared = (cell for cells in CELLS.values() for cell in cells)
    cells = {(cell.id, cell.stand_in): cell for cell in (*declared, *stand_ins, *beyond.cells())}
    return [(cells[one.cell, one.stand_in], one) for one in read_cells(MEASURED)]


def test_every_file_of_results_has_the_key_of_its_cell(measured, real_data, monkeypatch):
    """A new setting changes every key: declare its neutral value, or train everything again."""
    monkeypatch.setattr(knobs.LEDGER_LOAD, real_data)
    for cell, found in measured:
        assert run_key(cell) == found.settings_hash, cell.id
        assert in_force(plan_of(cell).settings) == in_force(found.settings), cell.id


def test_every_file_of_results_says_what_its_cell_says(measured):
    """Export the ledger again where one differs."""
    names = ("printed", "row", "column", "graph", "model", "note", "extra", "splits")
    for cell, found in measured:
        assert [run.seed for run in found.runs] == list(range(found.n)), cell.id
        for name in names:
            assert getattr(cell, name) == getattr(found, name), (cell.id, name)
