"""Settings are replicas, too: those that are but numbers train as one batch, each as if alone."""

from math import isnan

import numpy as np
import pytest
import torch
from support.each_kind import of_each_kind

from gcnii.data import load
from gcnii.errors import InputError
from gcnii.results.fit import Session, fit, fit_plans
from gcnii.train import group as loop
from gcnii.train.plan import batch_key, batched, make_plan, make_plans

NUMBERS = {
    "lr": [0.01, 0.05, 0.02],
    "decay_conv": [0.0, 0.01, 1e-3],
    "decay_dense": [0.1, 0.0, 0.2],
    "alpha": [0.1, 0.5, 0.2],
    "lam": [0.5, 1.5, 0.2],
    "dropout": [0.0, 0.6, 0.3],
}
FULL = {"batches": "full", "epochs": 4, "monitor": "val_loss"}


@pytest.fixture(scope="module")
def graph():
    return load("csbm", n=60, degree=4)


def several(model):
    """Three values of everything that a model can be batched by."""
    return {name: values for name, values in NUMBERS.items() if name in batched(model)}


def alone(graph, model, seeds, each, **settings):
    return [fit(graph, model, seeds=seeds, **settings, **one) for one in each]


def rows(lists):
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


@of_each_kind("model")
def test_a_replica_among_other_settings_is_the_same_run_as_alone(model, graph):
    settings = FULL | ({"layers": 3} if "layers" in make_plan(model, {}).model_settings else {})
    settings |= {"geometry": "isomap"} if model.startswith("geom-gcn") else {}
    settings |= {"width": 8} if "width" in make_plan(model, {}).model_settings else {}
    lists = several(model)
    together = fit(graph, model, seeds=[0, 1], batch=6, precision="float64", **settings, **lists)
    singles = alone(graph, model, [0, 1], rows(lists), precision="float64", **settings)
    assert [(run.setting, run.seed) for run in together.runs] == [
        (setting, seed) for setting in range(3) for seed in (0, 1)
    ]
    for setting, single in enumerate(singles):
        part = together.at(setting)
        np.testing.assert_allclose(
            [run.curve for run in part.runs], [run.curve for run in single.runs], rtol=1e-7
        )
        for name, weight in single.weights.items():
            torch.testing.assert_close(part.weights[name], weight, rtol=1e-7, atol=1e-9)
        assert part.plan == single.plan


@pytest.mark.parametrize("memory", ["keep", "recompute"])
def test_activations_are_recomputed_with_each_replicas_own_numbers(graph, memory):
    settings = {**FULL, "layers": 5, "memory": memory, "precision": "float64", **several("gcnii")}
    found = fit(graph, "gcnii", seeds=[3], batch=3, **settings)
    one = {name: values[1] for name, values in several("gcnii").items()}
    single = fit(graph, "gcnii", seeds=[3], **settings | one)
    np.testing.assert_allclose(found.at(1).runs[0].curve, single.runs[0].curve, rtol=1e-9)


def test_settings_given_as_dictionaries_or_as_lists_are_the_same(graph):
    lists = {"alpha": [0.1, 0.3], "lr": [0.01, 0.02]}
    one = fit(graph, layers=2, epochs=3, seeds=[0], **lists)
    other = fit(graph, layers=2, epochs=3, seeds=[0], settings=rows(lists))
    assert one.val.tolist() == other.val.tolist()
    assert [plan.model_settings["alpha"] for plan in other.plans] == [0.1, 0.3]


@pytest.mark.parametrize("drop_edge", [[0.2, 0.2], [0.2, 0.5]])
def test_replicas_may_leave_out_different_shares_of_the_links(graph, drop_edge):
    settings = {"layers": 2, "epochs": 4, "precision": "float64", "seeds": [1]}
    found = fit(graph, batch=2, drop_edge=drop_edge, alpha=[0.1, 0.2], **settings)
    single = fit(graph, drop_edge=drop_edge[1], alpha=0.2, **settings)
    np.testing.assert_allclose(found.at(1).runs[0].curve, single.runs[0].curve, rtol=1e-9)


