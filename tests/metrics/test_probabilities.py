"""Probabilities: softmax or sigmoid of scores, and their mean over models."""

import numpy as np
import torch

from gcnii.metrics.probabilities import decided, mean_probabilities, probabilities


def test_classes_share_a_probability_of_one_and_labels_have_one_each():
    scores = torch.tensor([[0.0, 0.0], [0.0, np.log(3)]])
    np.testing.assert_allclose(probabilities(scores, multilabel=False), [[0.5, 0.5], [0.25, 0.75]])
    np.testing.assert_allclose(probabilities(scores, multilabel=True), [[0.5, 0.5], [0.5, 0.75]])


def test_the_mean_is_of_probabilities_not_of_scores():
    certain, doubtful = torch.tensor([[50.0, 0.0]]), torch.tensor([[0.0, np.log(4)]])
    P = mean_probabilities([certain, doubtful, doubtful], multilabel=False)
    np.testing.assert_allclose(P, [[1.4 / 3, 1.6 / 3]])  # the mean of the scores says class 0
    assert decided(P, multilabel=False).tolist() == [1]


def test_the_class_with_the_highest_score_is_the_most_probable_however_close_it_is():
    scores = torch.tensor([[0.0, 1e-9]])
    assert scores.softmax(1)[0, 0] == scores.softmax(1)[0, 1]  # in float32
    assert decided(probabilities(scores, multilabel=False), multilabel=False).tolist() == [1]


def test_a_label_is_given_above_one_half():
    P = np.array([[0.5, 0.51, 0.1], [0.9, 0.2, 0.8]])
    assert decided(P, multilabel=True).tolist() == [[0, 1, 0], [1, 0, 1]]
