"""Settings are searched by validation alone."""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from gcnii.paper.search import search as module
from gcnii.paper.search.search import SEEDS, Search, run_search, score, winners
from gcnii.paper.search.spaces import SEARCHES, choose_searches
from gcnii.paper.tables.printed import TABLE_3
from gcnii.paper.tables.registry import cells_of
from gcnii.paper.tables.searched import ADOPTED
from gcnii.paper.tables.table3 import _searched
from gcnii.train.fit import fit_plan
from gcnii.train.plan import make_plan

ROOT = Path(__file__).parents[3]
AXES = (({"alpha": 0.1}, {"alpha": 0.5}), ({"lr": 0.01}, {"lr": 0.02}, {"lr": 0.1}))
TINY = Search(
    "tiny/gcnii/2", "csbm", "gcnii", {"layers": 2, "width": 4, "epochs": 3, "patience": 3}, AXES
)


@pytest.fixture
def tries(monkeypatch):
    """The plans that are trained."""
    seen = []

    def listen(graph, plan, **options):
        seen.append(plan)
        return fit_plan(graph, plan, **options)

    monkeypatch.setattr(module, "fit_plan", listen)
    return seen


def test_the_winner_has_the_highest_mean_validation_score(tmp_path):
    record = run_search(TINY, tmp_path, 4, "cpu")
    means = [sum(done["val"]) / SEEDS for done in record["tries"]]
    assert record["budget"] == len(means) == 4
    assert (
        record["winner"] == record["tries"][means.index(max(means))]["settings"]
        or means.count(max(means)) > 1
    )
    assert json.loads((tmp_path / "tiny-gcnii-2.json").read_text()) == json.loads(
        json.dumps(record)
    )


def test_the_test_score_is_neither_asked_nor_kept(tmp_path, monkeypatch):
    def blind(*words, **options):
        result = fit_plan(*words, **options)
        for run in result.runs:
            run.test = float("nan")
        return result

    seeing = run_search(TINY, tmp_path / "a", 3, "cpu")
    monkeypatch.setattr(module, "fit_plan", blind)
    assert run_search(TINY, tmp_path / "b", 3, "cpu")["winner"] == seeing["winner"]
    assert '"test"' not in (tmp_path / "a" / TINY.file).read_text()


def test_ties_go_to_the_lower_loss_and_a_try_without_a_finite_loss_loses():
    low, high = {"val": [0.5], "val_loss": [1.0]}, {"val": [0.5], "val_loss": [2.0]}
    lost = {"val": [0.9], "val_loss": [None]}
    assert max([high, low, lost], key=score) is low
    assert min([high, low, lost], key=score) is lost


def test_a_try_that_diverges_loses_and_the_search_goes_on(tmp_path):
    wild = replace(TINY, axes=(({"lr": 1e30},),))
    preset, lost = run_search(wild, tmp_path, 2, "cpu")["tries"]
    assert lost["settings"]["lr"] == 1e30
    assert lost["val"] == lost["val_loss"] == [None] * SEEDS
    assert score(lost) < score(preset)


