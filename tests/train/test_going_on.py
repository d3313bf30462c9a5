"""On a graph of one's own, training goes on after its epochs while it still gets better."""

from dataclasses import replace

import numpy as np
import pytest
from support.killing import Killed, killed_after_a_save

from gcnii import data, fit
from gcnii.train import presets
from gcnii.train.plan import make_plan

HOW = {"layers": 2, "width": 8, "lr": 0.001, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    """A graph that is not of the catalog."""
    made = replace(data.load("csbm", n=60), source="")
    assert not made.catalog_name
    return made


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Ten epochs, where others have 500."""
    monkeypatch.setattr(presets, "STOP", {"epochs": 10, "patience": 4})


def numbers(result):
    return [(run.seed, run.best_epoch, run.epochs, run.val_loss, run.curve) for run in result.runs]


def same(one, other):
    weights = (one.weights[name].equal(other.weights[name]) for name in one.weights)
    return numbers(one) == numbers(other) and all(weights)


def test_a_training_that_still_gets_better_goes_on_until_its_patience_ends(graph):
    result = fit(graph, seeds=[0], **HOW)
    (run,) = result.runs
    assert run.epochs > 10
    assert run.epochs - 1 - run.best_epoch >= 4
    assert result.plan.settings["epochs"] == 10
    assert result.plan.settings["longest"] == presets.LONGEST


def test_a_number_of_epochs_that_is_given_is_kept_and_a_warning_says_what_it_cost(graph):
    said = "seed 0 ended at its limit of 12 epochs, and was best in epoch 11, counted from 0;"
    with pytest.warns(UserWarning, match=said):
        result = fit(graph, seeds=[0], epochs=12, **HOW)
    assert result.runs[0].epochs == 12
    assert result.plan.settings["longest"] == 0


def test_what_came_before_the_limit_is_the_same_to_the_bit(graph):
    with pytest.warns(UserWarning, match="ended at its limit"):
        short = fit(graph, seeds=[0], epochs=10, **HOW)
    long = fit(graph, seeds=[0], **HOW)
    assert long.runs[0].curve[:10] == short.runs[0].curve


def test_graphs_with_published_settings_and_models_with_rules_of_their_own_stop_as_before(graph):
    for plan in (
        make_plan("gcnii", {}, data.load("csbm", n=60)),
        make_plan("sgc", {}, graph),
        make_plan("gcnii", {"monitor": "last"}, graph),
        make_plan("gcnii", {"epochs": 500}, graph),
    ):
        assert plan.recipe.longest == 0
        assert "longest" not in plan.identity(graph)["settings"]


def test_seeds_of_a_batch_go_on_each_by_itself(graph):
    together = fit(graph, seeds=range(3), batch=3, **HOW)
    assert len({run.epochs for run in together.runs}) > 1
    alone = [fit(graph, seeds=[seed], **HOW).runs[0] for seed in range(3)]
    assert [(run.best_epoch, run.epochs) for run in together.runs] == [
        (run.best_epoch, run.epochs) for run in alone
    ]


@pytest.mark.usefixtures("save_every_epoch")
def test_a_training_killed_after_its_epochs_resumes_to_the_same_bits(graph, tmp_path):
    whole = fit(graph, seeds=range(2), batch=2, **HOW)
    kills = 0
    while True:
        try:
            with killed_after_a_save():
                found = fit(graph, seeds=range(2), batch=2, checkpoint=tmp_path / "c", **HOW)
            break
        except Killed:
            kills += 1
    assert kills > 1
    assert same(found, whole)
    assert np.isfinite(found.test).all()
