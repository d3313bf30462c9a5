"""The portfolio of numbers to predict: networks, trees, and the numbers of known neighbours."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from support.amounts import diffused

import gcnii
from gcnii.analysis.report import draw_study, trial_table
from gcnii.data.splits import stratified_split
from gcnii.members.known import Known
from gcnii.members.propagation import CorrectAndSmooth, LabelPropagation
from gcnii.members.trees import Trees
from gcnii.results.ensemble import greedy
from gcnii.targets import target_of
from gcnii.targets.scores import number_shown
from gcnii.tuning.closing import Difference
from gcnii.tuning.trials import value_of

HOW = {"effort": "quick", "epochs": 20, "device": "cpu"}


@pytest.fixture(scope="module")
def grid():
    return diffused(side=14, steps=8, targets=("heat", "cold"), unit=100.0)


@pytest.fixture(scope="module")
def ensemble(grid):
    return gcnii.fit(grid, **HOW)


@pytest.mark.slow
def test_a_portfolio_of_numbers_has_trees_networks_and_neighbours(grid, ensemble):
    board = {row["member"]: row for row in ensemble.leaderboard()}
    assert {"trees", "trees-own", "label-propagation", "mlp", "gcnii"} <= set(board)
    assert ensemble.metric == "R²"
    assert ensemble.val[0] >= max(row["val"] for row in board.values()) - 0.02
    assert ensemble.left_out == ()


@pytest.mark.slow
def test_an_ensemble_of_numbers_opens_as_it_was_saved(grid, ensemble, tmp_path):
    opened = gcnii.open_bundle(ensemble.save(tmp_path / "e")).knowing(grid)
    np.testing.assert_allclose(opened.predict(grid), ensemble.predict(grid), rtol=1e-9)


@pytest.fixture(scope="module")
def partly():
    """A small grid of which some numbers are unknown, and its portfolio."""
    graph = diffused(side=8, targets=("heat",))
    y = np.where(np.arange(graph.n)[:, None] % 5, graph.y, np.nan)
    graph = replace(graph, y=y, splits=(stratified_split(y, 0),))
    return graph, gcnii.fit(graph, effort="quick", epochs=1, device="cpu")


def test_known_neighbours_answer_a_new_node_where_other_numbers_are_unknown(partly):
    graph, ensemble = partly
    nodes = pd.DataFrame({"id": ["new"], "x0": [0.0]})
    edges = pd.DataFrame({"source": ["new"], "target": ["9"]})
    with pytest.warns(UserWarning, match="matched by position") as said:
        ensemble.member("label-propagation").predict_new(nodes, edges, graph)
    assert len(said) == 1  # and not that labels would be needed


def test_a_bundle_opens_where_validation_has_no_r_squared(partly, tmp_path):
    _, ensemble = partly
    runs = tuple(replace(run, val=np.nan) for run in ensemble.runs)
    saved = replace(ensemble, runs=runs).save(tmp_path / "e")
    assert gcnii.open_bundle(saved).leaderboard()[-1]["val"] is None


@pytest.mark.parametrize("columns", ["own", "neighbourhood"])
def test_trees_of_numbers_answer_in_units_and_open_again(grid, columns):
    split = grid.splits[0]
    trees, known = Trees.fit(grid, split, columns=columns), Known.of(grid, split)
    again = Trees.of(trees.document())
    values = trees.answers(grid, known)
    np.testing.assert_array_equal(again.answers(grid, known), values)
    spread = np.abs(grid.y - grid.y[split.train].mean(0))[split.train].mean()
    assert np.abs(values - grid.y)[split.train].mean() < spread


def test_a_nodes_own_number_is_not_among_its_columns(grid):
    split = grid.splits[0]
    trees = Trees.fit(grid, split)
    node = np.flatnonzero(split.train)[0]
    known = Known.of(grid, split)
    other = Known.of(grid, split)
    other.Y[node] += 5.0
    np.testing.assert_array_equal(trees.table(grid, known)[node], trees.table(grid, other)[node])


def test_numbers_of_known_neighbours_spread_in_units(grid):
    split = grid.splits[0]
    values = LabelPropagation.fit(grid, split)(grid, Known.of(grid, split))
    assert np.mean(target_of(grid).badness(values[split.test], grid.y[split.test])) < 0.5


def test_residuals_spread_and_correct_what_another_says(grid):
    split = grid.splits[0]
    said = np.broadcast_to(grid.y[split.train].mean(0), grid.y.shape)
    better = CorrectAndSmooth.fit(said, grid, split)(said, grid, Known.of(grid, split))
    target, y = target_of(grid), grid.y[split.test]
    assert target.badness(better[split.test], y).mean() < 0.7


def test_weights_are_those_of_the_lowest_squared_error():
    y = np.random.default_rng(0).normal(size=(200, 1))
    noise = np.random.default_rng(1).normal(size=(3, 200, 1))
    members = y + noise * np.array([0.3, 0.3, 3.0])[:, None, None]
    graph = diffused(side=4)
    weights = greedy(members, y, target_of(graph))
    assert weights[2] < 0.05
    np.testing.assert_allclose(weights[:2], 0.5, atol=0.15)


def test_a_member_of_a_number_below_zero_weighs_what_it_would_above():
    y = np.random.default_rng(0).normal(size=(100, 1))
    members = np.stack([y + 0.1, y - 0.4, np.zeros_like(y)])
    graph = diffused(side=4)
    here, there = (greedy(members - by, y - by, target_of(graph)) for by in (0, 1e6))
    np.testing.assert_allclose(here, there)


@pytest.fixture(scope="module")
def tuned(grid):
    how = {"epochs": 30, "layers": 2, "device": "cpu", "threads": 1}
    return gcnii.tune(grid, metric="mae", models=["gcn", "mlp"], trials=4, seeds=2, **how)


def test_the_setting_with_the_lowest_error_wins(tuned):
    scores = [trial.score for trial in tuned.trials if trial.outcome == "complete"]
    assert len(set(scores)) > 1
    assert scores == sorted(scores)
    frozen = [one for one in tuned.trials if one.outcome == "complete"]
    assert [value_of(vars(one) | {"lost": False}) for one in frozen] == [-one for one in scores]


def test_what_a_search_found_is_said_in_units(tuned):
    assert f"gcn, {number_shown(tuned.winner.score)}" in tuned.lines()[0]
    assert tuned.verdict.startswith("The graph helps: gcn is ")
    assert " of MAE below an MLP" in tuned.verdict
    assert "points" not in " ".join(tuned.lines())
    console = Console(width=200)
    with console.capture() as said:
        console.print(trial_table(tuned.document()))
    assert "by validation (MAE)\n" in said.get()
    figure = draw_study(tuned.document())
    assert figure.axes[0].get_ylabel() == "validation MAE"
    low, high = figure.axes[0].get_ylim()
    assert low < tuned.winner.score < high


def test_a_lost_trial_is_worse_than_any_error():
    assert value_of({"lost": True, "settings": {"metric": "mae"}}) < -1e20
    assert value_of({"lost": True, "settings": {}}) == 0
    assert value_of({"lost": False, "settings": {"metric": "rmse"}, "val": [1.0, 3.0]}) == -2


@pytest.mark.slow
def test_the_lead_of_one_ensemble_over_another_has_an_error_over_the_nodes(grid, ensemble):
    lead = Difference.of(ensemble, ensemble.member(ensemble.members[0].name))
    assert lead.error > 0
    assert str(lead).endswith(f"± {lead.error:.3f}")
