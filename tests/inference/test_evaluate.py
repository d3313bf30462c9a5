"""evaluate: each run on its own split's test nodes, beside baselines, with intervals."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics
from support import knobs

from gcnii import Graph, InputError, Split, data, fit, open_bundle

SMALL = {"layers": 2, "width": 8, "epochs": 10, "device": "cpu", "threads": 1}
KEYS = {
    *("graph", "model", "metric", "runs", "scores", "interval", "split", "nodes", "classes"),
    *("confusion", "baselines", "graph_helps", "groups", "calibration", "notes", "warnings"),
    *("positive", "differences"),
}


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch):
    """Numbers of draws matter to intervals only, and these tests train a few epochs."""
    monkeypatch.setattr("gcnii.targets.scores.RANKED", 0)
    monkeypatch.setattr(knobs.ROUNDS, 1)


def quietly(result, *args, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return result.evaluate(*args, **how)


def test_scores_are_those_of_what_predict_says_of_the_test_nodes(blocks, result, evaluation):
    test = blocks.splits[0].test
    P, y = result.predict_proba(blocks, "cpu")[test], blocks.labels[test]
    expected = {
        "accuracy": metrics.accuracy_score(y, P.argmax(1)),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, P.argmax(1)),
        "macro_f1": metrics.f1_score(y, P.argmax(1), average="macro"),
        "log_loss": metrics.log_loss(y, P),
        "roc_auc": metrics.roc_auc_score(y, P[:, 1]),
        "average_precision": metrics.average_precision_score(y, P[:, 1]),
    }
    assert {name: evaluation.scores[name].mean for name in expected} == pytest.approx(expected)
    assert evaluation.scores["accuracy"].mean == pytest.approx(result.test[0])
    assert (evaluation.nodes, evaluation.interval) == (test.sum(), "bootstrap over nodes")
    C = metrics.confusion_matrix(y, P.argmax(1))
    np.testing.assert_array_equal(evaluation.confusion, C)
    assert [row["support"] for row in evaluation.classes] == C.sum(1).tolist()
    assert [row["recall"] for row in evaluation.classes] == pytest.approx(C.diagonal() / C.sum(1))


def test_an_interval_holds_its_score(evaluation):
    for name, one in evaluation.scores.items():
        assert one.low <= one.mean <= one.high, name
        assert one.low < one.high


def test_the_document_is_json_and_has_the_keys(evaluation):
    document = json.loads(json.dumps(evaluation.document(), allow_nan=False))
    assert set(document) == KEYS
    assert set(document["scores"]["accuracy"]) == {"mean", "low", "high"}
    names = {"majority", "logistic regression", "label propagation"}
    names |= {"gradient boosting", "gradient boosting with neighbours"}
    assert set(document["baselines"]) == set(document["differences"]) == names
    assert set(document["graph_helps"]) == {"sentence", "difference", "low", "high"}
    assert set(document["groups"]) == {"degree", "homophily", "distance"}
    assert sum(one["nodes"] for one in document["calibration"]["bins"]) == document["nodes"]
    for rows in document["groups"].values():
        assert sum(row["nodes"] for row in rows) == document["nodes"]


def test_a_graph_that_says_more_than_the_features_helps(evaluation):
    assert evaluation.graph_helps.sentence.startswith("The graph helps: accuracy ")
    assert evaluation.graph_helps.difference.low > 0
    model, features = evaluation.scores, evaluation.baselines["logistic regression"]
    gap = model["accuracy"].mean - features["accuracy"].mean
    assert evaluation.graph_helps.difference.mean == pytest.approx(gap)


def test_a_graph_of_chance_does_not_help(lopsided):
    random = np.random.default_rng(1)
    y = random.integers(0, 2, lopsided.n)
    X = np.column_stack([y + 0.1 * random.normal(size=lopsided.n)] * 2)
    noise = replace(lopsided, y=y, X=X)
    found = quietly(fit(noise, alpha=0.1, **SMALL))
    assert found.graph_helps.difference.high < 0
    assert found.graph_helps.sentence.startswith("The graph does not help: ")


def test_what_nodes_cannot_show_is_not_claimed(lopsided):
    found = quietly(fit(lopsided, metric="accuracy", **SMALL))
    assert "no difference that these 160 test nodes could show" in found.graph_helps.sentence


def test_nothing_is_pooled_over_splits(blocks):
    one = blocks.splits[0]
    mixed = np.random.default_rng(0).permutation(blocks.n)
    other = type(one)(train=one.train[mixed], val=one.val[mixed], test=one.test[mixed])
    twice = replace(blocks, splits=(one, other))
    result = fit(twice, seeds=range(4), **SMALL)
    found = quietly(result)
    assert found.interval == "over runs"
    for i, run in enumerate(found.runs):
        test = twice.splits[run["split"]].test
        guess = result.alone(i).predict_ids(twice, "cpu")[test]
        assert run["accuracy"] == pytest.approx((guess == twice.labels[test]).mean())
        assert run["nodes"] == test.sum()
    mean = np.mean([run["accuracy"] for run in found.runs])
    assert found.scores["accuracy"].mean == pytest.approx(mean)
    mates = result.part(result.predicting())
    assert found.split == mates.runs[0].split
    test = twice.splits[found.split].test
    C = metrics.confusion_matrix(twice.labels[test], mates.predict_ids(twice, "cpu")[test])
    np.testing.assert_array_equal(found.confusion, C)


@pytest.mark.slow
def test_several_labels_have_f1_and_no_confusion():
    graph = data.load("ppi-like", graphs=3, n=100, degree=2)
    result = fit(graph, seeds=[0], **SMALL)
    found = quietly(result)
    assert found.metric == "micro_f1"
    assert found.scores["micro_f1"].mean == pytest.approx(result.test[0])
    assert (found.confusion, dict(found.groups)) == ((), {})
    assert {"f1", "average_precision"} <= set(found.classes[0])
    assert "one label each" in str(found)
    json.dumps(found.document(), allow_nan=False)


def test_without_baselines_the_majority_is_left(result):
    found = quietly(result, baselines=False)
    assert list(found.baselines) == ["majority"]
    assert found.graph_helps is None


def test_a_bundle_of_a_graph_made_in_python_asks_for_it(lopsided, tmp_path):
    result = fit(lopsided, metric="accuracy", **SMALL)
    opened = open_bundle(result.save(tmp_path / "bundle"))
    with pytest.raises(InputError, match="made in Python"):
        opened.evaluate()
    again = quietly(opened, lopsided, "cpu", baselines=False)
    assert again.document() == quietly(result, baselines=False).document()


def test_another_graph_is_refused_because_its_splits_mean_nothing(blocks, result):
    other = replace(blocks, edges=blocks.edges[:, 1:])
    with pytest.raises(InputError, match="is not the graph that the model was trained on"):
        result.evaluate(other)


def test_without_test_nodes_there_is_nothing_to_grade(blocks):
    split = blocks.splits[0]
    blind = replace(blocks, splits=(replace(split, test=np.zeros(blocks.n, bool)),))
    with pytest.raises(InputError, match="split 0 of csbm has no test nodes"):
        fit(blind, **SMALL).evaluate()


def test_one_of_several_settings_is_evaluated(blocks):
    several = fit(blocks, alpha=[0.1, 0.5], **SMALL)
    with pytest.raises(InputError, match="2 settings"):
        several.evaluate()


def test_a_metric_of_the_training_is_the_one_that_is_compared(lopsided):
    found = quietly(fit(lopsided, metric="auc", **SMALL))
    assert found.metric == "roc_auc"
    assert "ROC AUC" in found.graph_helps.sentence
    assert repr(found).startswith("Evaluation(gcnii on lopsided: ROC AUC ")


@pytest.mark.parametrize("seeds", [1, 3])
def test_fifteen_nodes_that_are_all_right_are_no_proof(blocks, seeds):
    X = np.column_stack([5 * blocks.labels - 2.5] * 2)
    split = blocks.splits[0]
    few = replace(split, test=split.test & (np.cumsum(split.test) <= 15))
    easy = replace(blocks, X=X, splits=(few,))
    found = quietly(fit(easy, seeds=range(seeds), metric="auc", **SMALL | {"epochs": 40}))
    assert found.scores["accuracy"].low == pytest.approx(0.796, abs=5e-4)
    for scores in (found.scores, *found.baselines.values()):
        for name, one in scores.items():
            assert one.low <= one.mean <= one.high, name
            assert one.low < 1 or one.mean < 1, name
    for row in found.classes:
        assert all(row[f"{name}_low"] < 1 == row[name] for name in ("precision", "recall", "f1"))
    assert found.graph_helps.difference.low < 0 < found.graph_helps.difference.high


def test_trees_that_are_better_are_said_with_the_paired_difference(monkeypatch):
    """The label is whether two columns have one sign, which no product of X and a matrix tells."""
    monkeypatch.setattr(knobs.ROUNDS, 20)
    random, n = np.random.default_rng(0), 600
    X = random.normal(size=(n, 2))
    roles = np.repeat(["train", "val", "test"], n // 3)
    edges = random.integers(0, n, (2, 900))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    graph = Graph(X=X, edges=edges, y=y, splits=(Split.of_roles(roles),), name="signs")
    found = quietly(fit(graph, seeds=[0], **SMALL))
    lead = found.differences["gradient boosting"]
    gap = found.scores["accuracy"].mean - found.baselines["gradient boosting"]["accuracy"].mean
    assert lead.mean == pytest.approx(gap)
    assert lead.low < lead.mean < lead.high < 0
    sentence = next(one for one in found.warnings if one.startswith("gradient boosting is better"))
    assert (
        f"a difference of {100 * gap:.1f} [{100 * lead.low:.1f}, {100 * lead.high:.1f}]" in sentence
    )
    assert f"{100 * gap:+.1f} [" in str(found)
