"""Runs move between the ledger and files, and only where they were measured alike."""

import json

import pytest
from support.tiny_cells import cell, run

from gcnii.data import load
from gcnii.results.fit import fit
from gcnii_paper.ledger import Ledger, export_cells, find_runs, measured, run_key
from gcnii_paper.tables.cells import read_cells
from gcnii_paper.tables.printed import Printed
from gcnii_paper.verdict import verdicts


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
        run_key(cell()),
        cell().id,
        [run(i, test=0.6 + i / 100, versions={"torch": "2"}) for i in range(3)],
    )
    return ledger


def take(ledger, cells, folder):
    """What `gcnii reproduce import` does; the number of new runs."""
    return ledger.record_all(find_runs(cells, folder).runs)


def test_a_cell_comes_back_from_its_file(kept, tmp_path):
    (path,) = export_cells(kept, [cell(), cell("Never run", "deep-gcn")], tmp_path / "cells")
    assert path == tmp_path / "cells" / "table2" / "gcnii-drawn.json"
    (found,) = read_cells(tmp_path / "cells")
    assert found == measured(cell(), kept)
    (verdict,) = verdicts([found]).values()
    assert (found.n, found.printed, verdict.word) == (3, Printed(60.0), "undecided")
    assert (found.mean, found.sd) == pytest.approx((61.0, 1.0))
    assert found.command == "gcnii reproduce table2 --only table2/gcnii/drawn"


def test_files_fill_another_ledger(kept, fresh, tmp_path):
    export_cells(kept, [cell()], tmp_path / "cells")
    assert take(fresh, [cell()], tmp_path / "cells") == 3
    assert take(fresh, [cell()], tmp_path / "cells") == 0
    assert measured(cell(), fresh) == measured(cell(), kept)


def test_export_loses_no_run_that_only_the_file_has(kept, fresh, tmp_path):
    export_cells(kept, [cell()], tmp_path / "cells")
    fresh.record(run_key(cell()), cell().id, [run(3)])
    export_cells(fresh, [cell()], tmp_path / "cells")
    assert read_cells(tmp_path / "cells")[0].n == 4


def test_runs_of_other_settings_are_replaced_by_name(kept, fresh, tmp_path):
    export_cells(kept, [cell()], tmp_path / "cells")
    changed = cell(settings={"alpha": 0.4})
    fresh.record(run_key(changed), changed.id, [run(0)])
    with pytest.warns(
        UserWarning,
        match=r"gcnii-drawn.json held 3 runs of other settings or of another graph, now repl",
    ):
        export_cells(fresh, [changed], tmp_path / "cells")
    assert read_cells(tmp_path / "cells")[0].n == 1


def test_a_stand_in_does_not_replace_the_paper_s_graph(kept, fresh, tmp_path):
    export_cells(kept, [cell()], tmp_path / "cells")
    instead = cell(graph="digits", stand_in=True)
    fresh.record(run_key(instead), instead.id, [run(0)])
    with pytest.warns(
        UserWarning, match=r"gcnii-drawn.json is left as it is: its runs are of the paper's graph"
    ):
        assert export_cells(fresh, [instead], tmp_path / "cells") == []
    assert read_cells(tmp_path / "cells")[0].n == 3


def test_a_cell_whose_settings_have_changed_since_is_not_taken(kept, fresh, tmp_path):
    export_cells(kept, [cell()], tmp_path / "cells")
    assert take(fresh, [cell(settings={"alpha": 0.4})], tmp_path / "cells") == 0


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
    assert take(fresh, [cell("Other", "deep-gcn"), cell()], trained[0].parent) == 2
    found = measured(cell(), fresh)
    assert [100 * run["test"] for run in trained[1]["runs"]] == list(found.test)
    assert {(run.device, run.versions, run.commit) for run in found.runs} == {("cpu", None, None)}


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {"lr": 0.5}},
        {"model": "gcnii-star"},
        {"graph": "digits"},
        {"splits": "60/20/20"},
    ],
)
def test_what_train_printed_is_not_taken_otherwise(fresh, trained, change):
    assert take(fresh, [cell(**change)], trained[0].parent) == 0


def test_what_was_trained_on_another_graph_of_the_same_name_is_not_taken(fresh, trained):
    path, document = trained
    path.write_text(json.dumps(document | {"fingerprint": "0" * 64}))
    assert take(fresh, [cell()], path.parent) == 0


def test_a_run_on_another_split_than_its_seed_s_is_not_taken(fresh, trained):
    path, document = trained
    document["runs"][1]["split"] = 4
    path.write_text(json.dumps(document))
    with pytest.warns(
        UserWarning,
        match=r"runs of .*csbm.json left out because their split is not their seed's: 1$",
    ):
        assert take(fresh, [cell()], path.parent) == 1


