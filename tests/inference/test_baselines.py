"""Baselines: what needs no model, or no graph, or no features."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from support import knobs

from gcnii import Graph, Split, data
from gcnii.inference import baselines
from gcnii.inference.baselines import (
    PREDICTORS,
    baseline,
    baselines_of,
    boosted_rows,
    notes,
    training_rows,
)
from gcnii.targets import SeveralLabels


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setattr(knobs.TREES, 0)


def test_the_majority_is_that_of_the_training_nodes(lopsided):
    split = lopsided.splits[0]
    said = baseline("majority", lopsided, split)
    share = lopsided.labels[split.train].mean()
    assert (said.guess == 0).all()
    np.testing.assert_allclose(said.P, [[1 - share, share]] * 160)
    assert said.scores["roc_auc"] == 0.5


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
    monkeypatch.setattr(baselines, "WORK", 0)
    monkeypatch.setattr(baselines, "FEWEST", 10)
    rows = training_rows(blocks, blocks.splits[0])
    assert len(rows) == 10
    assert blocks.splits[0].train[rows].all()


def test_a_class_without_training_nodes_has_probability_zero(blocks):
    y = np.where(blocks.splits[0].test & (np.arange(blocks.n) % 2 == 0), 2, blocks.labels)
    more = replace(blocks, y=y, classes=("cat", "dog", "cow"))
    for name in PREDICTORS:
        assert baseline(name, more, more.splits[0]).P[:, 2].max() == 0


def test_one_class_alone_is_answered(blocks):
    alone = replace(blocks, y=np.where(blocks.splits[0].train, 1, blocks.labels))
    for name in PREDICTORS:
        assert (baseline(name, alone, alone.splits[0]).guess == 1).all()


def dense_propagation(graph, split, alpha):
    """(1 - α) (I - α P̃)⁻¹ Y0, rows made to sum to 1."""
    A = np.zeros((graph.n, graph.n))
    weights = np.ones(graph.edges.shape[1]) if graph.weights is None else graph.weights
    for (u, v), w in zip(graph.edges.T, weights, strict=True):
        A[u, v] = A[v, u] = w
    np.fill_diagonal(A, 0)
    size = np.maximum(A.sum(1), 1e-300)
    P = A / np.sqrt(size[:, None] * size)
    start = np.eye(graph.k)[graph.labels] * split.train[:, None]
    Y = np.linalg.solve(np.eye(graph.n) - alpha * P, start)
    return Y / Y.sum(1, keepdims=True)


@pytest.mark.parametrize("weighted", [False, True])
def test_labels_are_propagated_as_in_the_closed_form(blocks, weighted, monkeypatch):
    monkeypatch.setattr(baselines, "ALPHAS", (0.5,))
    edges = np.unique(np.sort(blocks.edges, 0), axis=1)
    weights = np.random.default_rng(0).random(edges.shape[1]) if weighted else None
    graph = replace(blocks, edges=edges, weights=weights)
    split = graph.splits[0]
    said = baseline("label propagation", graph, split)
    expected = dense_propagation(graph, split, 0.5)[split.test]
    np.testing.assert_allclose(said.P, expected, atol=1e-6)
    assert said.scores["accuracy"] > 0.8


def test_a_node_that_no_label_reaches_has_the_shares_of_the_training_nodes():
    split = Split.of_roles(["train", "train", "train", "test", "val"])
    graph = Graph(X=np.ones((5, 1)), edges=[[0], [1]], y=[0, 0, 1, 1, 1], splits=(split,))
    said = baseline("label propagation", graph, split)
    np.testing.assert_allclose(said.P, [[2 / 3, 1 / 3]])


@pytest.mark.slow
def test_several_labels_are_answered_with_a_threshold_of_validation():
    graph = data.load("ppi-like", graphs=3, n=100, degree=2)
    split = graph.splits[0]
    for name in baselines_of(SeveralLabels(2)):
        said = baseline(name, graph, split)
        assert said.guess.shape == said.y.shape == said.P.shape
        assert said.scores["micro_f1"] > 0.3


def test_trees_see_no_label_but_those_of_training_neighbours(blocks):
    split, X = blocks.splits[0], np.asarray(blocks.X, np.float32)
    seen = baselines._around(blocks, split, X)
    hidden = replace(blocks, y=np.where(split.train, blocks.labels, 1 - blocks.labels))
    np.testing.assert_array_equal(baselines._around(hidden, split, X), seen)
    for i in np.flatnonzero(split.train)[:5]:
        y = blocks.labels.copy()
        y[i] = 1 - y[i]
        other = baselines._around(replace(blocks, y=y), split, X)
        np.testing.assert_array_equal(other[i], seen[i])  # its own label is not among its columns
        changed = np.flatnonzero((other != seen).any(1) & ~np.isnan(seen).any(1))
        u, v = blocks.edges
        assert set(changed) <= {*v[u == i].tolist(), *u[v == i].tolist()}


def test_neighbours_are_means_and_shares_and_none_is_missing():
    split = Split.of_roles(["train", "train", "test", "val"])
    graph = Graph(X=[[1.0], [3.0], [5.0], [7.0]], edges=[[0, 1, 2], [2, 2, 2]], y=[0, 1, 1, 0])
    seen = baselines._around(graph, split, graph.X)
    np.testing.assert_allclose(seen[2], [2.0, 0.5, 0.5, 2.0, 2.0])
    np.testing.assert_allclose(seen[0], [5.0, np.nan, np.nan, 1.0, 0.0])
    np.testing.assert_allclose(seen[3], [np.nan, np.nan, np.nan, 0.0, 0.0])


def test_trees_with_neighbours_find_what_the_columns_do_not_say(blocks, monkeypatch):
    monkeypatch.setattr(knobs.TREES, 100)
    alone, around = (
        baseline(name, blocks, blocks.splits[0]).scores["roc_auc"]
        for name in ("gradient boosting", "gradient boosting with neighbours")
    )
    assert around > alone + 0.1


def test_wide_features_and_many_nodes_are_reduced_with_a_note(blocks, monkeypatch):
    split = blocks.splits[0]
    assert [*notes(blocks, split)] == []
    words = sp.random_array((blocks.n, 400), density=0.05, format="csr", rng=0)
    wide = replace(blocks, X=words)
    assert baselines._own(wide).shape == (blocks.n, 64)
    assert [*notes(wide, split)] == [
        "gradient boosting saw 64 columns (SVD) in place of 400 features"
    ]
    monkeypatch.setattr(baselines, "GROWTH", 0)
    monkeypatch.setattr(baselines, "FEWEST", 10)
    rows = boosted_rows(blocks, split, 5)
    assert len(rows) == 10
    assert split.train[rows].all()
    assert "gradient boosting saw 10 of the 40 training nodes, to save time" in notes(blocks, split)


def test_trees_are_left_out_where_nodes_have_several_labels(blocks):
    assert set(PREDICTORS) - {*baselines_of(SeveralLabels(2))} == {
        "gradient boosting",
        "gradient boosting with neighbours",
    }
    many = replace(blocks, y=np.stack([blocks.labels, 1 - blocks.labels], 1))
    assert next(notes(many, many.splits[0])).startswith("gradient boosting is for nodes with one")
