"""Intervals: they hold the truth as often as they say."""

import numpy as np
import pytest
from scipy.stats import binomtest, bootstrap, ttest_1samp

from gcnii.metrics.interval import bootstrap_weights, over_runs, percentiles, wilson


def test_each_draw_draws_as_many_nodes_as_there_are():
    weights = np.concatenate([*bootstrap_weights(7, 300)], axis=1)
    assert weights.shape == (7, 300)
    assert (weights.sum(0) == 7).all()
    assert weights.mean(1) == pytest.approx(np.ones(7), abs=0.2)


def test_chunks_do_not_change_the_number_of_draws(monkeypatch):
    monkeypatch.setattr("gcnii.metrics.interval.CHUNK", 50)
    chunks = [*bootstrap_weights(9, 23)]
    assert [chunk.shape for chunk in chunks] == [*[(9, 5)] * 4, (9, 3)]


def test_the_interval_of_a_mean_is_that_of_scipy():
    values = np.random.default_rng(0).exponential(size=200)
    draws = np.concatenate([values @ w / len(values) for w in bootstrap_weights(200, 4000)])
    found = percentiles(values.mean(), draws)
    expected = bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.02)


def test_a_draw_that_cannot_be_graded_is_left_out():
    assert percentiles(0.5, np.array([np.nan, 0.4, 0.4])).low == 0.4
    assert np.isnan(percentiles(0.5, np.array([np.nan])).low)


def test_the_interval_over_runs_is_students():
    values = np.array([0.81, 0.83, 0.80, 0.85])
    expected = ttest_1samp(values, 0).confidence_interval()
    found = over_runs(values)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    one = over_runs(values[:1])
    assert one.mean == 0.81
    assert np.isnan(one.low)
    assert one.document() == {"mean": 0.81, "low": None, "high": None}


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (3, 7), (90, 100)])
def test_the_interval_of_a_share_is_wilsons(hits, n):
    expected = binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits / n, n) == pytest.approx((expected.low, expected.high), abs=1e-7)
