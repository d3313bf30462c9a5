"""Numbers to predict: standardised inside, units outside."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from support.amounts import diffused

import gcnii
from gcnii.errors import GraphError, InputError
from gcnii.targets import target_of
from gcnii.targets.objective import Objective
from gcnii.targets.scores import NUMBER_SCORES, Answers, mean_and_spread, number_shown
from gcnii.train.recipe import Recipe

QUICK = {"layers": 2, "width": 8, "epochs": 12, "device": "cpu", "patience": 12}


@pytest.fixture(scope="module")
def grid():
    return diffused(targets=("heat", "cold"), unit=1000.0)


@pytest.fixture(scope="module")
def result(grid):
    return gcnii.fit(grid, "gcnii", **QUICK)


def test_a_linear_model_recovers_a_diffusion():
    graph = diffused(steps=2)
    how = {"epochs": 300, "lr": 0.2, "decay_dense": 0.0, "scale": "none", "patience": 300}
    result = gcnii.fit(graph, "sgc", layers=2, device="cpu", monitor="val_loss", **how)
    assert result.metric == "R²"
    assert result.test[0] > 0.99


@pytest.mark.parametrize("score", NUMBER_SCORES, ids=lambda one: one.setting)
def test_training_and_evaluation_find_the_same(grid, score):
    split, scores = grid.splits[0], torch.randn(1, grid.n, 2, dtype=torch.float64)
    objective = Objective.of(grid, [0], torch.device("cpu"), score.setting)
    mean, deviation = objective.learnt[0].numpy()
    values = scores[0].numpy() * deviation + mean
    said = Answers(target_of(grid), values[split.val], values[split.val], grid.y[split.val])
    found = float(objective.score(scores, "val")[0])
    assert found == pytest.approx(said.scores[score.key], rel=1e-9)


def test_scores_are_those_of_scikit_learn(grid):
    from sklearn import metrics

    rng = np.random.default_rng(1)
    y, values = rng.normal(size=(50, 2)) * [1, 30], rng.normal(size=(50, 2)) * [1, 30]
    said = Answers(target_of(grid), values, values, y).scores
    assert said["r2"] == pytest.approx(metrics.r2_score(y, values))
    assert said["mae"] == pytest.approx(metrics.mean_absolute_error(y, values))
    assert said["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, values))


def test_units_come_from_the_training_nodes_alone(grid, result):
    mean, deviation = np.array(result.runs[0].units)
    y = grid.y[grid.splits[0].train]
    np.testing.assert_allclose(mean, y.mean(0))
    np.testing.assert_allclose(deviation, y.std(0))


def test_another_unit_gives_the_same_training():
    small, large = diffused(unit=1.0), diffused(unit=1e6)
    one, other = (gcnii.fit(graph, "gcnii", **QUICK) for graph in (small, large))
    assert other.test[0] == pytest.approx(one.test[0], abs=1e-4)
    np.testing.assert_allclose(other.predict(large), 1e6 * one.predict(small), rtol=1e-3)


def test_a_bundle_predicts_in_units(grid, result, tmp_path):
    opened = gcnii.open_bundle(result.save(tmp_path / "b"))
    np.testing.assert_array_equal(opened.predict(grid), result.predict(grid))
    assert opened.predict(grid).shape == (grid.n, 2)
    assert opened.origin.targets == ("heat", "cold")
    assert abs(opened.predict(grid).mean() - 3000) < 500


def test_one_number_is_predicted_as_a_vector():
    graph = diffused(side=8)
    assert gcnii.fit(graph, "mlp", epochs=3, device="cpu").predict(graph).shape == (64,)


def test_the_mean_of_seeds_predicts(grid):
    both = gcnii.fit(grid, "gcnii", seeds=range(2), **QUICK)
    each = [both.alone(i).predict(grid) for i in range(2)]
    np.testing.assert_allclose(both.predict(grid), np.mean(each, 0))


@pytest.mark.parametrize("metric", ["mae", "rmse"])
def test_the_best_epoch_has_the_lowest_error(grid, metric):
    how = QUICK | {"metric": metric, "monitor": "val_score"}
    result = gcnii.fit(grid, "gcnii", seeds=range(2), **how)
    for run in result.runs:
        scores = [val for *_, val in run.curve]
        assert (run.val, run.best_epoch) == (min(scores), int(np.argmin(scores)))
    assert result.best == int(np.argmin(result.val))


def test_huber_weighs_an_extreme_number_less(grid):
    scores, y = torch.zeros(1, grid.n, 2), torch.zeros(grid.n, 2)
    y[0] = 10.0
    learnt = torch.tensor([[[0.0, 0.0], [1.0, 1.0]]])
    squared, huber = (
        target_of(grid, loss).losses(scores, y, learnt) for loss in ("squared", "huber")
    )
    assert (squared[0, 0], huber[0, 0]) == (100, 19)
    assert gcnii.fit(grid, "gcnii", loss="huber", **QUICK).recipe.loss == "huber"


def test_an_unknown_number_has_no_gradient():
    graph = diffused(side=6)
    y = graph.y.copy()
    y[graph.splits[0].test] = np.nan
    objective = Objective.of(graph, [0], torch.device("cpu"))
    objective = Objective(**{**vars(objective), "y": torch.tensor(y)})
    scores = torch.zeros(1, graph.n, 1, requires_grad=True)
    objective.loss(scores, "train").sum().backward()
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"metric": "f1"}, "metric f1 is not for numbers; known: auto, r2, mae, rmse"),
        ({"class_weight": "balanced"}, "class_weight balanced is for classes, but grid has"),
        ({"label_threshold": "validation"}, "label_threshold validation is for classes"),
        ({"consistency": 1.0}, "consistency 1.0 is for classes, but grid has numbers"),
        ({"positive": "heat"}, "positive heat is for classes"),
    ],
)
def test_settings_of_classes_are_refused(grid, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        gcnii.fit(grid, "gcnii", **QUICK, **settings)


def test_equal_validation_numbers_are_refused_where_r_squared_decides(grid):
    y = grid.y.copy()
    y[grid.splits[0].val, 1] = 2.0
    even = replace(grid, y=y)
    sentence = "R² needs numbers that differ, but all validation nodes of split 0 of grid have the "
    with pytest.raises(GraphError, match=f"{sentence}same cold; use another metric"):
        gcnii.fit(even, "gcnii", monitor="val_score", **QUICK)
    timed = gcnii.split_by_time(replace(grid, splits=(), times=range(grid.n)))
    y[timed.splits[0].val] = 2.0
    with pytest.raises(GraphError, match=f"{sentence}same heat; use another metric"):
        gcnii.tune(replace(timed, y=y), trials=2)
    assert gcnii.fit(even, "gcnii", **QUICK).runs[0].best_epoch >= 0  # by the loss
    assert gcnii.fit(even, "gcnii", metric="mae", monitor="val_score", **QUICK).val[0] > 0


def test_settings_of_numbers_are_refused_for_classes():
    graph = gcnii.load("csbm", n=60)
    with pytest.raises(InputError, match="loss huber is for numbers to predict, but nodes of csbm"):
        gcnii.fit(graph, "gcnii", loss="huber", **QUICK)
    with pytest.raises(InputError, match="metric r2 is not for classes; known: auto, accuracy"):
        gcnii.fit(graph, "gcnii", metric="r2", **QUICK)


def test_a_loss_that_is_not_asked_for_is_in_no_key():
    from gcnii.train.recipe import in_force

    assert "loss" not in in_force(vars(Recipe()))
    assert in_force(vars(Recipe(loss="huber")))["loss"] == "huber"


def test_what_classes_alone_have_is_refused(grid, result):
    with pytest.raises(InputError, match="probabilities are for classes, but this model predicts"):
        result.predict_proba(grid)


@pytest.mark.parametrize(
    ("unit", "sentence"),
    [
        (0.0, "all known numbers of heat are the same; they must differ"),
        (
            1e200,
            r"heat has numbers up to .* that differ by .* at most; give them in another",
        ),
        (
            1e-200,
            "heat has .* another unit, below 1e\\+100 and at least 1e-100 apart",
        ),
        (np.nan, "no node of grid has all of its numbers \\(heat\\); give some nodes theirs"),
    ],
)
def test_numbers_without_a_variance_are_refused(unit, sentence):
    graph = diffused(side=6)
    other = replace(graph, y=unit * graph.y, splits=())
    with pytest.raises(GraphError, match=sentence):
        gcnii.fit(other, effort="quick")


def test_nodes_that_lack_some_of_their_numbers_are_counted():
    nodes = pd.DataFrame({"id": range(30), "x": 1.0, "a": range(30), "b": [1.0, None, 3.0] * 10})
    edges = pd.DataFrame({"source": [0], "target": [1]})
    said = "10 of the 30 nodes with numbers lack some of a, b, and are not trained on; predict one"
    with pytest.warns(UserWarning, match=said):
        graph = gcnii.from_frames(nodes, edges, target=["a", "b"])
    assert graph.labelled.sum() == 20
    with pytest.warns(UserWarning, match=said):
        gcnii.from_scipy(np.eye(30), np.ones((30, 1)), nodes[["a", "b"]], targets=("a", "b"))


def test_numbers_are_shown_with_four_digits_or_whole_and_r_squared_with_three():
    assert [number_shown(x) for x in (0.123456, 1234567.8, float("nan"))] == [
        "0.1235",
        "1,234,568",
        "–",
    ]
    assert mean_and_spread(np.array([0.5]), NUMBER_SCORES[0]) == "0.500 (1 run)"
