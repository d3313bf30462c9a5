"""Imbalanced classes and several labels a node: what scores measure, what a loss weighs, and above
which probability a label is predicted.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from support.tape import record

from gcnii import data, open_bundle
from gcnii.errors import BundleError, GraphError, InputError
from gcnii.graph import Split
from gcnii.inference.predict import label_table
from gcnii.results.fit import fit
from gcnii.train.group import CAPTURES
from gcnii.train.recipe import Recipe, in_force

SMALL = {"layers": 2, "width": 8, "epochs": 30, "lr": 0.02, "device": "cpu"}
NAMES = {"f1": "macro-F1", "auc": "ROC AUC", "ap": "average precision"}


@pytest.fixture(scope="module")
def graph():
    return data.load("csbm", n=120, degree=6, signal=1.0, labels_per_class=20)


@pytest.fixture(scope="module")
def rare(graph):
    """One node in seven is of class 1, in two splits."""
    y = np.where(np.arange(graph.n) % 7 == 0, 1, 0)
    X = graph.X + np.random.default_rng(0).normal(size=graph.X.shape) + y[:, None] * 0.7
    roles = np.array(["train", "val", "test"])
    splits = tuple(Split.of_roles(roles[(np.arange(120) // 2 + i) % 3]) for i in range(2))
    return replace(graph, X=X, y=y, splits=splits, classes=None)


@pytest.fixture(scope="module")
def many(graph):
    """Three labels, all rare: few of them are above one half."""
    draw = np.random.default_rng(0)
    y = (draw.random((120, 3)) < np.where(graph.labels[:, None] == 1, 0.45, 0.1)).astype(int)
    roles = np.array(["train", "val", "test"])
    splits = tuple(Split.of_roles(roles[(np.arange(120) + i) % 3]) for i in range(2))
    return replace(graph, y=y, splits=splits, classes=("a", "b", "c"))


@pytest.fixture(scope="module")
def tuned(many):
    return fit(many, seeds=range(3), split=0, label_threshold="validation", **SMALL)


def measured(metric, y, P):
    """The metric of two classes' probabilities, as scikit-learn has it."""
    if metric == "f1":
        return f1_score(y, P.argmax(1), average="macro")
    return (roc_auc_score if metric == "auc" else average_precision_score)(y, P[:, 1])


@pytest.mark.parametrize("metric", NAMES)
def test_the_scores_of_a_run_are_those_of_its_predictions(metric, rare):
    result = fit(rare, seeds=[0], metric=metric, **SMALL)
    P, split = result.predict_proba(rare, "cpu"), rare.splits[0]
    for role in ("val", "test"):
        mask = getattr(split, role)
        expected = measured(metric, rare.labels[mask], P[mask])
        assert getattr(result, role)[0] == pytest.approx(expected)
    assert result.metric == result.summary()["metric"] == NAMES[metric]
    assert f": test {NAMES[metric]} " in repr(result)


@pytest.mark.parametrize("metric", NAMES)
def test_a_monitor_keeps_the_weights_that_are_best_by_its_metric(metric, rare):
    result = fit(rare, monitor=f"val_{metric}", **SMALL)
    for run in result.runs:
        scores = [val for *_, val in run.curve]
        assert run.best_epoch == np.argmax(scores)
        assert run.val == max(scores)
    assert result.best == np.argmax(result.val)
    assert result.metric == NAMES[metric]
    same = fit(rare, monitor="val_score", metric=metric, **SMALL)
    assert [run.curve for run in same.runs] == [run.curve for run in result.runs]


@pytest.mark.parametrize("metric", NAMES)
def test_replicas_are_graded_together_as_alone_and_without_waiting(metric, rare, monkeypatch):
    tapes = []
    monkeypatch.setitem(CAPTURES, "cpu", record(tapes))
    how = SMALL | {"epochs": 10, "metric": metric, "precision": "float64"}
    how |= {"class_weight": "balanced"}
    together = fit(rare, seeds=range(4), batch=4, **how)
    assert tapes
    assert not tapes[0].waits
    monkeypatch.delitem(CAPTURES, "cpu")
    alone = fit(rare, seeds=range(4), batch=1, **how)
    np.testing.assert_allclose(together.test, alone.test)
    np.testing.assert_allclose(
        *([run.curve[-1] for run in one.runs] for one in (together, alone)), rtol=1e-7
    )


def test_a_neutral_setting_leaves_the_key_of_a_run_as_it_was():
    names = {"metric", "class_weight", "label_threshold"}
    assert not names & in_force(vars(Recipe())).keys()
    assert in_force(vars(Recipe(metric="auc")))["metric"] == "auc"
    assert in_force({}) == {}


