"""A rare class: what the kept threshold finds, as `evaluate` says and `predict` does."""

import json
import warnings

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_curve

from gcnii import Graph, Split, fit, open_bundle
from gcnii.errors import InputError
from gcnii.inference.page import cards, page
from gcnii.results.card import short_form

FOUND = ("threshold", "flagged", "precision", "recall")
SMALL = {"width": 8, "epochs": 40, "lr": 0.05, "device": "cpu", "threads": 1}


@pytest.fixture(scope="module")
def graph():
    """One node in twelve is fraud, as its features hint."""
    random, n = np.random.default_rng(0), 1200
    y = (random.random(n) > 1 / 12).astype(int)
    roles = random.permutation(np.repeat(["train", "val", "test"], n // 3))
    return Graph(
        X=random.normal(size=(n, 3)) + 1.5 * (y == 0)[:, None],
        edges=random.integers(0, n, (2, n)),
        y=y,
        splits=(Split.of_roles(roles),),
        classes=("fraud", "usual"),
        name="payments",
    )


@pytest.fixture(scope="module")
def result(graph):
    return quietly(fit, graph, "mlp", **SMALL)


@pytest.fixture(scope="module")
def evaluation(result):
    return quietly(result.evaluate, baselines=False)


def quietly(do, *args, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return do(*args, **how)


def flagged(result, graph, role="test"):
    nodes = getattr(graph.splits[0], role)
    return result.predict_ids(graph, "cpu")[nodes] == 0, graph.labels[nodes] == 0


def test_a_class_is_named_above_its_threshold_and_evaluate_says_how_often_rightly(
    graph, result, evaluation
):
    found, (called, truth) = evaluation.decision, flagged(result, graph)
    p = result.predict_proba(graph, "cpu")[graph.splits[0].test, 0]
    np.testing.assert_array_equal(called, p > found["threshold"])
    assert 0 < found["threshold"] < 0.5
    assert found["precision"] == pytest.approx((called & truth).sum() / called.sum())
    assert found["recall"] == pytest.approx((called & truth).sum() / truth.sum())
    assert found["flagged"] == pytest.approx(1000 * called.mean())


def test_of_several_runs_it_is_their_mean_that_is_held_against_the_mean_threshold(graph):
    several = quietly(fit, graph, "mlp", seeds=range(3), **SMALL)
    each = [several.alone(i) for i in range(3)]
    p = np.mean([one.predict_proba(graph, "cpu")[:, 0] for one in each], 0)
    threshold = np.mean([one.threshold_of(0) for one in each])
    found, said = short_form(several).found, several.evaluate(baselines=False).decision
    assert [found[one] for one in FOUND] == [said[one] for one in FOUND]
    np.testing.assert_array_equal(several.predict_ids(graph, "cpu") == 0, p > threshold)


def test_what_is_explained_is_what_is_predicted_even_if_another_class_is_likelier(graph, result):
    p = result.predict_proba(graph, "cpu")[:, 0]
    nodes = np.flatnonzero((p > result.threshold_of(0)) & (p < 0.5))
    found = result.explain(graph, int(nodes[0]), device="cpu")
    assert (found.label, found.predicted, found.holds) == ("fraud", "fraud", True)
    assert found.sentence.startswith(f"Node {nodes[0]} is predicted as fraud (probability 0.")


def test_the_curve_is_that_of_scikit_learn(graph, result, evaluation):
    test = graph.splits[0].test
    p = result.predict_proba(graph, "cpu")[test, 0]
    precision, recall, cuts = precision_recall_curve(graph.labels[test] == 0, p)
    known = {
        (round(r, 9), round(q, 9), c) for q, r, c in zip(precision, recall, cuts, strict=False)
    }
    for one in evaluation.decision["curve"]:
        assert (round(one["recall"], 9), round(one["precision"], 9), one["threshold"]) in known
    half = evaluation.decision["points"][1]
    assert half["recall"] == min(r for r in recall if r >= 0.5)
    expected = average_precision_score(graph.labels[test] == 0, p)
    assert evaluation.scores["average_precision"].mean == pytest.approx(expected)


def test_asked_of_the_other_class_the_threshold_is_what_is_left_to_one(result, evaluation):
    other = quietly(result.evaluate, baselines=False, positive="usual").decision
    assert other["threshold"] == pytest.approx(1 - evaluation.decision["threshold"])
    assert other["flagged"] == pytest.approx(1000 - evaluation.decision["flagged"])


def test_the_bundle_keeps_the_threshold_and_what_was_resolved(graph, result, tmp_path):
    opened = open_bundle(result.save(tmp_path / "b"))
    np.testing.assert_array_equal(flagged(opened, graph), flagged(result, graph))
    record = json.loads((tmp_path / "b" / "run.json").read_text())
    assert (record["settings"]["metric"], record["positive"]) == ("ap", "fraud")
    assert record["runs"][0]["threshold"] == result.runs[0].threshold


def test_a_dearer_miss_flags_more_and_its_price_is_said(graph):
    many, few = (quietly(fit, graph, "mlp", cost=cost, **SMALL) for cost in ("20:1", "1:3"))
    assert flagged(many, graph)[0].sum() > 2 * flagged(few, graph)[0].sum()
    found, (called, truth) = quietly(many.evaluate, baselines=False), flagged(many, graph)
    price = 20 * (truth & ~called).sum() + (called & ~truth).sum()
    costs = found.decision["costs"]
    assert costs["mean"] == pytest.approx(1000 * price / len(truth))
    assert costs["low"] < costs["mean"] < costs["none"]
    assert f"at 20:1, the errors on 1,000 nodes cost {costs['mean']:.0f} [" in str(found)


def test_a_cost_is_for_two_classes(graph):
    three = Graph(X=graph.X, edges=graph.edges, y=np.arange(graph.n) % 3, splits=graph.splits)
    with pytest.raises(InputError, match="cost 10:1 is for two classes or several labels"):
        fit(three, "mlp", cost="10:1", **SMALL)


def test_weights_and_a_focal_loss_are_undone_before_the_threshold(graph, result):
    for how in ({"class_weight": "balanced"}, {"focal": 2.0}):
        other = quietly(fit, graph, "mlp", **SMALL | how)
        (called, truth), (usual, _) = flagged(other, graph), flagged(result, graph)
        assert abs(called.sum() - usual.sum()) < 0.5 * usual.sum()
        p = other.predict_proba(graph, "cpu")[graph.splits[0].test, 0]
        assert p.mean() == pytest.approx(truth.mean(), abs=0.035)


def test_what_is_not_found_is_the_first_sentence(lopsided, graph, result, tmp_path):
    lost = quietly(fit, lopsided, "mlp", **SMALL)
    found, short = quietly(lost.evaluate, baselines=False), short_form(lost)
    assert short.first == found.unbeaten == found.warnings[0]
    assert found.unbeaten.startswith("Nothing found: average precision of class rare ")
    assert str(found).startswith(found.unbeaten)
    assert found.unbeaten == found.document()["unbeaten"]
    assert short_form(result).first == "" == quietly(result.evaluate, baselines=False).unbeaten


def test_the_short_form_has_all_three_scores_and_what_is_flagged(result, evaluation):
    first, second, *_ = short_form(result).lines()
    said = {name: f"{100 * one.mean:.1f}" for name, one in evaluation.scores.items()}
    ap = f"average precision of class fraud {said['average_precision']} (majority "
    assert first.startswith(ap)
    assert f"ROC AUC {said['roc_auc']} · accuracy {said['accuracy']} · " in first
    assert second.startswith(
        f"fraud above {100 * evaluation.decision['threshold']:.1f} %: of 1,000"
    )


def test_other_evaluations_have_no_threshold(blocks):
    document = quietly(fit(blocks, "mlp", **SMALL).evaluate, baselines=False).document()
    assert {"decision", "unbeaten"}.isdisjoint(document)


def test_the_page_draws_the_curve_and_explains_what_is_next_to_the_threshold(
    graph, result, evaluation
):
    html = quietly(page, result, graph, evaluation, "cpu")
    assert "Precision by recall" in html
    assert f"{100 * evaluation.decision['threshold']:.1f} (kept)" in html
    unsure, _ = quietly(cards, result, graph, "cpu")
    assert all(one.asked == one.label for one in unsure)
    gap = np.abs(result.predict_proba(graph, "cpu")[:, 0] - evaluation.decision["threshold"])
    asked = ~(graph.splits[0].train | graph.splits[0].val)
    assert gap[unsure[0].node] == gap[asked].min()