def test_if_every_try_diverges_nobody_wins(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ENOUGH", 1)
    assert (
        run_search(replace(TINY, fixed=TINY.fixed | {"lr": 1e30}), tmp_path, 1, "cpu")["winner"]
        is None
    )
    assert winners(tmp_path) == {}


def test_the_first_try_is_the_preset_and_names_draw_the_same_tries_again():
    first, *others = islice(TINY.tries(), 20)
    assert first == TINY.fixed
    assert others == list(islice(TINY.tries(), 20))[1:]
    assert all(settings.keys() == TINY.fixed.keys() | {"alpha", "lr"} for settings in others)


def test_a_search_goes_on_where_it_stopped(tmp_path, tries):
    run_search(TINY, tmp_path, 2, "cpu")
    record = run_search(TINY, tmp_path, 4, "cpu")
    assert len(tries) == record["budget"] == 4
    assert len({json.dumps(done["settings"]) for done in record["tries"]}) == 4


def test_tries_that_are_kept_are_shown_too(tmp_path):
    told = []
    run_search(TINY, tmp_path, 2, "cpu")
    run_search(TINY, tmp_path, 3, "cpu", told.append)
    assert len(told) == 3
    assert told[0] == "layers 2, width 4, epochs 3, patience 3"


def test_two_at_one_search_lose_no_try_and_repeat_none(tmp_path, tries, monkeypatch):
    alone = module.fit_plan

    def meanwhile(*words, **options):
        monkeypatch.setattr(module, "fit_plan", alone)
        run_search(TINY, tmp_path, 3, "cpu")  # another process, while the first is at its first try
        return fit_plan(*words, **options)

    monkeypatch.setattr(module, "fit_plan", meanwhile)
    record = run_search(TINY, tmp_path, 4, "cpu")
    assert [done["settings"] for done in record["tries"]] == list(islice(module._fresh(TINY), 4))
    assert len(tries) == 4


@pytest.mark.parametrize("fits", [1, 0])
@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_a_try_too_large_for_the_memory_runs_seed_by_seed_or_loses(
    fits, error, tmp_path, monkeypatch
):
    seen = []

    def small(*words, batch, **options):
        seen.append(batch)
        if batch is None or batch > fits:
            raise error
        return fit_plan(*words, batch=batch, **options)

    monkeypatch.setattr(module, "fit_plan", small)
    record = run_search(TINY, tmp_path, 1, "cpu")
    assert seen == [None, 1]
    assert record["winner"] == (TINY.fixed if fits else None)


def test_a_small_space_ends_the_search(tmp_path, tries):
    assert run_search(TINY, tmp_path, 1000, "cpu")["budget"] == 7  # six points and the preset


def test_another_space_is_not_mixed_in(tmp_path):
    run_search(TINY, tmp_path, 1, "cpu")
    other = Search(TINY.name, "csbm", "gcnii", TINY.fixed, AXES[:1])
    with pytest.raises(ValueError, match="holds a search of another space; move it away"):
        run_search(other, tmp_path, 2, "cpu")


@pytest.mark.parametrize("search", SEARCHES.values(), ids=lambda search: search.name)
def test_every_space_holds_settings_of_its_model(search):
    for settings in islice(search.tries(), 5):
        make_plan(search.model, settings)


def test_what_was_published_is_not_searched():
    names = [search.name for search in choose_searches("table3/cora")]
    assert "table3/cora-jknet-drop/8" in names
    assert not {
        "table3/cora-jknet-drop/4",
        "table3/cora-gcn-drop/2",
        "table3/cora-incep-drop/64",
    } & set(names)
    with pytest.raises(
        ValueError, match="no search has 'table2' in its name; names are like table3"
    ):
        choose_searches("table2")


def test_gcnii_with_settings_of_each_depth_stands_below_table_3_where_they_were_searched_for():
    below = {cell.id for cell in cells_of("table3") if cell.row.endswith(", searched")}
    names = {search.name for search in choose_searches("-searched/")}
    assert len(names) == 30  # five depths beside Table 2's, three graphs, two models
    assert below == names & set(ADOPTED)
    one = _searched("cora", "GCNII*", 4)
    assert (one.id, one.model, one.extra) == (
        "table3/cora-gcnii-star-searched/4",
        "gcnii-star",
        True,
    )
    assert one.printed == TABLE_3["cora"]["gcnii-star"][4]


def test_a_winner_counts_after_enough_tries(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ENOUGH", 2)
    run_search(TINY, tmp_path, 1, "cpu")
    assert winners(tmp_path) == {}
    record = run_search(TINY, tmp_path, 2, "cpu")
    assert winners(tmp_path) == {TINY.name: record["winner"]}


def test_the_cells_have_the_winners_of_the_searches_that_are_kept():
    assert winners(ROOT / "results" / "search") == ADOPTED