def test_a_file_that_holds_no_runs_is_named(fresh, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "thing.json").write_text("{}")
    with pytest.raises(
        ValueError, match=r"thing.json is not a document with runs: graph is missing; restore it"
    ):
        take(fresh, [cell()], tmp_path / "some")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"runs": 3}, "runs must be a list, got 3"),
        ({"runs": [3]}, r"runs\[0\] must be an object, got 3"),
        ({"cell": "table2/gcnii/drawn"}, "a cell needs its settings_hash"),
        ({"colour": 1}, r"runs\[0\].colour is unknown"),
        ({"split": None}, r"runs\[0\].split must be a whole number, got None"),
        ({"test": "abc"}, r"runs\[0\].test must be a number or null, got 'abc'"),
        ({"test": 85.3}, r"runs\[0\].test must lie in \[0, 1\], got 85.3"),
        ({"seed": -1}, r"runs\[0\].seed must lie in \[0, 2147483647\], got -1"),
        ({"seed": 10**30}, r"runs\[0\].seed must be a whole number, got 10*"),
        ({"seconds": -5.0}, r"runs\[0\].seconds must lie in \[0, inf\], got -5.0"),
        ({"seed": 0, "split": 0}, r"runs\[1\] has seed 0 again"),
    ],
)
def test_a_document_that_cannot_be_taken_in_is_named_and_none_is(fresh, trained, change, sentence):
    path, document = trained
    top = {name: value for name, value in change.items() if name in ("runs", "cell")}
    runs = [
        run | {name: value for name, value in change.items() if name not in top}
        for run in document["runs"]
    ]
    path.with_name("wrong.json").write_text(json.dumps({**document, "runs": runs, **top}))
    with pytest.raises(
        ValueError,
        match=f"wrong.json is not a document with runs: {sentence}; restore it, or move it away",
    ):
        take(fresh, [cell()], path.parent)
    assert fresh.cells() == set()


def test_a_bundle_beside_the_documents_is_left_out(fresh, trained):
    path, document = trained
    bundle = path.parent / "bundle" / "run.json"
    bundle.parent.mkdir()
    bundle.write_text(json.dumps(document | {"graph": {"name": document["graph"]}}))
    found = find_runs([cell()], path.parent)
    assert (len(found.runs), found.strangers) == (1, 1)


def test_a_training_that_was_stopped_is_left_out_by_name_and_the_others_are_taken(fresh, trained):
    path, document = trained
    path.with_name("stopped.json").write_text(json.dumps(document | {"interrupted": True}))
    with pytest.warns(
        UserWarning, match=r"stopped.json is left out: its training was interrupted"
    ) as told:
        assert take(fresh, [cell()], path.parent) == 2
    assert len(told) == 1


def test_documents_of_no_cell_are_counted(trained):
    path, document = trained
    path.with_name("other.json").write_text(json.dumps(document | {"model": "sgc"}))
    assert find_runs([cell()], path.parent).strangers == 1


def test_export_opens_no_data_set_that_no_run_is_of(kept, tmp_path):
    nowhere = cell("Far", graph="no such graph")
    shared = cell("GCNII again", table="table3")
    paths = export_cells(kept, [cell(), nowhere, shared], tmp_path / "cells")
    assert [path.parent.name for path in paths] == ["table2", "table3"]
    kept.record("hash", nowhere.id, [run(0)])
    with pytest.raises(ValueError, match="no such graph"):
        export_cells(kept, [cell(), nowhere], tmp_path / "half")
    assert not (tmp_path / "half").exists()


def test_export_finds_the_runs_of_a_cell_that_had_another_name(ledger, tmp_path):
    ledger.record(run_key(cell()), "table2/old-name/drawn", [run(0)])
    assert len(export_cells(ledger, [cell()], tmp_path / "cells")) == 1


def test_a_broken_cell_is_named(tmp_path):
    (tmp_path / "table2").mkdir()
    (tmp_path / "table2" / "x.json").write_text('{"printed": null, "runs": []}')
    with pytest.raises(ValueError, match=r"x.json is not a measured cell: cell is missing"):
        read_cells(tmp_path)


def test_a_cell_with_a_broken_run_is_named_too(kept, tmp_path):
    (path,) = export_cells(kept, [cell()], tmp_path)
    path.write_text(path.read_text().replace('"test": 0.6,', '"test": "x",'))
    with pytest.raises(
        ValueError,
        match=r"is not a measured cell: runs\[0\].test must be a number or null, got 'x'",
    ):
        read_cells(tmp_path)


def test_runs_behind_a_gap_in_the_seeds_are_told_when_they_are_left_out(fresh, tmp_path):
    one = cell()
    fresh.record(run_key(one), one.id, [run(0), run(2), run(3)])
    with pytest.warns(
        UserWarning, match=f"runs of {one.id} left out because seed 1 is missing before them: 2"
    ):
        (path,) = export_cells(fresh, [one], tmp_path)
    assert len(json.loads(path.read_text())["runs"]) == 1


def test_a_second_file_of_a_cell_is_refused(kept, tmp_path):
    (path,) = export_cells(kept, [cell()], tmp_path)
    path.with_name("old.json").write_bytes(path.read_bytes())
    with pytest.raises(
        ValueError, match=r"old\.json holds .*, whose file is .*drawn\.json; move it there, or away"
    ):
        read_cells(tmp_path)


@pytest.mark.parametrize("change", [{"graph": "texas"}, {"settings": {"layers": 99}}])
def test_a_cell_whose_hash_is_not_of_its_settings_is_left_out(kept, change, fresh, tmp_path):
    (path,) = export_cells(kept, [cell()], tmp_path / "cells")
    document = json.loads(path.read_text())
    for name, value in change.items():
        document[name] = document[name] | value if isinstance(value, dict) else value
    path.write_text(json.dumps(document))
    found = find_runs([cell()], tmp_path / "cells")
    assert (found.runs, found.strangers) == ([], 1)


def test_a_stand_in_has_no_verdict(kept):
    assert verdicts([measured(cell(), kept)])
    assert verdicts([measured(cell(stand_in=True), kept)]) == {}
    assert verdicts([measured(cell(printed=None), kept)]) == {}
