"""The documents of searches, and which try wins."""

import json
from pathlib import Path

from gcnii_paper import search as module
from gcnii_paper.search import SEARCHES, Search, read_tries, score, winners
from gcnii_paper.searching import run_search
from gcnii_paper.tables.registry import ADOPTED

KEPT = Path(__file__).parents[3] / "results" / "search"
TINY = Search(
    "tiny/gcnii/2", "csbm", "gcnii", {"layers": 2, "width": 4, "epochs": 2}, (({"lr": 0.02},),)
)


def test_ties_go_to_the_lower_loss_and_a_try_without_a_finite_loss_loses():
    low, high = {"val": [0.5], "val_loss": [1.0]}, {"val": [0.5], "val_loss": [2.0]}
    lost = {"val": [0.9], "val_loss": [None]}
    assert max([high, low, lost], key=score) is low
    assert min([high, low, lost], key=score) is lost


def test_a_try_that_was_given_up_loses_however_good_it_was():
    low = {"val": [0.1], "val_loss": [9.0]}
    given_up = {"val": [0.9], "val_loss": [0.1], "outcome": "given up"}
    assert max([given_up, low], key=score) is low


def test_a_winner_counts_after_enough_tries(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ENOUGH", 2)
    run_search(TINY, tmp_path, 1, "cpu")
    assert winners(tmp_path) == {}
    record = run_search(TINY, tmp_path, 2, "cpu")
    assert winners(tmp_path) == {TINY.name: record["winner"]}


def test_the_cells_have_the_winners_of_the_searches_that_are_kept():
    assert winners(KEPT) == ADOPTED


def test_every_search_that_is_kept_can_go_on():
    for path in KEPT.glob("*.json"):
        search = SEARCHES[json.loads(path.read_text())["search"]]
        first, *others = read_tries(path, search.about)
        assert (path.name, first["settings"]) == (search.file, search.fixed)
        for done in others:
            assert search.at(search.places(done["settings"])) == done["settings"]


def test_a_search_with_enough_tries_trains_nothing_and_stays_as_it_is():
    tries = json.loads((KEPT / "figure1-cora-2.json").read_text())["tries"]
    before, search = (KEPT / "figure1-cora-2.json").read_bytes(), SEARCHES["figure1/cora/2"]
    record = run_search(search, KEPT, len(tries), "cpu")
    assert (record["tries"], record["winner"]) == (tries, ADOPTED[search.name])
    assert record["command"] == "gcnii reproduce search figure1/cora/2 --trials 10"
    assert (KEPT / "figure1-cora-2.json").read_bytes() == before
