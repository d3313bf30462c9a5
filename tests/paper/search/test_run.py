"""Settings are searched by validation alone, by the machinery of `gcnii tune`."""

import json
from dataclasses import replace
from statistics import mode

import numpy as np
import pytest
import torch
from optuna import create_study
from support import knobs

from gcnii.results.fit import Session, fit_plans
from gcnii.train.plan import make_plan
from gcnii.train.presets import preset
from gcnii.tuning import worker
from gcnii.tuning.question import Question
from gcnii.tuning.worker import Halving
from gcnii_paper.search import SEARCHES, SEEDS, Search, score
from gcnii_paper.searching import SETTINGS, PointProposer, finished_trial, run_search

AXES = (({"alpha": 0.1}, {"alpha": 0.5}), ({"lr": 0.01}, {"lr": 0.02}, {"lr": 0.1}))
TINY = Search(
    "tiny/gcnii/2", "csbm", "gcnii", {"layers": 2, "width": 4, "epochs": 3, "patience": 3}, AXES
)
SHAPES = replace(TINY, axes=(*AXES, ({"width": 2}, {"width": 3}, {"width": 4})))


def settings_of(record):
    return [done["settings"] for done in record["tries"]]


@pytest.fixture
def trained(monkeypatch):
    """The graph and the plans of each training."""
    seen = []

    def listen(graph, plans, *words, **options):
        seen.append((graph, plans))
        return fit_plans(graph, plans, *words, **options)

    monkeypatch.setattr(knobs.TRIAL_FIT, listen)
    return seen


def test_the_winner_has_the_highest_mean_validation_score(tmp_path):
    record = run_search(TINY, tmp_path, 4, "cpu")
    complete = [done for done in record["tries"] if "outcome" not in done]
    best = max(sum(done["val"]) / SEEDS for done in complete)
    (winner,) = [done for done in complete if done["settings"] == record["winner"]]
    assert sum(winner["val"]) / SEEDS == best
    assert record["budget"] == len(record["tries"]) == 4
    written = json.loads((tmp_path / "tiny-gcnii-2.json").read_text())
    assert written == json.loads(json.dumps(record))


def test_the_search_has_no_test_nodes_and_keeps_no_test_score(tmp_path, trained):
    run_search(TINY, tmp_path, 2, "cpu")
    tested = PointProposer(TINY).question.graph.splits[0].test
    assert tested.any()
    for graph, _ in trained:
        assert not any(split.test.any() for split in graph.splits)
        assert (graph.y[tested] == -1).all()
    assert '"test"' not in (tmp_path / TINY.file).read_text()


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_the_citation_graphs_are_searched_on_their_own_split(name, real_data):
    graph = real_data(name)
    (split,), (hidden,) = graph.splits, Question(graph).hidden.splits
    assert np.array_equal(split.train, hidden.train)
    assert np.array_equal(split.val, hidden.val)


def test_without_test_nodes_the_validation_scores_are_the_same(real_data):
    graph = real_data("cora")
    plan = make_plan("gcn-residual", {"layers": 2, "epochs": 3}, graph)
    whole, hidden = (
        fit_plans(one, [plan], Session(device="cpu"), seeds=[0]).runs[0]
        for one in (graph, Question(graph).hidden)
    )
    assert (whole.val, whole.val_loss) == (hidden.val, hidden.val_loss)


@pytest.mark.parametrize("name", ["table3/cora-jknet-drop/8", "figure1/cora/2"])
def test_a_try_is_its_settings_over_the_preset(name, real_data):
    real_data("cora")
    proposer = PointProposer(SEARCHES[name])
    study = create_study(direction="maximize", sampler=proposer.sampler)
    for _ in range(2):
        proposal = proposer.propose(study.ask(), None)
        settings = preset("cora", proposer.search.model) | proposal.trial.user_attrs[SETTINGS]
        assert proposal.plan == make_plan(proposer.search.model, settings)


def test_a_try_that_diverges_loses_and_the_search_goes_on(tmp_path):
    wild = replace(TINY, axes=(({"lr": 1e30},),))
    first, lost = run_search(wild, tmp_path, 2, "cpu")["tries"]
    assert lost["settings"]["lr"] == 1e30
    assert lost["val"] == lost["val_loss"] == [None] * SEEDS
    assert score(lost) < score(first)
    assert "outcome" not in lost


def test_if_every_try_diverges_nobody_wins(tmp_path):
    wild = replace(TINY, fixed=TINY.fixed | {"lr": 1e30})
    assert run_search(wild, tmp_path, 1, "cpu")["winner"] is None


def test_a_try_too_large_for_the_memory_loses(tmp_path, monkeypatch):
    def refuse(*words, **options):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(knobs.TRIAL_FIT, refuse)
    record = run_search(TINY, tmp_path, 1, "cpu")
    assert (record["winner"], record["tries"][0]["val"]) == (None, [None] * SEEDS)


def test_a_try_that_falls_behind_is_given_up_marked_and_never_wins(tmp_path, monkeypatch):
    monkeypatch.setattr(Halving, "_is_behind", lambda self, *_: self.names[0] > 0)
    first, *others = run_search(TINY, tmp_path, 3, "cpu")["tries"]
    assert [done.get("outcome") for done in (first, *others)] == [None, "given up", "given up"]
    assert all(len(done["val"]) == 1 for done in others)  # of a seed whose training was cut short
    record = run_search(TINY, tmp_path, 3, "cpu")
    assert record["winner"] == TINY.fixed