def test_each_setting_has_its_own_patience_and_number_of_epochs(graph):
    limits = {"epochs": [3, 40, 40], "patience": [100, 2, 5]}
    found = fit(graph, layers=2, seeds=[0], batch=3, lr=0.05, **limits)
    singles = alone(graph, "gcnii", [0], rows(limits), layers=2, lr=0.05)
    assert [run.epochs for run in found.runs] == [one.runs[0].epochs for one in singles]


def test_a_plateau_lowers_each_step_size_to_its_own_floor(graph):
    settings = {"layers": 2, "epochs": 12, "plateau": 1, "plateau_floor": 0.004, "seeds": [0]}
    settings |= {"precision": "float64"}
    found = fit(graph, batch=2, lr=[0.2, 0.005], **settings)
    single = fit(graph, lr=0.005, **settings)
    assert found.at(1).runs[0].lr_scale == pytest.approx(single.runs[0].lr_scale)
    np.testing.assert_allclose(found.at(1).runs[0].curve, single.runs[0].curve, rtol=1e-9)


def test_runs_that_leave_make_room_for_runs_that_wait(graph, monkeypatch):
    sizes, join = [], loop.ReplicaGroup.join
    monkeypatch.setattr(
        loop.ReplicaGroup, "join", lambda self, runs: sizes.append(len(runs)) or join(self, runs)
    )
    limits = {"epochs": [3, 12, 6, 9, 5], "alpha": [0.1, 0.2, 0.3, 0.4, 0.5]}
    settings = {"layers": 2, "seeds": [0, 1], "dropout": 0.5, "precision": "float64"}
    found = fit(graph, batch=4, **settings, **limits)
    assert sum(sizes) > 0
    singles = alone(graph, "gcnii", each=rows(limits), **settings)
    for setting, single in enumerate(singles):
        for mine, own in zip(found.at(setting).runs, single.runs, strict=True):
            np.testing.assert_allclose(mine.curve, own.curve, rtol=1e-9)
            assert mine.epochs == own.epochs == limits["epochs"][setting]


def test_who_is_asked_to_leave_keeps_its_best_epoch_so_far(graph):
    asked = []

    def leave(runs):
        asked.append([run.key for run in runs])
        return [run for run in runs if run.setting == 1 and run.epochs >= 3]

    plans = make_plans("gcnii", {"layers": 2, "epochs": 8, "alpha": [0.1, 0.2, 0.3]}, graph)
    found = fit_plans(graph, plans, Session(batch=6, leave=leave), seeds=[0, 1])
    assert [run.epochs for run in found.runs] == [8, 8, 3, 3, 8, 8]
    assert all(run.stopped and run.best_epoch >= 0 for run in found.runs)
    single = fit_plans(graph, plans[2:3], seeds=[0, 1])
    np.testing.assert_allclose(found.at(2).val, single.val)
    assert asked[0] == [(setting, seed) for setting in range(3) for seed in (0, 1)]


def test_a_setting_that_diverges_loses_and_the_others_go_on(graph):
    found = fit(graph, layers=2, epochs=30, lr=[0.01, 1e30], seeds=[0, 1], batch=4)
    good, bad = found.at(0), found.at(1)
    assert all(isnan(run.val) and run.stopped and run.epochs < 30 for run in bad.runs)
    np.testing.assert_allclose(good.val, fit(graph, layers=2, epochs=30, seeds=[0, 1]).val)
    assert found.runs[found.best].setting == 0


@pytest.mark.usefixtures("save_every_epoch")
def test_a_killed_batch_of_settings_resumes_to_the_same_numbers(graph, tmp_path):
    lists = {"alpha": [0.1, 0.2, 0.3], "epochs": [4, 9, 12], "lr": [0.01, 0.02, 0.03]}
    settings = {"layers": 2, "seeds": [0, 1], "batch": 3, **lists}
    whole = fit(graph, **settings)

    def die(report):
        if report.epoch == 6:
            raise InterruptedError("power")

    path = tmp_path / "checkpoint"
    with pytest.raises(InterruptedError):
        fit(graph, checkpoint=path, callbacks=[die], **settings)
    again = fit(graph, checkpoint=path, **settings)
    np.testing.assert_allclose(again.val, whole.val)
    assert [run.key for run in again.runs] == [run.key for run in whole.runs]
    for mine, own in zip(again.runs, whole.runs, strict=True):
        np.testing.assert_allclose(mine.curve, own.curve, rtol=1e-5)


