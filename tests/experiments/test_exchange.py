"""Runs move between the ledger and files, and only where they were measured alike."""

import json

import pytest
from tiny import cell, run

from gcnii.data import load
from gcnii.experiments.cells import read_cells
from gcnii.experiments.exchange import export_cells, import_runs, measured
from gcnii.experiments.identity import settings_hash
from gcnii.experiments.ledger import Ledger
from gcnii.experiments.printed import Printed
from gcnii.train import fit


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        yield ledger


@pytest.fixture
def fresh(tmp_path):
    with Ledger(tmp_path / "fresh.sqlite") as ledger:
        yield ledger


@pytest.fixture
def kept(ledger):
    """A ledger with three runs of the cell."""
    ledger.record(
        settings_hash(cell()), cell().id, [run(i, test=0.6 + i / 100, versions={"torch": "2"}) for i in range(3)]
    )
    return ledger


def test_a_cell_comes_back_from_its_file(kept, tmp_path):
    (path,) = export_cells(kept, [cell(), cell("Never run", "deep-gcn")], tmp_path / "cells")
    assert path == tmp_path / "cells" / "table2" / "gcnii-drawn.json"
    (found,) = read_cells(tmp_path / "cells")
    assert found == measured(cell(), kept)
    assert (found.n, found.printed, found.verdict.word) == (3, Printed(60.0), "undecided")
    assert (found.mean, found.sd) == pytest.approx((61.0, 1.0))
    assert found.command == "gcnii reproduce table2 --only table2/gcnii/drawn"


def test_files_fill_another_ledger(kept, fresh, tmp_path):
    export_cells(kept, [cell()], tmp_path / "cells")
    assert import_runs(fresh, [cell()], tmp_path / "cells") == 3
    assert import_runs(fresh, [cell()], tmp_path / "cells") == 0
    assert measured(cell(), fresh) == measured(cell(), kept)


def test_export_loses_no_run_that_only_the_file_has(kept, fresh, tmp_path):
    export_cells(kept, [cell()], tmp_path / "cells")
    fresh.record(settings_hash(cell()), cell().id, [run(3)])
    export_cells(fresh, [cell()], tmp_path / "cells")
    assert read_cells(tmp_path / "cells")[0].n == 4


def test_a_cell_whose_settings_have_changed_since_is_not_taken(kept, fresh, tmp_path):
    export_cells(kept, [cell()], tmp_path / "cells")
    assert import_runs(fresh, [cell(settings={"alpha": 0.4})], tmp_path / "cells") == 0


@pytest.fixture
def trained(tmp_path):
    """A folder with what `gcnii train --json` prints for the cell's settings, and the document."""
    one = cell()
    document = fit(load("csbm"), one.model, seeds=range(2), device="cpu", **one.settings).summary()
    path = tmp_path / "train" / "csbm.json"
    path.parent.mkdir()
    path.write_text(json.dumps(document))
    return path, document


def test_what_train_printed_is_taken_where_all_settings_agree(fresh, trained):
    assert import_runs(fresh, [cell("Other", "deep-gcn"), cell()], trained[0].parent) == 2
    found = measured(cell(), fresh)
    assert [100 * run["test"] for run in trained[1]["runs"]] == list(found.test)
    assert {(run.device, run.versions, run.commit) for run in found.runs} == {("cpu", None, None)}


@pytest.mark.parametrize(
    "change", [{"settings": {"lr": 0.5}}, {"model": "gcnii-star"}, {"graph": "digits"}, {"splits": "60/20/20"}]
)
def test_what_train_printed_is_not_taken_otherwise(fresh, trained, change):
    assert import_runs(fresh, [cell(**change)], trained[0].parent) == 0


def test_a_run_on_another_split_than_its_seed_s_is_not_taken(fresh, trained):
    path, document = trained
    document["runs"][1]["split"] = 4
    path.write_text(json.dumps(document))
    assert import_runs(fresh, [cell()], path.parent) == 1


def test_a_file_that_holds_no_runs_is_named(fresh, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "thing.json").write_text("{}")
    with pytest.raises(ValueError, match=r"thing.json holds no runs: graph, model, settings and runs are needed"):
        import_runs(fresh, [cell()], tmp_path / "some")


def test_a_broken_cell_is_named(tmp_path):
    (tmp_path / "table2").mkdir()
    (tmp_path / "table2" / "x.json").write_text('{"printed": null, "runs": []}')
    with pytest.raises(ValueError, match=r"x.json is not a measured cell"):
        read_cells(tmp_path)


def test_a_stand_in_has_no_verdict(kept):
    assert measured(cell(), kept).verdict
    assert measured(cell(stand_in=True), kept).verdict is None
    assert measured(cell(printed=None), kept).verdict is None
