"""What is missing of the tables: the cheapest first, within a budget, and nothing is lost."""

import json
import time
from math import inf
from pathlib import Path

import pytest
from support.made_up_cells import cell_of
from support.tiny_cells import cell, run

from gcnii_paper.ledger import Ledger, measured, run_key
from gcnii_paper.reproduce import OutOfTime, Shift, lacking, reproduce, total_seconds
from gcnii_paper.tables.registry import ADOPTED

SEARCHES = Path(__file__).parents[2] / "results" / "search"
SLOW = cell("Slow", "gcnii", settings={"layers": 4})
QUICK = cell("Quick", "deep-gcn")
OWN = cell("Own", "deep-gcn", settings={"layers": 1}, extra=True)


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as book:
        yield book


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """The cells whose runs tell how long others take."""
    monkeypatch.setattr("gcnii_paper.reproduce.cells_of", lambda table: (SLOW, QUICK, OWN))


def record(ledger, one, seconds, runs=1, **how):
    done = [run(seed, seconds=seconds, **how) for seed in range(runs)]
    ledger.record(run_key(one), one.id, done)


def shift(ledger, tmp_path, **how):
    options = {"device": "cpu", "deadline": inf} | how
    return Shift(ledger, tmp_path / "search", tmp_path / "adopted.json", **options)


def test_the_cheapest_is_first_and_rows_of_our_own_are_last(ledger, tmp_path):
    record(ledger, SLOW, 9.0)
    record(ledger, QUICK, 2.0)
    found = lacking([SLOW, OWN, QUICK], ledger, tmp_path, "cpu")
    assert [str(one) for one in found] == [
        "table2/quick/drawn: 2 runs, about 4 s",
        "table2/slow/drawn: 2 runs, about 18 s",
        "table2/own/drawn: 3 runs, about 3 s",  # half as deep as Quick
    ]
    assert total_seconds(found) == pytest.approx(25)


def test_what_was_timed_on_this_kind_of_device_counts_before_the_rest(ledger, tmp_path):
    record(ledger, QUICK, 2.0, device="cuda: H200")
    (found,) = lacking([QUICK], ledger, tmp_path, "cpu")
    assert found.run_seconds == 20
    record(ledger, OWN, 3.0)
    (found,) = lacking([QUICK], ledger, tmp_path, "cpu")
    assert found.run_seconds == 6


def test_a_cell_with_all_its_runs_is_not_missing_nor_is_a_stand_in(ledger, tmp_path):
    record(ledger, QUICK, 2.0, runs=3)
    one, other = cell(stand_in=True), cell("Twin", "deep-gcn")
    assert lacking([QUICK, one, other], ledger, tmp_path, "cpu") == []  # Twin has Quick's runs
    more = cell("More", "deep-gcn", runs=5)
    assert [(one.cell, one.runs) for one in lacking([QUICK, more], ledger, tmp_path, "cpu")] == [
        (more, 2)
    ]


def test_a_cell_whose_settings_are_to_be_ours_lacks_its_search_too(ledger, tmp_path, monkeypatch):
    monkeypatch.delitem(ADOPTED, "table3/pubmed-gcn-drop/16")
    cells = [cell_of(f"table3/pubmed-{row}/16") for row in ("gcn", "gcn-drop")]
    found = lacking(cells, ledger, tmp_path, "cpu")
    assert [(one.runs, one.tries) for one in found] == [(10, 10)] * 2
    found = lacking(cells, ledger, SEARCHES, "cpu")
    assert [(one.runs, one.tries) for one in found] == [(10, 0)] * 2
    some = json.loads((SEARCHES / found[0].search.file).read_text("utf-8"))
    some |= {"tries": some["tries"][:8], "budget": 8}
    (tmp_path / found[0].search.file).write_text(json.dumps(some), "utf-8")
    two = lacking(cells, ledger, tmp_path, "cpu")
    assert [one.tries for one in two] == [2, 2]
    assert sum(one.searching for one in two) == pytest.approx(2 * two[0].searching)


def test_the_winner_of_a_search_is_adopted_and_trained_with_and_without_dropedge(
    ledger, tmp_path, monkeypatch
):
    trained, name = [], "table3/pubmed-gcn-drop/16"
    winner = ADOPTED[name]
    monkeypatch.delitem(ADOPTED, name)

    class Work:
        batch = 1

        def __init__(self, one, *words):
            trained.append(one)

        def advance(self):
            return 0

    monkeypatch.setattr("gcnii_paper.reproduce.CellWork", Work)
    cells = [cell_of(f"table3/pubmed-{row}/16") for row in ("gcn", "gcn-drop")]
    work = Shift(ledger, SEARCHES, tmp_path / "adopted.json", "cpu", inf)
    work.work(lacking(cells, ledger, SEARCHES, "cpu"), str)
    assert json.loads((tmp_path / "adopted.json").read_text("utf-8"))[name] == winner
    assert {one.id: one.settings for one in trained} == {
        cells[0].id: winner | {"drop_edge": 0.0, "layers": 16},
        cells[1].id: winner | {"layers": 16},
    }
    assert all("settings are ours" in one.note for one in trained)


def test_nothing_is_begun_that_would_not_end_in_time_unless_nothing_would(ledger, tmp_path):
    record(ledger, QUICK, 1000.0)
    record(ledger, SLOW, 0.01)
    told = []
    soon = shift(ledger, tmp_path, deadline=time.monotonic() + 30)
    assert soon.work(lacking([QUICK, SLOW], ledger, tmp_path, "cpu"), told.append) == [SLOW]
    assert measured(SLOW, ledger).n == 3
    soon.work(lacking([QUICK, SLOW], ledger, tmp_path, "cpu"), told.append)
    assert told[-2] == "nothing ends in this time; beginning with table2/quick/drawn"
    assert measured(QUICK, ledger).n == 3


def test_a_run_that_time_cuts_off_goes_on_where_it_stopped(ledger, tmp_path, monkeypatch):
    one = cell(settings={"epochs": 30, "patience": 30})
    with Ledger(tmp_path / "whole.sqlite") as whole:
        reproduce([one], whole, device="cpu")
        expected = [run.test for run in measured(one, whole).runs]
    epochs = []

    def stop(deadline):
        epochs.append(deadline)
        if len(epochs) == 45:  # in the middle of the second run
            raise OutOfTime

    monkeypatch.setattr("gcnii_paper.reproduce.stop_after", stop)
    told = []
    first = shift(ledger, tmp_path)
    first.work(lacking([one], ledger, tmp_path, "cpu"), told.append)
    assert told[-1] == "time is up; what was not finished goes on next time"
    assert measured(one, ledger).n == 1
    ledger.close()  # as the end of the process does
    with Ledger(ledger.path) as again:
        shift(again, tmp_path).work(lacking([one], again, tmp_path, "cpu"), told.append)
        assert [run.test for run in measured(one, again).runs] == expected
    # a resumed training reports its earlier epochs once more
    assert len(epochs) == 45 + 15 + 30 + 15