def test_a_report_says_of_which_setting_it_is(graph):
    seen = []
    told = lambda report: seen.append((report.epoch, report.setting, *report.measures))  # noqa: E731
    fit(graph, layers=2, epochs=2, alpha=[0.1, 0.2], seeds=[4, 5], batch=4, callbacks=[told])
    assert seen == [(0, 0, 4, 5), (0, 1, 4, 5), (1, 0, 4, 5), (1, 1, 4, 5)]


def test_the_best_setting_predicts_and_one_setting_is_saved(graph, tmp_path):
    found = fit(graph, layers=2, epochs=5, alpha=[0.1, 0.9], seeds=[0, 1])
    setting = found.runs[found.best].setting
    assert np.array_equal(found.predict(graph), found.at(setting).predict(graph))
    assert "2 settings" in repr(found)
    with pytest.raises(InputError, match=r"one setting, this result 2.*result\.at"):
        found.save(tmp_path / "both")
    assert (found.at(1).save(tmp_path / "one") / "run.json").exists()
    with pytest.raises(InputError, match="numbered 0 to 1, got 2"):
        found.at(2)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"layers": [2, 4]}, "layers must be the same in one fit"),
        ({"alpha": [0.1, 0.2], "lr": [0.1]}, "one length, got alpha 2, lr 1"),
        ({"alpha": []}, "alpha must have one value or more"),
        ({"alpha": [0.1, 7.0]}, r"alpha must be a number in \[0, 1\], got 7"),
        ({"settings": []}, "one or more dictionaries"),
        ({"settings": [{"alpha": 0.1}], "lr": [0.1]}, "in `settings`, or as lists"),
        ({"settings": [{"alpha": 0.1}, {"width": 8}]}, "width must be the same"),
        ({"drop_edge": [0.0, 0.5]}, "drop_edge must be 0 in all settings"),
    ],
)
def test_lists_that_make_no_batch_are_refused_before_training(wrong, words, graph):
    with pytest.raises(InputError, match=words):
        fit(graph, **wrong)


def test_plans_of_one_key_differ_in_numbers_alone(graph):
    plans = [make_plan("gcnii", {"alpha": alpha, "lr": alpha}, graph) for alpha in (0.1, 0.2)]
    assert batch_key(plans[0]) == batch_key(plans[1])
    for change in ({"layers": 3}, {"monitor": "val_score"}, {"norm": "walk"}, {"drop_edge": 0.1}):
        assert batch_key(make_plan("gcnii", change, graph)) != batch_key(plans[0])


@pytest.mark.cuda
@pytest.mark.parametrize(
    "model", ["gcnii", "gcnii-star", "gcn", "appnp", "gat", "gcnii-ppi", "mlp"]
)
def test_on_a_gpu_a_batch_of_settings_trains_as_each_alone(model, graph):
    settings = {"epochs": 30, "patience": 100}
    lists = several(model)
    found = fit(graph, model, seeds=[0, 1], device="cuda", **settings, **lists)
    for setting, one in enumerate(rows(lists)):
        single = fit(graph, model, seeds=[0, 1], device="cuda", **settings, **one)
        mine, own = found.at(setting).runs[0].curve[:10], single.runs[0].curve[:10]
        np.testing.assert_allclose(np.array(mine)[:, :2], np.array(own)[:, :2], rtol=2e-3)


def test_an_integer_first_does_not_round_the_settings_after_it(graph):
    both = fit(graph, layers=2, width=4, alpha=[0, 0.5], seeds=[0], batch=2, **FULL)
    single = fit(graph, layers=2, width=4, alpha=0.5, seeds=[0], **FULL)
    np.testing.assert_allclose(both.at(1).runs[0].curve, single.runs[0].curve, rtol=1e-5)
