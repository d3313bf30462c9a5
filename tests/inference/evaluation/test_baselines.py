"""Baselines: what needs no model, or no graph, or no features."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from gcnii import Graph, Split, data
from gcnii.inference.evaluation import baselines
from gcnii.inference.evaluation.baselines import BASELINES, baseline, training_rows


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
    for name in BASELINES:
        assert baseline(name, more, more.splits[0]).P[:, 2].max() == 0


def test_one_class_alone_is_answered(blocks):
    alone = replace(blocks, y=np.where(blocks.splits[0].train, 1, blocks.labels))
    for name in BASELINES:
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
    for name in BASELINES:
        said = baseline(name, graph, split)
        assert said.guess.shape == said.y.shape == said.P.shape
        assert said.scores["micro_f1"] > 0.3
