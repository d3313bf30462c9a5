"""Probabilities: softmax or sigmoid of scores, and their mean over models."""

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from gcnii.targets import Classes, SeveralLabels

CLASSES, LABELS = Classes(2), SeveralLabels(2)


def test_classes_share_a_probability_of_one_and_labels_have_one_each():
    scores = torch.tensor([[0.0, 0.0], [0.0, np.log(3)]])
    np.testing.assert_allclose(CLASSES.answers(scores), [[0.5, 0.5], [0.25, 0.75]])
    np.testing.assert_allclose(LABELS.answers(scores), [[0.5, 0.5], [0.5, 0.75]])


def test_the_mean_is_of_probabilities_not_of_scores():
    certain, doubtful = torch.tensor([[50.0, 0.0]]), torch.tensor([[0.0, np.log(4)]])
    P = CLASSES.mean_answers([certain, doubtful, doubtful])
    np.testing.assert_allclose(P, [[1.4 / 3, 1.6 / 3]])  # the mean of the scores says class 0
    assert CLASSES.decided(P).tolist() == [1]


def test_the_class_with_the_highest_score_is_the_most_probable_however_close_it_is():
    scores = torch.tensor([[0.0, 1e-9]])
    assert scores.softmax(1)[0, 0] == scores.softmax(1)[0, 1]  # in float32
    assert CLASSES.decided(CLASSES.answers(scores)).tolist() == [1]


def test_a_label_is_given_above_one_half():
    P = np.array([[0.5, 0.51, 0.1], [0.9, 0.2, 0.8]])
    assert LABELS.decided(P).tolist() == [[0, 1, 0], [1, 0, 1]]


def test_the_best_threshold_is_midway_between_the_probabilities_that_it_parts():
    P = np.array([[0.9, 0.3], [0.4, 0.2], [0.1, 0.05]])
    y = np.array([[1, 1], [1, 0], [0, 0]])
    assert LABELS.best_threshold(P, y) == pytest.approx(0.25)
    assert LABELS.best_threshold(P, np.ones_like(y)) == pytest.approx(0.025)  # below all of them
    assert LABELS.best_threshold(P, np.zeros_like(y)) == 0.5  # nothing to find


def test_the_best_threshold_is_better_than_any_other():
    draw = np.random.default_rng(0)
    P, y = draw.random((50, 4)).round(2), draw.integers(0, 2, (50, 4))
    scores = [f1_score(y, t < P, average="micro") for t in np.linspace(0, 1, 500)]
    assert f1_score(y, LABELS.best_threshold(P, y) < P, average="micro") == pytest.approx(
        max(scores)
    )


def test_a_threshold_parts_neighbouring_floats():
    low, high = 0.5, np.nextafter(0.5, 1)
    P, y = np.array([[high], [low]]), np.array([[1], [0]])
    assert LABELS.decided(P, threshold=LABELS.best_threshold(P, y)).tolist() == [[1], [0]]
