"""evaluate: the errors of predicted numbers, in their units, beside what knows less."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics
from support import knobs
from support.amounts import diffused

from gcnii import InputError, fit
from gcnii.inference.baselines import BOOSTED, BOOSTED_AROUND, GRAPH, LINEAR, MEAN
from gcnii.inference.groups import ranges

SMALL = {"layers": 2, "width": 8, "epochs": 40, "device": "cpu", "threads": 1}


@pytest.fixture(scope="module", autouse=True)
def _few_rounds():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knobs.ROUNDS, 5)
        yield


@pytest.fixture(scope="module")
def grid():
    return diffused(side=16, targets=("heat", "cold"), unit=1000.0)


@pytest.fixture(scope="module")
def result(grid):
    return fit(grid, "gcnii", **SMALL)


@pytest.fixture(scope="module")
def evaluation(result):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return result.evaluate()


def test_scores_are_those_of_what_predict_says_of_the_test_nodes(grid, result, evaluation):
    test = grid.splits[0].test
    y, values = grid.y[test], result.predict(grid, "cpu")[test]
    assert evaluation.scores["r2"].mean == pytest.approx(metrics.r2_score(y, values))
    assert evaluation.scores["mae"].mean == pytest.approx(metrics.mean_absolute_error(y, values))
    assert evaluation.scores["r2"].mean == pytest.approx(result.test[0])
    for one in (*evaluation.scores.values(), *evaluation.differences.values()):
        assert one.low < one.mean < one.high


def test_each_column_has_scores_in_its_own_units(grid, result, evaluation):
    test = grid.splits[0].test
    y, values = grid.y[test], result.predict(grid, "cpu")[test]
    assert [row["name"] for row in evaluation.targets] == ["heat", "cold"]
    for j, row in enumerate(evaluation.targets):
        own = metrics.root_mean_squared_error(y[:, j], values[:, j])
        assert row["rmse"]["mean"] == pytest.approx(own)


def test_baselines_are_the_mean_the_features_the_graph_and_trees(grid, evaluation):
    split = grid.splits[0]
    names = [MEAN, LINEAR, GRAPH, BOOSTED, BOOSTED_AROUND]
    assert list(evaluation.baselines) == list(evaluation.differences) == names
    usual = np.tile(grid.y[split.train | split.val].mean(0), (split.test.sum(), 1))
    expected = metrics.r2_score(grid.y[split.test], usual)
    assert evaluation.baselines[MEAN]["r2"].mean == pytest.approx(expected)


def linear(**how):
    """Of a model that is as linear as the diffusion that it is to find."""
    given = {"epochs": 60, "lr": 0.2, "scale": "none", "device": "cpu", "decay_dense": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fit(diffused(side=16), "sgc", layers=2, monitor="val_loss", **given, **how)
        return result.evaluate()


def test_a_graph_that_says_more_than_the_features_helps():
    found = linear()
    sentence = found.graph_helps.sentence
    assert sentence.startswith(f"The graph helps: R² {found.scores['r2'].mean:.3f} against ")
    assert "on the features), a difference of +" in sentence
    assert found.graph_helps.difference.low > 0


@pytest.mark.parametrize("metric", ["mae", "rmse"])
def test_a_lower_error_is_better(metric):
    found = linear(metric=metric)
    assert found.graph_helps.sentence.startswith(f"The graph helps: {metric.upper()} ")
    assert found.differences[MEAN].high < 0


def test_what_the_mean_says_as_well_is_warned_of(grid):
    result = fit(grid, "gcnii", **SMALL | {"epochs": 1})
    with pytest.warns(UserWarning, match="predicting the mean for every node"):
        found = result.evaluate(baselines=False)
    assert list(found.baselines) == [MEAN]


def test_nothing_is_claimed_of_test_numbers_that_are_all_the_same(grid):
    even = replace(grid, y=np.where(grid.splits[0].test[:, None], 2.0, grid.y))
    found = fit(even, "gcnii", **SMALL).evaluate()
    assert found.warnings == ()
    assert "R² – against – without it (linear regression on the features), a difference" in str(
        found
    )
    assert "+–" not in str(found)


def test_groups_hold_every_test_node_of_each_column(evaluation):
    assert set(evaluation.groups) == {"degree", "value"}
    for rows in evaluation.groups.values():
        for name in ("heat", "cold"):
            own = [row for row in rows if row["target"] == name]
            assert sum(row["nodes"] for row in own) == evaluation.nodes
            assert all(row["mae"] >= abs(row["bias"]) for row in own)


def test_errors_pull_towards_the_mean(evaluation):
    low, *_, high = [row for row in evaluation.groups["value"] if row["target"] == "heat"]
    assert low["bias_low"] > 0 > high["bias_high"]


def test_equal_numbers_are_in_one_range():
    y = np.array([0.0] * 80 + [*range(1, 21)])
    found = ranges(y)
    assert sum(inside.sum() for inside in found.values()) == 100
    assert next(iter(found.values()))[:80].all()
    assert list(ranges(np.ones(5))) == ["1"]


def test_it_prints_as_tables_and_is_json(evaluation):
    text = str(evaluation)
    assert "score in %" not in text
    assert "predicted - true" in text
    assert f"by number, {evaluation.nodes} test nodes" in text
    assert "confusion" not in json.loads(json.dumps(evaluation.document(), allow_nan=False))
    assert repr(evaluation).startswith("Evaluation(gcnii on grid: R² 0.")


def test_a_positive_class_is_refused(result):
    with pytest.raises(InputError, match="positive is for classes, but this model predicts"):
        result.evaluate(positive="heat")
