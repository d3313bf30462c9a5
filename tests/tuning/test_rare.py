"""A portfolio, and the question of a search, where one of two classes is rare."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

from gcnii import Graph, open_bundle, stratified_split
from gcnii.errors import BundleError
from gcnii.files import document_key
from gcnii.results.card import board
from gcnii.results.ensemble import held_out
from gcnii.results.fit import Session
from gcnii.train.presets import Point
from gcnii.tuning.portfolio import prepared
from gcnii.tuning.question import Question

POINTS = [
    Point(name, "mlp", {"width": 8, "epochs": 20, "lr": 0.05, "dropout": share})
    for name, share in (("firm", 0.0), ("loose", 0.5))
]


@pytest.fixture(scope="module")
def graph():
    random, n = np.random.default_rng(0), 600
    y = (random.random(n) < 0.1).astype(int)
    X = random.normal(size=(n, 3)) + 1.5 * y[:, None]
    edges, splits = random.integers(0, n, (2, n)), (stratified_split(y, seed=0),)
    return Graph(X=X, edges=edges, y=y, splits=splits, classes=("usual", "fraud"))


@pytest.fixture(scope="module")
def ensemble(graph):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return prepared(graph, {}, Session(device="cpu"), points=POINTS).run()


def test_one_line_says_what_chooses_and_none_where_the_metric_is_given(graph):
    with pytest.warns(UserWarning, match=r"9 % of the labels of graph are fraud: average precis"):
        prepared(graph, {}, Session(device="cpu"), points=POINTS)
    assert prepared(graph, {"metric": "ap"}, points=POINTS).recipe.label_threshold == "validation"


def test_the_threshold_is_that_of_nodes_that_were_held_out(graph, ensemble):
    P, target = ensemble.predict_proba(graph, "cpu"), ensemble.target
    held = held_out(ensemble.trainings(graph))
    own = target.best_threshold(P[held], graph.labels[held], ensemble.positive)
    assert ensemble.threshold_of(1) == ensemble.runs[0].threshold == pytest.approx(own)
    named = ensemble.predict(graph, "cpu") == "fraud"
    np.testing.assert_array_equal(named, P[:, 1] > own)


def test_the_leaderboard_has_roc_auc_and_accuracy_beside(ensemble):
    heads, rows = board(ensemble)
    assert heads[2:5] == ("val", "ROC AUC", "accuracy")
    assert {len(row) for row in rows} == {len(heads)}
    assert all(row["roc_auc"] > 0.7 for row in ensemble.leaderboard())
    assert "roc_auc" not in ensemble.member("firm").leaderboard()[0]


def test_the_bundle_keeps_threshold_and_leaderboard(graph, ensemble, tmp_path):
    opened = open_bundle(ensemble.save(tmp_path / "own"))
    assert opened.leaderboard() == ensemble.leaderboard()
    assert opened.threshold_of(1) == ensemble.threshold_of(1)
    path = tmp_path / "own" / "run.json"
    record = {name: one for name, one in json.loads(path.read_text()).items() if name != "seal"}
    record["beside"] = record["beside"][:1]
    path.write_text(json.dumps(record | {"seal": document_key(record)}))
    with pytest.raises(
        BundleError, match="beside must have a row for each member and the ensemble"
    ):
        open_bundle(tmp_path / "own")


def test_a_search_goes_by_average_precision_and_tries_what_finds_the_class(graph):
    question = Question.of(graph)
    assert (question.metric, question.measured) == ("ap", "average precision")
    assert {"class_weight", "focal"} <= question.space("gcn").keys()
    even = replace(graph, y=np.arange(graph.n) % 2)
    assert {"class_weight", "focal"}.isdisjoint(Question.of(even).space("gcn"))
    assert "focal" not in Question.of(even, metric="f1").space("gcn")
