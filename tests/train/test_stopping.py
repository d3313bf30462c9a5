"""Every published stopping rule: when it stops, and which weights it keeps."""

import numpy as np
import pytest
import torch
from support.stopping_oracle import follow

from gcnii import data
from gcnii.results.fit import fit
from gcnii.train.group import ReplicaGroup
from gcnii.train.plan import make_plan
from gcnii.train.recipe import Recipe
from gcnii.train.stopping import Run
from gcnii.train.task import Task

SMALL = {"layers": 3, "width": 16, "epochs": 12, "device": "cpu", "precision": "float64"}


@pytest.fixture(scope="module")
def graph():
    return data.load("csbm", n=120, degree=6, signal=3.0, labels_per_class=10)


def test_training_stops_when_patience_epochs_brought_no_strictly_lower_validation_loss():
    recipe = Recipe(monitor="val_loss", epochs=100, patience=3)
    run = follow(recipe, [(loss, 0.5) for loss in (3.0, 2.0, 2.0, 2.5, 2.0, 1.0)])
    assert (run.best_epoch, run.epochs, run.stopped) == (1, 5, True)


def test_training_stops_when_it_is_out_of_epochs():
    run = follow(Recipe(epochs=2), [(3.0, 0.5), (2.0, 0.5), (1.0, 0.5)])
    assert (run.best_epoch, run.epochs, run.stopped) == (1, 2, True)


def test_training_goes_on_after_its_epochs_while_the_best_is_among_the_last():
    recipe = Recipe(monitor="val_loss", epochs=3, longest=8, patience=2)
    losses = [5.0, 4.0, 3.0, 2.0, 2.5, 1.0, 1.5, 1.5, 0.5, 0.1]
    run = follow(recipe, [(loss, 0.5) for loss in losses])
    assert (run.best_epoch, run.epochs, run.stopped) == (5, 8, True)
    better = follow(recipe, [(9.0 - epoch, 0.5) for epoch in range(10)])
    assert (better.best_epoch, better.epochs, better.stopped) == (7, 8, True)
    assert recipe.cut_short(better)


def test_ties_that_renew_patience_do_not_prolong_a_training():
    recipe = Recipe(monitor="val_score_loss", epochs=5, longest=50, patience=3)
    run = follow(recipe, [(1.0, 0.5), *[(2.0, 0.5)] * 9])
    assert (run.best_epoch, run.epochs, run.stopped) == (0, 5, True)
    assert not recipe.cut_short(run)


def test_the_test_score_is_that_of_the_best_validation_epoch_and_not_the_best_one():
    run = follow(Recipe(monitor="val_loss"), [(3.0, 0.5, 0.9), (1.0, 0.5, 0.4), (2.0, 0.5, 1.0)])
    assert run.test == 0.4


def test_a_chosen_score_can_decide_instead_of_the_loss():
    run = follow(Recipe(monitor="val_score"), [(1.0, 0.2), (9.0, 0.7), (0.5, 0.7)])
    assert (run.best_epoch, run.val_loss) == (1, 9.0)


def test_the_last_weights_can_be_kept_instead_of_the_best():
    run = follow(Recipe(monitor="last", epochs=3, patience=1), [(1.0, 0.5, 0.9), (2.0, 0.5, 0.3)])
    assert (run.best_epoch, run.test, run.stopped) == (1, 0.3, False)


def test_before_anything_is_kept_there_is_no_score():
    run = follow(Recipe(monitor="val_score"), [(1.0, np.nan)])
    assert run.best_epoch == -1
    assert np.isnan(run.val)


def test_gat_goes_on_while_loss_or_score_is_as_good_as_ever_and_keeps_when_both_are():
    recipe = Recipe(monitor="val_either", patience=2)
    run = follow(
        recipe, [(1.0, 0.5), (0.9, 0.4), (1.2, 0.5), (0.9, 0.5), (1.0, 0.4), (1.0, 0.4), (0.1, 1.0)]
    )
    assert (run.best_epoch, run.epochs) == (3, 6)


