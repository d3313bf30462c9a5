"""Probabilities mean what they say: temperature, reliability and the calibration error."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit, softmax

from gcnii.targets import Classes, SeveralLabels
from gcnii.targets.target import error_left

CLASSES, LABELS = Classes(5), SeveralLabels(4)


def drawn(temperature, n=4000, k=5, seed=0):
    """Scores, and classes drawn from softmax(scores / temperature)."""
    rng = np.random.default_rng(seed)
    scores = 3 * rng.standard_normal((n, k))
    P = softmax(scores / temperature, axis=1)
    return scores, (rng.random((n, 1)) > P.cumsum(1)).sum(1)


@pytest.mark.parametrize("temperature", [0.2, 1.0, 4.0])
def test_the_temperature_that_made_the_labels_is_found(temperature):
    scores, y = drawn(temperature)
    assert CLASSES.best_temperature(scores, y) == pytest.approx(temperature, rel=0.1)


def test_nodes_are_as_sure_as_they_are_right():
    scores, y = drawn(2.0, n=300)
    T = CLASSES.best_temperature(scores, y)
    right = (scores.argmax(1) == y).sum()
    assert softmax(scores / T, axis=1).max(1).mean() == pytest.approx((right + 1) / 302)


def test_a_mean_of_models_has_a_temperature_that_keeps_every_label():
    scores, y = drawn(1.0, n=500)
    noise = 2 * np.random.default_rng(1).standard_normal((3, *scores.shape))
    mean = softmax(scores + noise, axis=2).mean(0)
    P = CLASSES.tempered(mean, CLASSES.best_temperature(np.log(mean), y))
    assert np.array_equal(P.argmax(1), mean.argmax(1))
    assert P.max(1).mean() == pytest.approx(((P.argmax(1) == y).sum() + 1) / 502)
    np.testing.assert_allclose(CLASSES.tempered(mean, 1.0), mean)
    assert np.isfinite(CLASSES.tempered(np.array([[1.0, 0.0]]), 0.01)).all()


def test_no_other_temperature_makes_several_labels_likelier():
    rng = np.random.default_rng(0)
    scores = 3 * rng.standard_normal((300, 4))
    y = (rng.random(scores.shape) < expit(scores / 2)).astype(np.int64)
    target = (1 - 1 / 302) * y + 0.5 / 302

    def loss(log_T):
        P = expit(scores / np.exp(log_T))
        return -(target * np.log(P) + (1 - target) * np.log(1 - P)).mean()

    best = minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9}).x
    assert np.log(LABELS.best_temperature(scores, y)) == pytest.approx(best, abs=1e-6)


def test_several_labels_per_node_have_one_temperature():
    rng = np.random.default_rng(0)
    scores = 3 * rng.standard_normal((3000, 4))
    y = (rng.random(scores.shape) < expit(scores / 2.5)).astype(np.int64)
    assert LABELS.best_temperature(scores, y) == pytest.approx(2.5, rel=0.1)


def test_nodes_that_are_all_right_do_not_make_the_model_certain():
    scores = np.array([[4.0, 0.0], [0.0, 4.0], [4.0, 0.0]])
    T = CLASSES.best_temperature(scores, np.array([0, 1, 0]))
    assert softmax(scores / T, axis=1).max() == pytest.approx(4 / 5)


def test_scores_that_are_all_alike_have_temperature_one():
    assert CLASSES.best_temperature(np.zeros((5, 3)), np.array([0, 1, 2, 0, 1])) == 1.0
    assert CLASSES.best_temperature(np.full((5, 3), 7.0), np.array([0, 1, 2, 0, 1])) == 1.0


def test_labels_that_the_scores_get_wrong_make_it_warm_and_stay_finite():
    scores = np.array([[4.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    T = CLASSES.best_temperature(scores, np.array([1, 1, 0]))  # less often right than by chance
    assert pytest.approx(100, rel=0.01) == T


def test_a_threshold_moves_with_the_probabilities():
    scores, T = np.linspace(-3, 3, 50), 0.4
    before = expit(scores) > 0.3
    np.testing.assert_array_equal(before, expit(scores / T) > LABELS.tempered(0.3, T))
    assert LABELS.tempered(0.5, T) == 0.5
    assert logit(LABELS.tempered(0.3, T)) == pytest.approx(logit(0.3) / T)


def test_the_calibration_error_by_hand():
    P = np.array([[0.9, 0.1], [0.9, 0.1], [0.35, 0.65], [0.4, 0.6]])
    y = np.array([0, 1, 1, 1])
    # 0.9 is right once of two, 0.65 and 0.6 (bins of 1/15 apart) are right.
    assert CLASSES.calibration_error(P, y) == pytest.approx((2 * 0.4 + 0.35 + 0.4) / 4)


def test_the_calibration_error_as_a_loop_has_it():
    scores, y = drawn(0.5, n=500)
    P = softmax(scores, axis=1)
    confidence, right, total = P.max(1), P.argmax(1) == y, 0.0
    for i in range(15):
        inside = (confidence > i / 15) & (confidence <= (i + 1) / 15)
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    assert CLASSES.calibration_error(P, y) == pytest.approx(total)


def test_probabilities_that_made_the_labels_have_no_error_and_scaled_ones_have():
    scores, y = drawn(1.0, n=20000)
    assert CLASSES.calibration_error(softmax(scores, axis=1), y) < 0.015
    assert CLASSES.calibration_error(softmax(scores / 3, axis=1), y) > 0.1
    assert CLASSES.calibration_error(softmax(scores * 3, axis=1), y) > 0.1


def test_bins_hold_all_nodes_and_stand_in_order():
    scores, y = drawn(1.0, n=200)
    bins = CLASSES.reliability(softmax(scores, axis=1), y)
    assert sum(one.nodes for one in bins) == 200
    assert [one.low for one in bins] == sorted(one.low for one in bins)
    assert all(one.low < one.confidence <= one.high for one in bins)


def test_each_label_of_a_node_is_a_forecast_of_its_own():
    P = np.array([[0.9, 0.2], [0.9, 0.2]])
    (unsure, sure) = LABELS.reliability(P, np.array([[1, 0], [0, 1]]))
    assert (unsure.nodes, unsure.accuracy, sure.nodes, sure.accuracy) == (2, 0.5, 2, 0.5)


def test_without_nodes_there_is_no_error():
    assert np.isnan(CLASSES.calibration_error(np.zeros((0, 3)), np.zeros(0, np.int64)))


def test_few_nodes_leave_an_error():
    assert error_left(16, 20) == pytest.approx(np.sqrt(17 / 22 * 5 / 22 / 20))
    assert 0 < error_left(20, 20) < error_left(10, 20)
