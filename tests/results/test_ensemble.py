"""An ensemble predicts, is measured, saved and opened as a result of one model is."""

import json
import shutil

import numpy as np
import pytest

import gcnii
from gcnii.data.splits import folded
from gcnii.results.ensemble import combined
from tests.support.neighbours import neighbours

SHORT = {"effort": "quick", "epochs": 12, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    return neighbours()


@pytest.fixture(scope="module")
def ensemble(graph):
    return gcnii.fit(graph, **SHORT)


@pytest.fixture
def bundle(ensemble, tmp_path):
    return ensemble.save(tmp_path / "bundle")


def test_the_answer_is_the_weighted_mean_of_the_members_probabilities(ensemble, graph):
    (blend,) = ensemble.blends
    assert sum(blend.weights) == pytest.approx(1)
    test = graph.splits[0].test
    mean = sum(
        weight * ensemble.member(member.name).scored(graph).kept.each[0][test]
        for member, weight in zip(ensemble.members, blend.weights, strict=True)
    )
    P = ensemble.target.tempered(mean, ensemble.runs[0].temperature)
    np.testing.assert_allclose(ensemble.predict_proba(graph)[test], P, atol=1e-12)


def test_it_opens_as_it_was_saved_without_the_data_of_its_training(ensemble, bundle, graph):
    opened = gcnii.open_bundle(bundle)
    np.testing.assert_array_equal(opened.predict_proba(graph), ensemble.predict_proba(graph))
    assert repr(opened) == repr(ensemble)
    assert opened.leaderboard() == ensemble.leaderboard()
    assert [run.summary() for run in opened.runs] == [run.summary() for run in ensemble.runs]


def test_a_node_that_validates_a_fold_is_answered_by_the_runs_that_did_not_train_on_it(graph):
    divided = folded(graph, 3)
    answers = np.random.default_rng(0).random((3, graph.n, 2))
    found = combined(answers, divided.splits)
    for i, split in enumerate(divided.splits):
        np.testing.assert_allclose(found[split.val], answers[i][split.val])
    test = graph.splits[0].test
    np.testing.assert_allclose(found[test], answers.mean(0)[test])


def test_folds_divide_what_is_not_tested_and_each_class_evenly(graph):
    divided = folded(graph, 4)
    known = graph.splits[0].train | graph.splits[0].val
    assert np.array_equal(np.sum([one.val for one in divided.splits], 0), known)
    assert all(np.array_equal(one.test, graph.splits[0].test) for one in divided.splits)
    counts = [np.bincount(graph.labels[one.val], minlength=2) for one in divided.splits]
    assert np.ptp(counts, axis=0).max() <= 1
    assert folded(graph, 4) is divided


def test_no_test_label_has_a_part_in_it(graph):
    split = gcnii.stratified_split(graph.labels, 1)
    flipped = np.where(split.test, 1 - graph.labels, graph.labels)
    said = []
    for y in (graph.labels, flipped):
        own = gcnii.Graph(X=graph.X, edges=graph.edges, y=y, splits=(split,))
        said.append(gcnii.fit(own, **SHORT).predict_proba(own))
    np.testing.assert_array_equal(*said)


def test_a_member_can_be_asked_alone_by_its_name(ensemble, graph):
    name = ensemble.members[0].name
    alone = ensemble.member(name)
    assert alone.predict_proba(graph).shape == (graph.n, 2)
    assert alone.title == name
    with pytest.raises(gcnii.InputError, match=f"no member 'nosuch'.*{name}"):
        ensemble.member("nosuch")


def test_a_member_of_a_bundle_has_no_test_score_before_it_is_measured(ensemble, graph, tmp_path):
    opened, name = gcnii.open_bundle(ensemble.save(tmp_path / "b")), ensemble.members[-1].name
    assert np.isnan(opened.member(name).test).all()
    assert repr(opened.member(name)).startswith(f"{name}, on {graph.name}: test accuracy –")
    row = next(one for one in ensemble.leaderboard() if one["member"] == name)
    assert opened.member(name).val.mean() == pytest.approx(row["val"])
    assert opened.knowing(graph).member(name).test == pytest.approx(ensemble.member(name).test)


def test_the_leaderboard_has_each_member_once_and_the_ensemble_last(ensemble):
    *rows, last = ensemble.leaderboard()
    names = [row["member"] for row in rows]
    assert len(set(names)) == len(names)
    assert last["member"] == "ensemble"
    assert sum(row["weight"] for row in rows) == pytest.approx(1, abs=1e-3)
    assert [row["val_loss"] for row in rows] == sorted(row["val_loss"] for row in rows)
    assert {"features", "graph"} <= {row["sees"] for row in rows}


def test_sets_hold_the_true_class_as_often_as_promised(ensemble, graph):
    sets = ensemble.predict_sets(graph, 0.8)
    test = np.flatnonzero(graph.splits[0].test)
    assert sets[test, graph.labels[test]].mean() >= 0.7


@pytest.mark.filterwarnings("ignore:label propagation, .* does as well")
def test_it_is_evaluated_beside_baselines(ensemble, graph):
    found = ensemble.evaluate(graph)
    assert found.model == "auto"
    assert found.scores["accuracy"].mean == pytest.approx(ensemble.test[0])


def test_a_changed_member_is_refused(bundle):
    path = next(bundle.glob("members/*/member.json"))
    document = json.loads(path.read_text())
    document["runs"][0]["temperature"] = 3.0
    path.write_text(json.dumps(document))
    with pytest.raises(gcnii.BundleError, match=r"is not the file that run\.json was written with"):
        gcnii.open_bundle(bundle)


def test_a_bundle_without_one_of_its_members_is_refused(bundle):
    shutil.rmtree(next(path for path in (bundle / "members").iterdir() if path.is_dir()))
    with pytest.raises(gcnii.BundleError, match=r"is not the file that run\.json was written with"):
        gcnii.open_bundle(bundle)


def test_an_ensemble_of_other_settings_is_not_replaced_unasked(bundle, graph):
    other = gcnii.fit(graph, **{**SHORT, "epochs": 3})
    with pytest.raises(gcnii.InputError, match="the bundle of another ensemble"):
        other.save(bundle)
    other.save(bundle, overwrite=True)
    assert gcnii.open_bundle(bundle).settings["epochs"] == 3


def test_a_graph_with_new_nodes_at_its_end_is_answered_with_the_labels_of_the_training(
    ensemble, graph
):
    X = np.concatenate([graph.X, graph.X[:1]])
    edges = np.concatenate([graph.edges, [[0], [graph.n]]], 1)
    larger = gcnii.Graph(X=X, edges=edges, y=np.append(graph.labels, -1))
    assert ensemble.predict_proba(larger).shape == (graph.n + 1, 2)


def test_another_graph_is_answered_without_members_that_need_labels(ensemble):
    with pytest.warns(UserWarning, match="would need labels of"):
        P = ensemble.predict_proba(neighbours(n=40, seed=1))
    np.testing.assert_allclose(P.sum(1), 1)
