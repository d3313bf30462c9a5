"""Warnings: one sentence, with numbers, for what makes a score worth less than it looks."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gcnii import Graph, Split, fit
from gcnii.inference.groups import twins
from gcnii.results.card import never_predicted, short_form
from gcnii.targets import Classes
from gcnii.train.recipe import Recipe

SMALL = {"layers": 2, "width": 8, "epochs": 10, "device": "cpu", "threads": 1}
ROLES = np.repeat(["train", "val", "test"], [100, 40, 60])


def warned(graph, **how):
    """The warnings of a short training's evaluation."""
    result = fit(graph, **SMALL | how)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = result.evaluate(baselines=False)
    assert [str(one.message) for one in caught] == list(found.warnings)
    return found.warnings


def ring(n=200, roles=ROLES, y=None, X=None, edges=None):
    """A ring of two classes in turns, each node with features of its own."""
    random = np.random.default_rng(0)
    y = np.arange(n) % 2 if y is None else y
    X = random.normal(size=(n, 6)) + 3 * y[:, None] if X is None else X
    edges = np.stack([np.arange(n), (np.arange(n) + 2) % n]) if edges is None else edges
    return Graph(X=X, edges=edges, y=y, splits=(Split.of_roles(roles),), classes=("a", "b"))


def test_a_model_that_is_right_is_not_warned_of():
    assert warned(ring(), epochs=60) == ()


def test_a_class_that_is_never_predicted_is_named_and_the_majority_is_not_beaten(lopsided):
    never, unbeaten = warned(lopsided, metric="accuracy")
    rare = int((lopsided.labels[lopsided.splits[0].test] == 1).sum())
    assert never.startswith(f"class 'rare' is never predicted, though {rare} test nodes have it")
    assert unbeaten.startswith("accuracy 9")
    assert "does not beat naming the largest class for every node (9" in unbeaten
    assert "balanced accuracy (50.0)" in unbeaten


def test_the_short_form_warns_of_the_same(lopsided):
    result = fit(lopsided, metric="accuracy", **SMALL)
    short = short_form(result)
    assert short.score == short.majority == pytest.approx(result.test[0])
    assert short.balanced_accuracy == 0.5
    assert short.warnings == warned(lopsided, metric="accuracy")
    usual, f1 = (f"{100 * one:.1f}" for one in (short.majority, short.macro_f1))
    line = f"accuracy {usual} (majority {usual}) · balanced accuracy 50.0 · macro-F1 {f1}"
    assert short.lines()[0] == line


def test_the_short_form_of_another_metric_compares_like_with_like(lopsided):
    result = fit(lopsided, metric="auc", **SMALL)
    line, document = short_form(result).lines()[0], short_form(result).document()
    auc, usual = (f"{100 * document[name]:.1f}" for name in ("score", "majority"))
    assert line.startswith(f"ROC AUC of class rare {auc} (majority {usual}) · average precision ")
    assert (document["measured"], usual) == ("ROC AUC of class rare", "50.0")


def test_the_short_form_of_macro_f1_has_it_once(lopsided):
    line = short_form(fit(lopsided, metric="f1", **SMALL)).lines()[0]
    assert line.startswith("macro-F1 ")
    assert line.count("macro-F1") == 1


def test_what_the_training_was_told_is_not_advised_again(lopsided):
    never, unbeaten = warned(lopsided, metric="accuracy")
    assert never.endswith(
        "weigh rare classes in training: --class-weight balanced (in Python, "
        "class_weight='balanced')"
    )
    assert unbeaten.endswith("class_weight='balanced') or --metric f1")
    assert "--metric" not in " ".join(warned(lopsided, metric="auc"))
    weighed = " ".join(warned(lopsided, metric="accuracy", class_weight="balanced"))
    assert "does not beat" in weighed
    assert "--" not in weighed
    recipe = Recipe(class_weight="balanced")
    sentence = never_predicted(
        Classes(2, ("a", "b")), np.array([False, True]), np.array([5.0, 2.0]), recipe
    )
    assert sentence.endswith(
        "class 'b' is never predicted, though 2 test nodes have it; label more nodes of it"
    )