def test_a_metric_that_the_monitor_names_need_not_be_said_again():
    said, meant = Recipe(monitor="val_auc", metric="auc"), Recipe(monitor="val_auc")
    assert said.scored_by == meant.scored_by == "auc"
    assert in_force(vars(said)) == in_force(vars(meant))


def test_a_monitor_of_another_metric_is_refused():
    sentence = "monitor val_auc needs metric auc, got f1; leave metric at auto, or monitor val_sc"
    with pytest.raises(InputError, match=sentence):
        Recipe(monitor="val_auc", metric="f1")


def test_validation_nodes_of_one_class_are_refused_where_they_must_be_put_in_order(rare):
    split = rare.splits[1]
    alike = replace(split, val=split.val & (rare.labels == 0))
    odd = replace(rare, splits=(rare.splits[0], alike))
    sentence = "ROC AUC needs nodes with and without a label, but all validation nodes of split 1 "
    with pytest.raises(GraphError, match=sentence):
        fit(odd, monitor="val_auc", **SMALL)
    assert fit(odd, monitor="val_auc", seeds=[0], **SMALL | {"epochs": 1})
    assert fit(odd, monitor="val_f1", **SMALL | {"epochs": 1})


def test_balanced_classes_find_more_of_the_rare_one(rare):
    plain, balanced = (
        fit(rare, seeds=[0], class_weight=weight, **SMALL) for weight in ("none", "balanced")
    )
    found = [(one.predict_ids(rare, "cpu") == 1).sum() for one in (plain, balanced)]
    assert found[1] > found[0]
    first = [one.runs[0].curve[0][0] for one in (plain, balanced)]
    assert first[0] == pytest.approx(first[1], rel=0.5)  # the mean weight is 1


def test_thresholds_are_for_two_classes_or_several_labels(graph):
    sentence = (
        "label_threshold validation is for two classes or several labels per node, but nodes of "
        "csbm have one of 3; leave it out"
    )
    three = replace(graph, y=np.arange(graph.n) % 3, classes=None)
    with pytest.raises(InputError, match=sentence):
        fit(three, label_threshold="validation", **SMALL)


def test_a_threshold_of_validation_is_found_after_training_and_grades_the_run(many, tuned):
    plain = fit(many, seeds=range(3), split=0, label_threshold="half", **SMALL)
    assert [run.curve for run in tuned.runs] == [run.curve for run in plain.runs]
    for i, run in enumerate(tuned.runs):
        guess = tuned.alone(i).predict(many, "cpu")
        for role in ("val", "test"):
            mask = getattr(many.splits[0], role)
            f1 = f1_score(many.labels[mask], guess[mask], average="micro")
            assert getattr(run, role) == pytest.approx(f1)
    assert (tuned.val >= plain.val).all()
    assert tuned.val.mean() > plain.val.mean()


def test_a_mean_of_probabilities_is_held_against_the_mean_of_the_thresholds(many, tuned):
    thresholds = [run.threshold for run in tuned.runs]
    assert len(set(thresholds)) == 3
    P = tuned.predict_proba(many, "cpu")
    assert np.array_equal(tuned.predict(many, "cpu"), np.mean(thresholds) < P)
    P = tuned.predict_proba(many, "cpu", ensemble=False)
    alone = tuned.predict(many, "cpu", ensemble=False)
    assert np.array_equal(alone, thresholds[tuned.best] < P)


def test_the_table_of_labels_and_the_bundle_know_the_thresholds(many, tuned, tmp_path):
    opened = open_bundle(tuned.save(tmp_path))
    assert opened.summary() == tuned.summary()
    for ensemble in (True, False):
        ids = opened.predict(many, "cpu", ensemble=ensemble)
        expected = [";".join(np.array(many.classes)[row == 1]) for row in ids]
        assert list(label_table(opened, many, "cpu", ensemble=ensemble)["label"]) == expected


def test_an_order_has_no_threshold_so_its_score_stays(many):
    how = SMALL | {"seeds": [0], "metric": "auc"}
    tuned = fit(many, label_threshold="validation", **how)
    assert tuned.test[0] == fit(many, **how).test[0]
    assert tuned.runs[0].threshold != 0.5


@pytest.mark.parametrize(
    ("threshold", "sentence"),
    [
        (None, "runs must have a threshold, by the settings"),
        (1.5, "thresholds of runs must lie between 0 and 1"),
        ("half", r"runs\[0\].threshold must be a number, got 'half'"),
    ],
)
def test_a_record_whose_thresholds_do_not_fit_is_refused(tuned, threshold, sentence, tmp_path):
    path = tuned.save(tmp_path) / "run.json"
    document = json.loads(path.read_text())
    del document["seal"]
    run = document["runs"][0]
    run |= {"threshold": threshold}
    if threshold is None:
        del run["threshold"]
    path.write_text(json.dumps(document))
    with pytest.raises(BundleError, match=sentence):
        open_bundle(tmp_path)
