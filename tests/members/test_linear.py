"""Linear regression of numbers, as a member and as a baseline."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from support.amounts import diffused

import gcnii
from gcnii.data.splits import every_label
from gcnii.errors import InputError
from gcnii.inference.baselines import LINEAR, baseline
from gcnii.members import linear
from gcnii.members.linear import STRENGTHS, Linear
from gcnii.results.fit import Session
from gcnii.tuning.portfolio import prepared
from gcnii.tuning.refit import refitted

W, B = np.array([[2.0, 0.0], [-30.0, 1.0]]), np.array([1e6, -5.0])


@pytest.fixture(scope="module")
def grid():
    """Two numbers that are linear in a node's own two columns, one of which is large."""
    found = diffused(side=12, targets=("heat", "cold"))
    X = found.X * [1.0, 1e3] + [0.0, 5e4]
    noise = np.random.default_rng(1).normal(size=found.y.shape)
    return replace(found, X=X, y=X @ W + B + 0.01 * noise)


def test_what_is_linear_in_the_columns_is_found_in_its_units(grid):
    split = grid.splits[0]
    found = Linear.fit(grid, split)
    assert found.strength == STRENGTHS[0]
    np.testing.assert_allclose(found.W[:, 1], W[:, 1], atol=0.05)
    gap = (found.answers(grid.X) - grid.y)[split.test]
    assert np.abs(gap).max() < 1e-3 * grid.y.std(0).max()


@pytest.mark.parametrize("strength", [1.0, 100.0])
def test_it_is_ridge_regression_on_columns_of_one_size(grid, strength, monkeypatch):
    monkeypatch.setattr(linear, "STRENGTHS", (strength,))
    split = grid.splits[0]
    X = np.asarray(grid.X, np.float64)
    A = (X - X[split.train].mean(0)) / X[split.train].std(0)
    wanted = Ridge(alpha=strength).fit(A[split.train], grid.y[split.train]).predict(A)
    np.testing.assert_allclose(Linear.fit(grid, split).answers(grid.X), wanted, rtol=1e-6)


def test_sparse_columns_keep_their_zeros_and_rows_can_count_by_length(grid):
    random, split = np.random.default_rng(0), grid.splits[0]
    X = sp.csr_array(random.poisson(0.3, (grid.n, 20)).astype(np.float32))
    size = np.maximum(np.sqrt((X**2).sum(1)), 1)[:, None]
    by_sum = replace(grid, X=X, y=np.asarray(X @ np.ones((20, 1))), targets=("sum",))
    by_share = replace(by_sum, y=np.asarray(X[:, [3]].toarray() / size))
    for graph, by_length in ((by_sum, False), (by_share, True)):
        found = Linear.fit(graph, split)
        assert found.by_length is by_length
        assert not found.centre.any()
        np.testing.assert_allclose(found.answers(X), graph.y, atol=0.02 * graph.y.std() + 0.02)


def test_strength_is_chosen_by_validation_and_nothing_by_test_numbers(grid):
    split = grid.splits[0]
    hidden = replace(grid, y=np.where(split.test[:, None], -grid.y, grid.y))
    assert Linear.fit(hidden, split).document() == Linear.fit(grid, split).document()
    noisy = replace(grid, y=np.random.default_rng(2).normal(size=grid.y.shape))
    assert Linear.fit(noisy, split).strength > STRENGTHS[0]


def test_it_is_kept_as_json_and_others_are_refused(grid):
    found = Linear.fit(grid, grid.splits[0])
    again = Linear.of(json.loads(json.dumps(found.document())))
    np.testing.assert_array_equal(again.answers(grid.X), found.answers(grid.X))
    with pytest.raises(InputError, match="W must have a row of 2 numbers for each of 2 features"):
        Linear.of(found.document() | {"W": [[1.0, 2.0], [1.0]]})
    with pytest.raises(InputError, match="linear regression takes 2 features, but X has 1"):
        found.answers(grid.X[:, :1])


@pytest.fixture(scope="module")
def found(grid):
    """All members of numbers, with networks of few epochs."""
    return prepared(grid, {"epochs": 5}, Session(device="cpu"), effort="quick").run()


def test_it_is_the_member_that_tells_what_is_linear(grid, found):
    board = {row["member"]: row for row in found.leaderboard()}
    assert board["linear"]["sees"] == "features"
    assert board["linear"]["weight"] > 0.9
    assert "linear-smoothed" in board
    assert found.test[0] > 0.999


def test_it_is_no_member_where_classes_are_predicted():
    graph = gcnii.load("csbm", n=60)
    course = prepared(graph, session=Session(device="cpu"), effort="quick")
    assert "linear" not in [*course._candidates()]


def test_of_several_splits_it_is_smoothed_on_each(grid):
    two = grid.with_splits([grid.splits[0], gcnii.stratified_split(grid.y, 7)])
    found = prepared(two, {"epochs": 5}, Session(device="cpu"), effort="quick").run()
    names = {row["member"] for row in found.leaderboard()}
    assert {f"{name}-smoothed" for name in ("linear", "mlp", "features")} <= names


def test_it_opens_as_it_was_saved_and_answers_new_nodes(grid, found, tmp_path):
    opened = gcnii.open_bundle(found.save(tmp_path / "e")).knowing(grid)
    np.testing.assert_allclose(opened.predict(grid), found.predict(grid), rtol=1e-9)
    alone = found.member("linear")
    elsewhere = gcnii.Graph(X=grid.X[:5], edges=[[0], [1]], targets=grid.targets)
    (member,) = alone.weighty
    each = [one.answers(grid.X[:5]) for one in member.each]
    np.testing.assert_allclose(alone.predict(elsewhere), np.mean(each, 0))


def test_refitted_it_has_seen_every_number_at_the_same_strength(grid, found):
    again = refitted(found, grid)
    (before,) = [one for one in found.members if one.name == "linear"]
    (after,) = [one for one in again.members if one.name == "linear"]
    assert [one.strength for one in after.each] == [one.strength for one in before.each]
    every = every_label(grid)
    wanted = Linear.fit(every, every.splits[0], before.each[0]).document()
    assert after.each[0].document() == wanted


def test_its_terms_are_the_shares_of_an_explanation(grid, found):
    node = 40
    said = found.member("linear").explain(grid, node, label="heat", device="cpu")
    value = found.member("linear").predict(grid)[node, 0]
    total = sum(one.share for one in said.features) + said.bias
    assert said.exact
    assert total == pytest.approx(value, rel=1e-9)
    assert sum(one.share for one in said.hops if one.hop) == 0
    assert said.weights == {"linear": 1.0}
    assert said.unranked == "no member looks at edges"


def test_the_baseline_is_the_same_regression(grid):
    split = grid.splits[0]
    said = baseline(LINEAR, grid, split)
    np.testing.assert_array_equal(said.P, Linear.fit(grid, split).answers(grid.X)[split.test])
