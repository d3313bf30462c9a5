"""Intervals: they hold the truth as often as they say."""

import numpy as np
import pytest
from scipy.stats import binomtest, bootstrap, ttest_1samp

from gcnii.targets.interval import bootstrap_weights, over_runs, percentiles, share_of, wilson


def test_each_draw_draws_as_many_nodes_as_there_are():
    weights = np.concatenate([*bootstrap_weights(7, 300)], axis=1)
    assert weights.shape == (7, 300)
    assert (weights.sum(0) == 7).all()
    assert weights.mean(1) == pytest.approx(np.ones(7), abs=0.2)


def test_chunks_do_not_change_the_number_of_draws(monkeypatch):
    monkeypatch.setattr("gcnii.targets.interval.CHUNK", 50)
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
    found = percentiles(0.5, np.array([np.nan, 0.4, 0.4]))
    assert (found.low, found.high) == (0.4, 0.5)  # it holds what it is of
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


def test_an_interval_of_a_share_holds_it_and_is_never_a_point():
    for n in (1, 2, 15, 1000, 12_345):
        for part in (0, 1, n - 1, n):
            one = share_of(part, n)
            assert 0 <= one.low <= one.mean <= one.high <= 1
            assert one.low < one.high
    assert share_of(15, 15).low == pytest.approx(0.796, abs=5e-4)


def test_a_score_that_no_draw_changes_has_the_interval_of_its_nodes():
    alike = np.ones(1000)
    assert percentiles(1.0, alike, [15]).low == pytest.approx(0.796, abs=5e-4)
    assert percentiles(1.0, alike, [15]).high == 1
    assert percentiles(0.0, 0 * alike, [15]).high == pytest.approx(0.204, abs=5e-4)
    of_both = percentiles(1.0, alike, [10, 5])  # a mean over two classes
    assert percentiles(1.0, alike, [5]).low < of_both.low < percentiles(1.0, alike, [15]).low
    difference = percentiles(0.0, 0 * alike, [15], -1.0)
    assert -difference.low == difference.high == pytest.approx(0.204, abs=5e-4)
    exact = percentiles(0.5, 0.5 * alike, [15])  # the order of a constant is that of chance
    assert (exact.low, exact.high) == (0.5, 0.5)