def test_ppnp_keeps_the_highest_score_and_among_equals_the_lowest_loss():
    recipe = Recipe(monitor="val_score_loss", patience=2)
    run = follow(recipe, [(1.0, 0.5), (0.9, 0.5), (0.95, 0.5), (0.8, 0.4), (0.9, 0.3), (0.9, 0.3)])
    assert (run.best_epoch, run.epochs) == (1, 6)


def test_gdc_keeps_the_last_of_the_highest_scores_and_ties_renew_its_patience():
    recipe = Recipe(monitor="val_score_ties", patience=2)
    run = follow(recipe, [(1.0, 0.5), (1.0, 0.4), (1.0, 0.5), (1.0, 0.4), (1.0, 0.4), (1.0, 0.9)])
    assert (run.best_epoch, run.epochs) == (2, 5)


def test_a_window_stops_when_the_loss_exceeds_the_mean_of_the_epochs_before():
    losses = [5.0, 4.0, 9.0, 3.0, 3.0, 3.4, 1.0]
    recipe = Recipe(patience=100, window=2, window_from=3)
    run = follow(recipe, [(loss, 0.5) for loss in losses])
    assert run.epochs == 6  # 9.0 came too early to count; 3.4 is above the mean of 3 and 3
    assert run.best_epoch == 3


def test_kipf_stops_by_his_window_and_keeps_the_last_weights():
    recipe = Recipe(monitor="last", window=2)
    run = follow(recipe, [(loss, 0.5) for loss in (3.0, 2.0, 2.6, 1.0)])
    assert (run.epochs, run.best_epoch) == (3, 2)


def test_a_plateau_lowers_the_step_size_down_to_its_floor():
    recipe = Recipe(lr=0.1, plateau=2, plateau_factor=0.5, plateau_floor=0.03)
    losses = [(loss, 0.5) for loss in (1.0, 2.0, 2.0, 2.0, 0.5, 2.0, 2.0, 2.0)]
    scales = [follow(recipe, losses[:epochs]).lr_scale for epochs in range(1, 9)]
    assert scales == [1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.3]


def test_a_shorter_step_is_a_step_of_adam_with_that_step_size(graph):
    settings = {name: value for name, value in SMALL.items() if name != "device"}

    def train(lr, scale):
        task = Task.of(
            graph, make_plan("gcnii", settings | {"lr": lr, "plateau": 100}), torch.device("cpu")
        )
        group = ReplicaGroup(task, [Run(seed, lr_scale=scale) for seed in range(2)])
        for _ in range(3):
            group.advance()
        return group.replicas.weights

    long, short = train(0.02, 0.25), train(0.005, 1.0)
    for name, weight in short.items():
        torch.testing.assert_close(long[name], weight)


def test_dropedge_watches_the_validation_loss_of_the_training_pass(graph):
    noisy, clean = (
        fit(graph, **SMALL | {"dropout": 0.8, "monitor": rule})
        for rule in ("noisy_loss", "val_loss")
    )
    train, val = (np.array(result.runs[0].curve)[:, :2].T for result in (noisy, clean))
    np.testing.assert_array_equal(train[0], val[0])  # the same training
    assert (train[1] != val[1]).all()  # another validation loss


def test_replicas_lower_their_step_sizes_each_for_itself(graph):
    settings = SMALL | {"epochs": 40, "lr": 0.2, "plateau": 2, "patience": 40}
    together, alone = (fit(graph, seeds=range(4), batch=batch, **settings) for batch in (4, 1))
    scales = [run.lr_scale for run in together.runs]
    assert len(set(scales)) > 1
    assert scales == [run.lr_scale for run in alone.runs]
    np.testing.assert_allclose(
        *([run.curve[-1] for run in one.runs] for one in (together, alone)), rtol=1e-7
    )


def test_gradients_that_are_clipped_to_nothing_leave_the_weights(graph):
    settings = SMALL | {"decay_conv": 0.0, "decay_dense": 0.0}
    free, clipped = (fit(graph, **settings | {"clip": clip}) for clip in (0.0, 1e-12))
    moved = [np.ptp([val_loss for _, val_loss, _ in one.runs[0].curve]) for one in (free, clipped)]
    assert moved[0] > 1e-2
    assert moved[1] < 1e-4
