"""Every score of an answer, against scikit-learn's with the same weights of the nodes."""

import numpy as np
import pytest
from sklearn import metrics

from gcnii.targets import Classes, SeveralLabels
from gcnii.targets.scores import Answers, ClassCounts, confusion

M, K = 120, 4


def one_label(k=K, ties=False, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, k, M)
    Z = random.normal(size=(M, k)) + 1.5 * np.eye(k)[y]
    P = np.exp(Z.round(0) if ties else Z)
    P /= P.sum(1, keepdims=True)
    return Answers(Classes(k), P, P.argmax(1), y)


def several_labels(seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, (M, K))
    P = 1 / (1 + np.exp(-(random.normal(size=(M, K)) + 2 * y - 1)))
    return Answers(SeveralLabels(K), P, (P > 0.4).astype(np.int64), y)


@pytest.fixture(scope="module")
def weights():
    return np.random.default_rng(5).integers(0, 4, (M, 3)).astype(float)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("ties", [False, True])
def test_scores_of_one_label_are_those_of_scikit_learn(k, ties, weights):
    a = one_label(k, ties)
    found = a.graded(weights)
    for j, w in enumerate(weights.T):
        how = {"sample_weight": w}
        onehot = np.eye(k)[a.y]
        columns = [1] if k == 2 else range(k)
        auc = [metrics.roc_auc_score(onehot[:, c], a.P[:, c], **how) for c in columns]
        ap = [metrics.average_precision_score(onehot[:, c], a.P[:, c], **how) for c in columns]
        expected = {
            "accuracy": metrics.accuracy_score(a.y, a.guess, **how),
            "balanced_accuracy": metrics.balanced_accuracy_score(a.y, a.guess, **how),
            "macro_f1": metrics.f1_score(a.y, a.guess, average="macro", **how),
            "log_loss": metrics.log_loss(a.y, a.P, **how),
            "roc_auc": np.mean(auc),
            "average_precision": np.mean(ap),
        }
        assert {name: found[name][j] for name in expected} == pytest.approx(expected, abs=1e-12)


def test_scores_of_several_labels_are_those_of_scikit_learn(weights):
    a = several_labels()
    found = a.graded(weights)
    for j, w in enumerate(weights.T):
        how = {"sample_weight": w}
        expected = {
            "micro_f1": metrics.f1_score(a.y, a.guess, average="micro", **how),
            "macro_f1": metrics.f1_score(a.y, a.guess, average="macro", **how),
            "subset_accuracy": metrics.accuracy_score(a.y, a.guess, **how),
            "log_loss": np.mean([metrics.log_loss(a.y[:, c], a.P[:, c], **how) for c in range(K)]),
            "roc_auc": metrics.roc_auc_score(a.y, a.P, **how),
            "average_precision": metrics.average_precision_score(a.y, a.P, **how),
        }
        assert {name: found[name][j] for name in expected} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("make", [one_label, several_labels])
def test_a_node_of_weight_two_counts_as_two_nodes(make):
    a, w = make(), np.random.default_rng(1).integers(0, 3, M)
    twice = np.repeat(np.arange(M), w)
    copied = Answers(a.target, a.P[twice], a.guess[twice], a.y[twice])
    W = w[:, None].astype(float)
    found = a.graded(W)
    assert {name: one[0] for name, one in found.items()} == pytest.approx(copied.scores)


@pytest.mark.parametrize("make", [one_label, several_labels])
def test_the_calibration_error_is_that_of_its_bins(make):
    a = make()
    assert a.scores["calibration_error"] == pytest.approx(a.target.calibration_error(a.P, a.y))


def test_counts_by_class_are_those_of_scikit_learn():
    a = one_label()
    guess = np.where(a.guess == 2, 1, a.guess)  # class 2 is never predicted
    C = confusion(a.y, guess, K)
    np.testing.assert_array_equal(C, metrics.confusion_matrix(a.y, guess))
    found = ClassCounts.of_confusion(C)
    expected = metrics.precision_recall_fscore_support(a.y, guess, zero_division=np.nan)
    for mine, theirs in zip(
        (found.precision, found.recall, found.f1, found.support), expected, strict=True
    ):
        np.testing.assert_allclose(mine, theirs)
    assert np.isnan(found.precision[2])
    assert found.f1[2] == 0


def test_a_class_without_nodes_is_in_no_mean():
    a = one_label()
    five = Answers(Classes(K + 1), np.column_stack([a.P, np.zeros(M)]), a.guess, a.y)
    expected = a.scores
    assert five.scores == pytest.approx(expected)
    assert np.isnan(five.rankings(np.ones((M, 1)))["roc_auc"][0, 4])


def test_micro_f1_of_several_graphs_is_their_mean():
    a = several_labels()
    part = np.arange(M) % 3
    expected = np.mean(
        [metrics.f1_score(a.y[part == i], a.guess[part == i], average="micro") for i in range(3)]
    )
    joined = Answers(a.target, a.P, a.guess, a.y, part)
    assert joined.scores["micro_f1"] == pytest.approx(expected)
    assert joined.among(part == 1).m == M // 3