def test_the_first_try_is_the_preset_and_the_name_decides_what_follows(tmp_path):
    first, *others = settings_of(run_search(TINY, tmp_path / "a", 4, "cpu"))
    assert first == TINY.fixed
    assert others == settings_of(run_search(TINY, tmp_path / "b", 4, "cpu"))[1:]
    assert all(settings.keys() == TINY.fixed.keys() | {"alpha", "lr"} for settings in others)


def test_a_search_goes_on_where_it_stopped(tmp_path, trained):
    before = run_search(TINY, tmp_path, 2, "cpu")["tries"]
    assert len(trained) == 2 * SEEDS
    record = run_search(TINY, tmp_path, 4, "cpu")
    assert record["tries"][:2] == json.loads(json.dumps(before))
    assert len({json.dumps(one) for one in settings_of(record)}) == record["budget"] == 4
    assert len({str(plans) for _, plans in trained}) == 4
    assert settings_of(record) == settings_of(run_search(TINY, tmp_path / "at once", 4, "cpu"))


@pytest.mark.parametrize("good", [2, 3, 4])
def test_what_is_proposed_is_learnt_from_the_document(good):
    rates = tuple({"lr": lr / 100} for lr in range(1, 11))
    proposer = PointProposer(replace(SHAPES, axes=(*SHAPES.axes[:1], rates, *SHAPES.axes[2:])))
    study = create_study(direction="maximize", sampler=proposer.sampler)
    points = [{"alpha": i % 2, "lr": i % 10, "width": i % 3} for i in range(20)]
    for settings in (SHAPES.fixed, *map(proposer.search.at, points)):
        val = 0.9 if settings["width"] == good else 0.1
        study.add_trial(finished_trial(proposer.search, {"settings": settings, "val": [val]}))
    proposals = [proposer.propose(study.ask(), None) for _ in range(9)]
    assert mode(one.plan.model_settings["width"] for one in proposals) == good
    assert not any(one.trial.params in points for one in proposals)


def test_tries_that_are_kept_are_shown_too(tmp_path):
    told = []
    run_search(TINY, tmp_path, 2, "cpu")
    run_search(TINY, tmp_path, 3, "cpu", told.append)
    assert len(told) == 3
    assert told[0] == "layers 2, width 4, epochs 3, patience 3"


def test_two_at_one_search_lose_no_try_and_repeat_none(tmp_path, monkeypatch):
    def meanwhile(*words, **options):
        monkeypatch.setattr(knobs.TRIAL_FIT, fit_plans)
        run_search(TINY, tmp_path, 3, "cpu")  # another process, while the first is at its first try
        return fit_plans(*words, **options)

    monkeypatch.setattr(knobs.TRIAL_FIT, meanwhile)
    told = []
    record = run_search(TINY, tmp_path, 5, "cpu", told.append)
    assert len({json.dumps(one) for one in settings_of(record)}) == record["budget"] == 5
    assert len(told) == 5


def test_two_that_have_tried_the_same_propose_different_points_from_then_on(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "gcnii_paper.searching.UntriedPoints.reseed_rng", lambda self: seen.append(self)
    )
    run_search(TINY, tmp_path, 3, "cpu")
    assert seen == []
    file, document = tmp_path / TINY.file, (tmp_path / TINY.file).read_text()
    file.unlink()

    def meanwhile(*words, **options):
        file.write_text(document)
        return fit_plans(*words, **options)

    monkeypatch.setattr(knobs.TRIAL_FIT, meanwhile)
    assert run_search(TINY, tmp_path, 3, "cpu")["tries"] == json.loads(document)["tries"]
    assert len(seen) == 1


def test_a_document_that_another_process_overwrote_is_made_whole_again(tmp_path):
    def overwrite(words):
        if "lr" in words and len(seen) < 2:
            (tmp_path / TINY.file).write_text(seen[0])  # without the try that was told of
        seen.append((tmp_path / TINY.file).read_text())

    seen = []
    record = run_search(TINY, tmp_path, 3, "cpu", overwrite)
    assert len({json.dumps(one) for one in settings_of(record)}) == record["budget"] == 3


def test_a_small_space_ends_the_search(tmp_path):
    record = run_search(TINY, tmp_path, 1000, "cpu")
    assert record["budget"] == 7  # six points and the preset
    assert len({json.dumps(one) for one in settings_of(record)}) == 7


def test_tries_of_several_shapes_are_begun_at_once_where_there_is_room(tmp_path, monkeypatch):
    monkeypatch.setattr(worker.Worker, "room", lambda *_: 32)  # as on a GPU
    record = run_search(SHAPES, tmp_path, 14, "cpu")
    assert len({json.dumps(one) for one in settings_of(record)}) == record["budget"] == 14
    assert len({one["width"] for one in settings_of(record)}) == 3


def test_another_space_is_not_mixed_in(tmp_path):
    run_search(TINY, tmp_path, 1, "cpu")
    other = replace(TINY, axes=AXES[:1])
    with pytest.raises(ValueError, match="holds a search of another space; move it away"):
        run_search(other, tmp_path, 2, "cpu")
