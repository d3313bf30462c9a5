"""After it was measured, an ensemble can be trained once more on every label."""

import json
from dataclasses import replace

import numpy as np
import pytest

import gcnii
from gcnii.results.ensemble import Networks
from gcnii.tuning.portfolio import prepared
from gcnii.tuning.refit import refitted
from tests.support.neighbours import neighbours

SHORT = {"epochs": 6}


@pytest.fixture(scope="module")
def graph():
    return neighbours()


@pytest.fixture(scope="module")
def measured(graph):
    return prepared(graph, SHORT, effort="quick").run()


@pytest.fixture(scope="module")
def again(graph, measured):
    return refitted(measured, graph)


@pytest.fixture(scope="module")
def saved(again, tmp_path_factory):
    return again.save(tmp_path_factory.mktemp("bundles") / "refit")


def test_every_label_trains_and_the_scores_are_those_from_before(graph, measured, again):
    assert np.array_equal(again.roles(graph)["train"], graph.labelled)
    assert np.array_equal(again.test, measured.test)
    assert np.array_equal(again.val, measured.val)
    assert "measured before it was trained on every label" in repr(again)


def test_weights_temperature_and_epochs_are_fixed_by_what_was_measured(measured, again):
    assert again.blends == measured.blends
    assert again.runs[0].temperature == pytest.approx(measured.runs[0].temperature)
    for one, before in zip(again.members, measured.members, strict=True):
        assert one.name == before.name
        assert [run.seed for run in one.runs] == [run.seed for run in before.runs]
        if isinstance(one, Networks):
            epochs = np.mean([run.best_epoch + 1 for run in before.runs])
            assert {run.epochs for run in one.runs} == {max(round(epochs), 1)}


def test_what_is_refitted_has_seen_the_labels_of_the_test_nodes(graph, measured, again):
    test = graph.splits[0].test
    changed = graph.labels.copy()
    changed[test] = 1 - changed[test]
    other = gcnii.Graph(X=graph.X, edges=graph.edges, y=changed, splits=graph.splits)
    wrong = refitted(measured, other)
    assert not np.allclose(wrong.predict_proba(other), again.predict_proba(graph), atol=0.01)


def test_it_is_saved_and_opened_and_says_when_it_was_measured(graph, again, saved):
    opened = gcnii.open_bundle(saved)
    assert np.allclose(opened.predict_proba(graph), again.predict_proba(graph), atol=1e-6)
    record = json.loads((saved / "run.json").read_text())
    assert record["scores"] == "measured before it was trained on every label"
    card = (saved / "card.md").read_text()
    assert "This was measured before it was trained on every label" in card
    assert "## How it errs" not in card
    assert "validation nodes" not in card


def test_it_grades_no_label_that_it_was_trained_on(graph, saved):
    opened = gcnii.open_bundle(saved)
    score = f"{100 * opened.test[0]:.1f}"
    with pytest.raises(gcnii.InputError, match=f"every label, .* a test accuracy of {score} %"):
        opened.evaluate(graph)
    with pytest.raises(gcnii.InputError, match="sets rest on labels that the members were not"):
        opened.predict_sets(graph)


def test_what_a_folder_holds_is_not_refitted_twice(graph, measured, again, saved, monkeypatch):
    def fails(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr("gcnii.tuning.refit.fit_plans", fails)
    monkeypatch.setattr("gcnii.tuning.refit.Trees.fit", fails)
    same = refitted(measured, graph, folder=saved)
    assert np.allclose(same.predict_proba(graph), again.predict_proba(graph), atol=1e-6)


@pytest.mark.parametrize("several", [False, True])
def test_splits_that_are_given_and_several_labels_are_refitted_as_well(graph, several):
    y = np.stack([graph.labels, 1 - graph.labels], 1) if several else graph.labels
    splits = [gcnii.stratified_split(y, seed) for seed in (1, 2)]
    given = gcnii.Graph(X=graph.X, edges=graph.edges, y=y, splits=splits)
    before = prepared(given, {"epochs": 3}, effort="quick").run()
    found = refitted(before, given)
    assert found.test == pytest.approx([before.test.mean()])
    assert found.predict(given).shape == y.shape


@pytest.mark.parametrize("given", [{"refit": "some"}, {"refit": "all", "model": "gcn"}])
def test_only_a_portfolio_is_refitted_and_only_on_all_labels(graph, given):
    with pytest.raises(gcnii.InputError, match=r"refit must be all|refit are for a portfolio"):
        gcnii.fit(graph, **given)


def test_dated_nodes_are_refitted_on_every_label_up_to_the_latest(graph):
    whole = replace(graph, splits=(), times=np.arange(graph.n, dtype=float))
    dated = gcnii.split_by_time(whole)
    again = refitted(prepared(dated, SHORT, effort="quick").run(), dated)
    assert again.refitted
    assert again.predict(dated, "cpu").shape == (graph.n,)
    # A network trained on the past alone would not know the last labels.
    assert all(one.result.trained_on.splits[0].train.all() for one in again.networks)
