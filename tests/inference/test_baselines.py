"""Baselines: what needs no model, or no graph, or no features."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from support import knobs

import gcnii
from gcnii import data
from gcnii.inference import baselines
from gcnii.inference.baselines import (
    OF_LABELS,
    baseline,
    baselines_of,
    notes,
    tie,
    training_rows,
)
from gcnii.members import linear, trees
from gcnii.targets import SeveralLabels, target_of


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setattr(knobs.ROUNDS, 1)


def test_the_majority_is_that_of_the_training_and_validation_nodes(lopsided):
    split = lopsided.splits[0]
    said = baseline("majority", lopsided, split)
    share = lopsided.labels[split.train | split.val].mean()
    assert (said.guess == 0).all()
    np.testing.assert_allclose(said.P, [[1 - share, share]] * 160)
    assert said.scores["roc_auc"] == 0.5


def test_where_training_classes_are_equal_validation_says_which_is_the_largest():
    y = np.array([0, 1, 1, 1, 0, 1])
    split = gcnii.Split.of_roles(["train", "train", "val", "val", "val", "test"])
    graph = gcnii.Graph(X=np.eye(6), edges=[[0], [1]], y=y, splits=(split,))
    assert baseline("majority", graph, split).guess.tolist() == [1]
    assert not list(tie(graph, split))


def test_classes_of_equal_size_are_said_and_the_first_is_named():
    split = gcnii.Split.of_roles(["train", "train", "val", "val", "test", "train"])
    y, names = [0, 1, 2, 1, 1, 2], ("a", "b", "c")
    graph = gcnii.Graph(X=np.eye(6), edges=[[0], [1]], y=y, splits=(split,), classes=names)
    assert baseline("majority", graph, split).guess.tolist() == [1]
    assert list(tie(graph, split)) == [
        "2 classes have the most labels, 2 each; majority names the first of them, b"
    ]


def test_on_cora_whose_training_classes_are_equal_the_majority_is_the_largest_class(real_data):
    graph = real_data("cora")
    assert baseline("majority", graph, graph.splits[0]).scores["accuracy"] == pytest.approx(0.319)


def test_logistic_regression_is_that_of_scikit_learn_with_the_best_c(blocks):
    split, y = blocks.splits[0], blocks.labels
    X = StandardScaler().fit(blocks.X[split.train]).transform(blocks.X)
    fitted = [LogisticRegression(C=C).fit(X[split.train], y[split.train]) for C in baselines.CS]
    best = max(fitted, key=lambda one: one.score(X[split.val], y[split.val]))
    said = baseline("logistic regression", blocks, split)
    np.testing.assert_allclose(said.P, best.predict_proba(X[split.test]), atol=1e-6)


def test_features_that_are_sparse_stay_sparse(blocks, monkeypatch):
    seen = []
    fit = baselines._fitted
    monkeypatch.setattr(baselines, "_fitted", lambda X, *rest: seen.append(X) or fit(X, *rest))
    words = replace(blocks, X=sp.csr_array(np.maximum(blocks.X, 0)))
    said = baseline("logistic regression", words, words.splits[0])
    assert all(sp.issparse(X) for X in seen)
    assert said.scores["accuracy"] > 0.5


def test_many_training_nodes_are_sampled(blocks, monkeypatch):
    monkeypatch.setattr(linear, "WORK", 0)
    monkeypatch.setattr(linear, "FEWEST", 10)
    rows = training_rows(blocks, blocks.splits[0])
    assert len(rows) == 10
    assert blocks.splits[0].train[rows].all()


def test_a_class_without_training_nodes_has_probability_zero(blocks):
    y = np.where(blocks.splits[0].test & (np.arange(blocks.n) % 2 == 0), 2, blocks.labels)
    more = replace(blocks, y=y, classes=("cat", "dog", "cow"))
    for name in OF_LABELS:
        assert baseline(name, more, more.splits[0]).P[:, 2].max() == 0


def test_one_class_alone_is_answered(blocks):
    alone = replace(blocks, y=np.where(blocks.splits[0].train, 1, blocks.labels))
    for name in OF_LABELS:
        assert (baseline(name, alone, alone.splits[0]).guess == 1).all()


@pytest.mark.slow
def test_several_labels_are_answered_with_a_threshold_of_validation():
    graph = data.load("ppi-like", graphs=3, n=100, degree=2)
    split = graph.splits[0]
    for name in baselines_of(target_of(graph)):
        said = baseline(name, graph, split)
        assert said.guess.shape == said.y.shape == said.P.shape
        assert said.scores["micro_f1"] > 0.3


def test_trees_with_neighbours_find_what_the_columns_do_not_say(blocks, monkeypatch):
    monkeypatch.setattr(knobs.ROUNDS, 100)
    alone, around = (
        baseline(name, blocks, blocks.splits[0]).scores["roc_auc"]
        for name in ("gradient boosting", "gradient boosting with neighbours")
    )
    assert around > alone + 0.1


def test_wide_features_and_many_nodes_are_reduced_with_a_note(blocks, monkeypatch):
    split = blocks.splits[0]
    assert [*notes(blocks, split)] == []
    words = sp.random_array((blocks.n, 400), density=0.05, format="csr", rng=0)
    assert [*notes(replace(blocks, X=words), split)] == [
        "gradient boosting saw 64 columns (SVD) in place of 400 features"
    ]
    monkeypatch.setattr(trees, "GROWTH", 0)
    monkeypatch.setattr(trees, "FEWEST", 10)
    assert "gradient boosting saw 10 of the 40 training nodes, to save time" in notes(blocks, split)
    said = baseline("gradient boosting", blocks, split)
    assert said.P.shape == (split.test.sum(), 2)


def test_without_trees_the_other_baselines_are_left_and_a_note_says_why(blocks, monkeypatch):
    trees_alone = {"gradient boosting", "gradient boosting with neighbours"}
    assert set(OF_LABELS) - {*baselines_of(SeveralLabels(121))} == trees_alone
    assert set(OF_LABELS) == {*baselines_of(SeveralLabels(2))}
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert set(OF_LABELS) - {*baselines_of(SeveralLabels(2))} == trees_alone
    assert [*notes(blocks, blocks.splits[0])] == [
        "gradient boosting is left out: trees need LightGBM, which is not installed; "
        "pip install lightgbm"
    ]