def test_weights_are_not_advised_for_a_class_that_is_not_rare():
    never, there = np.array([False, False, True]), np.array([17.0, 18.0, 15.0])
    assert never_predicted(Classes(3), never, there, Recipe()).endswith(
        "15 test nodes have it; search better settings with `gcnii tune`"
    )


def test_the_short_form_of_several_runs_is_their_mean(blocks):
    result = fit(blocks, seeds=range(3), **SMALL)
    short = short_form(result)
    assert short.score == pytest.approx(result.test.mean())
    one = [short_form(result.alone(i)) for i in range(3)]
    assert short.macro_f1 == pytest.approx(np.mean([each.macro_f1 for each in one]))


def test_of_very_much_work_the_short_form_takes_the_best_runs_split(blocks, monkeypatch):
    monkeypatch.setattr("gcnii.results.card.KEPT", 0)
    twice = replace(blocks, splits=(*blocks.splits, *blocks.splits))
    result = fit(twice, seeds=range(4), **SMALL)
    mates = result.predicting()
    assert len(mates) == 2
    assert short_form(result).score == pytest.approx(result.test[mates].mean())


def test_other_degrees_in_training_than_in_test_are_said():
    hubs = np.stack([np.repeat(np.arange(100), 9), np.random.default_rng(0).integers(0, 100, 900)])
    edges = np.concatenate([ring().edges, hubs], 1)
    sentences = warned(ring(edges=edges), epochs=60)
    assert any("training nodes have" in one and "Kolmogorov-Smirnov" in one for one in sentences)


def test_other_homophily_in_training_than_in_test_is_said():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 200)
    y[:100] = np.repeat([0, 1], 50)  # training nodes stand beside their like
    edges = np.stack([np.arange(200), (np.arange(200) + 1) % 200])
    sentences = warned(ring(y=y, edges=edges), epochs=60)
    assert any("of the neighbours of training nodes have" in one for one in sentences)


def test_copies_of_training_nodes_among_the_test_nodes_are_counted():
    graph = ring()
    X, y = graph.X.copy(), graph.labels.copy()
    X[140:160], y[140:160] = X[:20], y[:20]
    copied = ring(X=X, y=y)
    by_links, by_features = twins(copied, copied.splits[0])
    assert (by_links.copied.sum(), by_features.copied.sum(), by_features.same) == (0, 20, 1.0)
    assert not by_features.copied[20:].any()
    sentence = by_features.sentence(np.arange(60) < 40)
    assert sentence.startswith(
        "20 of 60 test nodes (33%) have the same features as a training node, and 100% of them "
        "its label, so that a model can copy it (on the others, 50.0 % are right)"
    )


def test_stored_zeros_and_their_order_do_not_make_sparse_rows_differ():
    rows = sp.csr_array(([2.0, 1.0, 0.0, 1.0, 2.0, 3.0], [3, 0, 1, 0, 3, 2], [0, 3, 5, 6]), (3, 5))
    split = Split.of_roles(["train", "test", "val"])
    graph = Graph(X=rows, edges=np.zeros((2, 0), int), y=[0, 0, 1], splits=(split,))
    by_links, by_features = twins(graph, split)
    assert (by_links.copied.tolist(), by_features.copied.tolist()) == ([False], [True])


def test_copies_that_say_nothing_of_the_label_are_no_matter():
    graph = ring()
    y = np.random.default_rng(3).integers(0, 2, 200)
    X = graph.X.copy()
    X[140:160] = X[:20]
    copied = ring(X=X, y=y)
    _, by_features = twins(copied, copied.splits[0])
    assert by_features.sentence(np.ones(60, bool)) == ""


def test_chameleon_has_copies_and_cora_has_none(real_data):
    graph = real_data("chameleon")
    by_links = next(iter(twins(graph, graph.splits[0])))
    assert (by_links.copied.sum(), len(by_links.copied)) == (273, 456)
    assert by_links.same > 0.99
    assert by_links.sentence(np.zeros(456, bool)).startswith("273 of 456 test nodes (60%)")
    cora = real_data("cora")
    right = np.ones(1000, bool)
    assert [one.sentence(right) for one in twins(cora, cora.splits[0])] == ["", ""]
