"""On a graph of one's own a study goes on from what `gcnii train` combines, and ends as that."""

import json
import shutil
from unittest import mock

import numpy as np
import pytest
from support import knobs
from support.neighbours import neighbours
from support.small_studies import QUICK, few_runs, finished

import gcnii
from gcnii.results.ensemble import Ensemble, held_out
from gcnii.tuning import portfolio
from gcnii.tuning.portfolio import EXTENTS, Extent
from gcnii.tuning.storage import sqlite_url
from gcnii.tuning.trials import Trial, joining

SMALL = Extent(("gcnii-mild", "gcn", "mlp"), 2, 45, 4)
TRIALS = 6  # the three networks of the portfolio, and three of the search


@pytest.fixture(scope="module", autouse=True)
def _small():
    small = mock.patch.dict(EXTENTS, standard=SMALL)
    with small, mock.patch(knobs.ROUNDS, 5), few_runs():
        yield


@pytest.fixture(scope="module")
def graph():
    return neighbours()


@pytest.fixture(scope="module")
def closed(graph, tmp_path_factory):
    """A study, and its folder."""
    folder = tmp_path_factory.mktemp("study") / "one"
    return gcnii.tune(graph, trials=TRIALS, out=folder, **QUICK), folder


@pytest.fixture
def trained(monkeypatch):
    """The names of the members that are trained from now on."""
    names, train = [], portfolio.Course._trained
    monkeypatch.setattr(
        portfolio.Course, "_trained", lambda *words: names.append(words[1]) or train(*words)
    )
    return names


def test_the_first_trials_are_the_networks_that_train_trains(graph, closed):
    first = sorted(closed[0].trials, key=lambda one: one.number)[: len(SMALL.points)]
    course = portfolio.prepared(graph, {"epochs": 8, "patience": 3})
    assert [one.member for one in first] == list(SMALL.points)
    assert [one.settings for one in first] == [course._plan(name).settings for name in SMALL.points]


def test_the_search_goes_on_with_settings_that_the_portfolio_does_not_have(closed):
    found = [one for one in closed[0].trials if not one.member]
    assert len(found) == TRIALS - len(SMALL.points)
    assert not any(one.default for one in found)


def test_the_result_is_an_ensemble_of_both(closed):
    names = {row["member"] for row in closed[0].leaderboard}
    assert isinstance(closed[0].result, Ensemble)
    assert {"trees", "label-propagation", "gcnii-mild", "mlp", "ensemble"} <= names
    found = {f"trial-{one.number}" for one in closed[0].trials if not one.member}
    assert names & found


def held_out_loss(ensemble, graph):
    """The log loss of an ensemble of folds where its nodes were held out."""
    (P,), (blend,) = ensemble.scored(graph, "cpu").kept.each, ensemble.blends
    nodes = held_out(ensemble.splits(blend, ensemble.divided(graph)))
    return ensemble.target.badness(P[nodes], graph.labels[nodes]).mean()


def test_it_is_not_worse_on_validation_than_that_of_train(graph, closed):
    alone = gcnii.fit(graph, epochs=8, patience=3, device="cpu", threads=1)
    assert held_out_loss(closed[0].result, graph) <= held_out_loss(alone, graph) + 1e-9


def test_what_does_not_improve_the_ensemble_has_no_part_in_it(graph):
    best = gcnii.tune(graph, trials=TRIALS, **QUICK)
    assert best.notes == ("What the search found does not improve the ensemble on validation.",)
    assert not any(one.name.startswith("trial-") for one in best.result.members)
    assert any(row["member"].startswith("trial-") for row in best.leaderboard)


def test_the_folder_is_a_bundle_of_an_ensemble(graph, closed):
    best, folder = closed
    bundle = gcnii.open_bundle(folder)
    assert isinstance(bundle, Ensemble)
    np.testing.assert_allclose(bundle.predict_proba(graph), best.result.predict_proba(graph))
    document = json.loads((folder / "study.json").read_text())
    assert document["winner"]["settings"] == best.settings == best.winner.settings
    assert document["final"]["model"] == "auto"
    assert document["leaderboard"][-1]["member"] == "ensemble"


def test_the_winner_is_the_best_of_those_with_the_runs_of_a_member(closed):
    best = closed[0].winner
    judged = [one for one in closed[0].trials if one.member and one.outcome == "complete"]
    assert best.rank >= max(one.rank for one in judged)
    assert len(best.val) == SMALL.folds


def test_the_verdict_compares_the_ensemble_with_its_best_member_without_the_graph(closed):
    ((name, lead),) = closed[0].differences().items()
    assert name in ("mlp", "trees-own")
    assert lead.error > 0  # of one split, over its nodes
    assert f"above {name}, the best member without it." in closed[0].verdict


def test_the_same_call_with_more_trials_trains_no_member_again(graph, closed, tmp_path, trained):
    folder = tmp_path / "again"
    shutil.copytree(closed[1], folder)
    best = gcnii.tune(graph, trials=TRIALS + 1, out=folder, **QUICK)
    assert len(best.trials) == TRIALS + 1
    assert not {*SMALL.points, "trees", "label-propagation"} & set(trained)


def test_a_portfolio_that_was_broken_off_is_gone_on_from(graph, closed, tmp_path, trained):
    folder = tmp_path / "again"
    shutil.copytree(closed[1], folder)
    for name in ("run.json", "study.json"):
        (folder / name).unlink()
    kept = {path.name for path in (folder / "members").iterdir() if path.is_dir()}
    gcnii.tune(graph, trials=TRIALS, out=folder, **QUICK)
    assert not kept & set(trained)
    members = [one.member for one in finished(sqlite_url(folder))[0] if one.member]
    assert sorted(members) == sorted(SMALL.points)  # none is a trial twice


def test_a_budget_that_train_needs_leaves_nothing_for_the_search(graph):
    best = gcnii.tune(graph, budget=0.5, **QUICK)
    assert isinstance(best.result, Ensemble)


def trial(number, width=64, score=0.5, member="", outcome="complete"):
    settings = {"layers": 2, "width": width}
    return Trial(number, "gcn", settings, (score,), (1.0,), (4,), 0.1, 1.0, outcome, False, member)


def test_of_settings_of_one_shape_the_best_joins():
    some = [trial(0, score=0.9, member="gcn"), trial(1, score=0.7), trial(2, score=0.8)]
    some += [trial(3, 128, 0.6), trial(4, 256, 0.99, outcome="given up")]
    assert [one.number for one in joining(some, ())] == [2, 3]
    assert [one.number for one in joining(some, {2})] == [3]
