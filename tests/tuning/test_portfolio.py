"""Without a model, a graph of one's own gets several, combined by weights from validation."""

import re
import time
from dataclasses import replace

import numpy as np
import pytest

import gcnii
from gcnii.results.ensemble import Ensemble
from gcnii.tuning import portfolio
from gcnii.tuning.portfolio import prepared
from tests.support.neighbours import neighbours

SHORT = {"epochs": 8}


@pytest.fixture(scope="module")
def graph():
    return neighbours()


@pytest.fixture
def claimed(tmp_path):
    folder = tmp_path / "run"
    (folder / "members").mkdir(parents=True)
    return folder


def trained(graph, folder=None, **options):
    """The portfolio, and the names of what was trained for it."""
    names = []
    found = prepared(graph, SHORT, effort="quick", **options).run(folder, names.append)
    return found, names


def test_a_model_that_is_named_is_trained_alone(graph):
    assert isinstance(gcnii.fit(graph, "gcn", epochs=3), gcnii.Result)


def test_settings_that_one_model_has_ask_for_one_model(graph):
    assert isinstance(gcnii.fit(graph, layers=2, epochs=3), gcnii.Result)


def test_a_generated_graph_of_the_catalog_keeps_the_papers_gcnii():
    result = gcnii.fit(gcnii.load("csbm", n=60), epochs=3)
    assert result.plan.model == "gcnii"


def test_auto_asks_for_it_anywhere():
    found = gcnii.fit(gcnii.load("csbm", n=60), "auto", effort="quick", epochs=3)
    assert isinstance(found, Ensemble)


@pytest.mark.parametrize("given", [{"layers": 4}, {"checkpoint": "x.safetensors"}])
def test_what_one_model_has_is_refused_with_auto(graph, given):
    with pytest.raises(gcnii.InputError, match="for one model, and auto combines several"):
        gcnii.fit(graph, "auto", **given)


def test_effort_and_budget_are_refused_for_one_model(graph):
    with pytest.raises(gcnii.InputError, match="for a portfolio"):
        gcnii.fit(graph, "gcn", effort="quick")


def test_the_same_folder_is_gone_on_from_and_nothing_is_trained_twice(graph, claimed):
    first, names = trained(graph, claimed)
    again, more = trained(graph, claimed)
    assert names
    assert not [name for name in more if not name.endswith("-smoothed")]
    np.testing.assert_array_equal(again.predict_proba(graph), first.predict_proba(graph))


def test_a_member_that_fails_is_named_and_left_out(graph, monkeypatch):
    def fails(*_, **__):
        raise gcnii.InputError("no trees today")

    monkeypatch.setattr(portfolio.Trees, "fit", fails)
    found, _ = trained(graph)
    assert "trees was left out: no trees today" in found.left_out
    assert found.members


def test_without_lightgbm_it_says_what_to_install(graph, monkeypatch):
    monkeypatch.setattr(portfolio, "available", lambda: "trees need LightGBM")
    found, names = trained(graph)
    assert "trees need LightGBM" in found.left_out
    assert "trees" not in names


def test_given_splits_are_respected_and_each_has_its_own_weights():
    graph = neighbours(splits=[gcnii.stratified_split(np.arange(160) % 2, s) for s in (1, 2)])
    found, _ = trained(graph)
    assert found.folds == 0
    assert [run.split for run in found.runs] == [0, 1]
    assert len(found.blends) == 2


def test_a_split_without_validation_nodes_is_divided_into_folds_of_its_training_nodes():
    test = np.arange(160) < 40
    split = gcnii.Split(train=~test, val=np.zeros(160, bool), test=test)
    graph = neighbours(splits=[split])
    found, _ = trained(graph)
    assert found.folds == 3
    assert np.array_equal(found.held_out(graph), ~test)
    assert all(np.array_equal(one.test, test) for one in found.divided(graph).splits)
    with pytest.warns(UserWarning, match="no validation nodes; a fifth of its training nodes"):
        gcnii.fit(graph, "gcn", epochs=2)


def test_no_split_decides_what_is_smoothed_in_another():
    graph = neighbours(splits=[gcnii.stratified_split(np.arange(160) % 2, s) for s in (1, 2)])
    found, _ = trained(graph)
    names = {row["member"] for row in found.leaderboard()}
    smoothed = {name for name in names if name.endswith("-smoothed")}
    assert smoothed == {"mlp-smoothed", "features-smoothed"}


def test_a_budget_is_kept_and_what_it_left_out_is_said(graph):
    start = time.monotonic()
    found = prepared(graph, {"epochs": 4000, "patience": 4000}, budget=4, effort="best").run()
    assert time.monotonic() - start < 12  # this machine may be busy
    assert any("no time" in sentence for sentence in found.left_out)


@pytest.mark.parametrize("budget", ["soon", "-3s", 0])
def test_a_budget_that_is_no_time_is_refused(graph, budget):
    with pytest.raises(gcnii.InputError, match="budget must be a time such as 90s"):
        gcnii.fit(graph, budget=budget)


def test_several_labels_a_node_are_combined_as_well():
    graph = neighbours()
    y = np.stack([graph.labels, 1 - graph.labels, graph.X[:, 0] > 0], 1).astype(int)
    several = gcnii.Graph(X=graph.X, edges=graph.edges, y=y, splits=graph.splits)
    found, _ = trained(several)
    assert found.metric == "micro-F1"
    assert 0 < found.runs[0].threshold < 1
    assert found.predict(several).shape == (160, 3)


def test_what_costs_most_for_its_weight_makes_room_for_the_other_folds(graph):
    course = portfolio.prepared(graph, SHORT, effort="quick")
    course.train(None, lambda words: None)
    ensemble = course._ensemble(course.rows).weighed_on(graph)
    light = {one.name for one in ensemble.members} - portfolio._needed(ensemble)
    each = sum(one.seconds / len(one.runs) for one in ensemble.members)
    course.clock.start, course.clock.limit = time.monotonic(), 1e-9
    course._make_room(ensemble)
    assert light <= set(course.members)  # there is no time for any fold, so nobody leaves in vain
    course.clock.start, course.clock.limit = time.monotonic(), 1.5 * each
    course._make_room(ensemble)  # for one fold of two
    gone = light - set(course.members)
    weights = dict(
        zip([one.name for one in ensemble.members], ensemble.blends[0].weights, strict=True)
    )
    assert sum(weights[name] for name in gone) <= portfolio.SPARE
    assert portfolio._needed(ensemble) <= set(course.members)


def test_where_no_other_fold_fits_the_time_is_for_members_that_waited(graph, monkeypatch):
    monkeypatch.setattr(portfolio, "FIRST", 0.0)  # after the first member there is no time
    monkeypatch.setattr(portfolio.Course, "_further", lambda self: [0])
    found, _ = trained(graph)
    names = {row["member"] for row in found.leaderboard()}
    assert {"trees", "mlp", "gcnii"} <= names
    assert not found.left_out


def test_trees_that_would_take_the_time_of_all_others_are_left_out(graph):
    splits = [gcnii.stratified_split(graph.labels, seed) for seed in range(3)]
    course = portfolio.prepared(replace(graph, splits=tuple(splits)), SHORT, budget=60)
    course.clock.start, course.clock.limit = time.monotonic(), 1e-6
    course._train("trees", [0, 1, 2])
    assert not course.members
    assert re.fullmatch(r"trees was left out: its 3 runs would take \d+ s each", *course.left_out)
