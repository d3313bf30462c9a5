"""An epoch that a CUDA graph can hold: its whole effect is on tensors that stay where they are."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.each_kind import of_each_kind
from support.fitting import fitting
from support.killing import Killed, killed_after_a_save
from support.tape import record

from gcnii import data
from gcnii.nn import MODELS
from gcnii.results.fit import fit
from gcnii.train import group
from gcnii.train.batches import Batch
from gcnii.train.group import CAPTURES, WARM, CapturedEpoch, Diverged, ReplicaGroup
from gcnii.train.plan import make_plan
from gcnii.train.stopping import Run
from gcnii.train.task import Task

CPU = torch.device("cpu")
SMALL = {"layers": 4, "width": 16, "dropout": 0.3, "epochs": 12, "lr": 0.02, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    return data.load("csbm", n=120, degree=6, signal=3.0, labels_per_class=10)


@pytest.fixture
def tapes(monkeypatch, sync_every):
    """CPU epochs are captured, and looked at every eight epochs; the tapes so far."""
    tapes = []
    monkeypatch.setitem(CAPTURES, "cpu", record(tapes))
    sync_every(8)
    return tapes


def outcome(result):
    """Everything of the runs but the time they took."""
    return [
        {name: value for name, value in vars(run).items() if name != "seconds"}
        for run in result.runs
    ]


def same(one, two):
    """Whether two results are the same to the bit."""
    np.testing.assert_equal(outcome(one), outcome(two))
    assert all(torch.equal(one.weights[name], two.weights[name]) for name in one.weights)
    return True


def full(model, settings):
    return fitting(model, {**settings, "batches": "full", "history": "none"})


@pytest.mark.parametrize("replicas", [1, 3])
@of_each_kind("model")
def test_an_epoch_played_back_from_its_operations_is_the_epoch(
    model, replicas, graph, tapes, monkeypatch, sync_every
):
    settings = full(
        model,
        SMALL
        | {"layers": 2, "epochs": 8, "seeds": range(replicas), "batch": replicas, "drop_edge": 0.2},
    )
    played = fit(graph, model, **settings)
    assert len(tapes) == 1
    assert not tapes[0].waits
    sync_every(1)
    monkeypatch.delitem(CAPTURES, "cpu")
    assert same(played, fit(graph, model, **settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"monitor": "val_either", "patience": 5, "lr": 0.2, "plateau": 1, "clip": 0.01},
        {
            "monitor": "noisy_loss",
            "window": 3,
            "window_from": 5,
            "memory": "recompute",
            "drop_form": "pairs",
        },
        {"monitor": "last", "precision": "float64", "norm": "walk"},
    ],
)
def test_an_epoch_is_played_back_whatever_the_recipe(settings, graph, tapes, monkeypatch):
    settings = SMALL | {"seeds": range(3), "batch": 3, "epochs": 16, "drop_edge": 0.2} | settings
    played = fit(graph, **settings)
    assert not tapes[0].waits
    monkeypatch.delitem(CAPTURES, "cpu")
    assert same(played, fit(graph, **settings))


def test_several_labels_a_node_are_graded_without_waiting(graph, tapes):
    y = np.stack([graph.labels, 1 - graph.labels], 1)
    fit(replace(graph, y=y, part=np.arange(graph.n) % 2), **SMALL)
    assert not tapes[0].waits


# Who stops within eight epochs has measured more than it should; nobody may see it.
EARLY = SMALL | {
    "seeds": range(6),
    "batch": 6,
    "epochs": 100,
    "patience": 4,
    "lr": 0.05,
    "precision": "float64",
}


def test_looking_rarely_changes_nothing_that_is_reported(graph, keep_stopped_runs, sync_every):
    seen = {1: [], 8: []}
    keep_stopped_runs()
    results = []
    for every in seen:
        sync_every(every)
        results.append(fit(graph, callbacks=[seen[every].append], **EARLY))
    assert len({run.epochs for run in results[0].runs}) > 2
    assert any(run.epochs % 8 for run in results[0].runs)
    assert same(*results)
    assert seen[1] == seen[8]


def test_an_epochs_time_is_shared_by_those_who_took_part(graph, monkeypatch, sync_every):
    sync_every(8)
    done, epoch = [], ReplicaGroup._epoch
    monkeypatch.setattr(ReplicaGroup, "_epoch", lambda self: done.append(epoch(self)))
    # an epoch takes a second
    monkeypatch.setattr(group.time, "perf_counter", lambda: float(len(done)))
    runs = sorted(fit(graph, **EARLY).runs, key=lambda run: run.epochs)
    assert runs[0].seconds == pytest.approx(runs[0].epochs / len(runs))
    assert sum(run.seconds for run in runs) == pytest.approx(runs[-1].epochs)


@pytest.mark.parametrize("every", [1, 8])
def test_a_smaller_group_goes_on_to_the_same_numbers(
    every, graph, monkeypatch, keep_stopped_runs, sync_every
):
    sync_every(every)
    sizes, compact = [], ReplicaGroup.compact

    def noted(self):
        compact(self)
        sizes.append(len(self.runs))

    monkeypatch.setattr(ReplicaGroup, "compact", noted)
    shrunk = fit(graph, **EARLY)
    assert sizes[0] == 6
    assert sizes[-1] <= 3
    keep_stopped_runs()
    whole = fit(graph, **EARLY)
    # The passes are the same to the bit; gradients are summed in another order where fewer replicas
    # share a product.
    assert [(run.epochs, run.best_epoch) for run in shrunk.runs] == [
        (run.epochs, run.best_epoch) for run in whole.runs
    ]
    for one, two in zip(shrunk.runs, whole.runs, strict=True):
        np.testing.assert_allclose(one.curve, two.curve, rtol=1e-10)


def test_a_smaller_group_is_captured_anew(graph, tapes, monkeypatch):
    settings = EARLY | {"patience": 10, "lr": 0.02}
    played = fit(graph, **settings)
    assert len(tapes) > 1
    monkeypatch.delitem(CAPTURES, "cpu")
    assert same(played, fit(graph, **settings))


def test_a_loss_that_is_not_a_number_is_reported_with_its_epoch(graph, sync_every):
    messages = []
    for every in (1, 8):
        sync_every(every)
        with pytest.raises(Diverged) as error:
            fit(graph, **SMALL | {"lr": 1e18, "seeds": range(3), "batch": 3})
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_who_has_stopped_may_measure_what_it_likes(graph, monkeypatch, sync_every):
    sync_every(8)
    measure = ReplicaGroup._measure

    def spoiled(self, noisy):
        measures = measure(self, noisy)
        return torch.where(self.stopping.table[-1] > 0, torch.nan, measures)

    honest = fit(graph, **EARLY)
    monkeypatch.setattr(ReplicaGroup, "_measure", spoiled)
    assert same(honest, fit(graph, **EARLY))


def killed_and_resumed(graph, path, times, **settings):
    for _ in range(times):
        with killed_after_a_save(), pytest.raises(Killed):
            fit(graph, checkpoint=path, **settings)
    return fit(graph, checkpoint=path, **settings)


@pytest.mark.usefixtures("save_every_epoch")
@pytest.mark.parametrize("every", [1, 4])
def test_a_killed_group_of_which_some_have_stopped_resumes_to_the_same_bits(
    every, graph, tmp_path, sync_every
):
    sync_every(every)
    settings = EARLY | {"window": 3, "plateau": 2, "precision": "float32"}
    whole = fit(graph, **settings)
    stops = sorted(run.epochs for run in whole.runs)
    assert stops[1] < stops[-1]  # in between, some have stopped and are still there
    resumed = killed_and_resumed(graph, tmp_path / "checkpoint", stops[1] // every, **settings)
    assert same(whole, resumed)


@pytest.mark.usefixtures("listening")
def test_ctrl_c_is_heard_at_the_next_look(graph, sync_every):
    sync_every(8)
    asked = []

    def press(now):
        if now.epoch == 9:
            asked.append(os.kill(os.getpid(), signal.SIGINT))

    result = fit(graph, callbacks=[press], **SMALL | {"epochs": 40})
    assert asked
    assert result.interrupted
    assert result.runs[0].epochs == 16


def test_what_cannot_be_captured_is_trained_all_the_same_and_said_once(graph, monkeypatch):
    def refuse(epoch, pool):
        try:
            raise RuntimeError("operation not permitted\nwhen stream is capturing")
        finally:
            raise RuntimeError("and the capture could not be ended")

    plain = fit(graph, **SMALL)
    monkeypatch.setitem(CAPTURES, "cpu", refuse)
    with pytest.warns(
        UserWarning, match="^trains without a CUDA graph: operation not permitted$"
    ) as warned:
        result = fit(graph, **SMALL)
    assert len(warned) == 1
    assert same(plain, result)


def test_memory_that_runs_short_in_a_capture_is_reported_and_not_trained_around(monkeypatch):
    def short(epoch, pool):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setitem(CAPTURES, "cpu", short)
    captured = CapturedEpoch(CPU)
    for _ in range(WARM):
        captured(lambda: None)
    with pytest.raises(torch.OutOfMemoryError):
        captured(lambda: None)


def test_an_epoch_is_warmed_up_before_it_is_captured(monkeypatch):
    did = []
    monkeypatch.setitem(CAPTURES, "cpu", lambda epoch, pool: lambda: did.append("replayed"))
    captured = CapturedEpoch(CPU)
    for _ in range(WARM + 2):
        captured(lambda: did.append("run"))
    assert did == ["run"] * WARM + ["replayed"] * 2


def test_of_drawn_batches_the_evaluation_alone_is_captured_and_nobody_is_warned(graph, tapes):
    settings = fitting("cluster-gcn", SMALL | {"epochs": 8, "seeds": [0], "batch_size": 2})
    assert fit(graph, "cluster-gcn", **settings).runs[0].epochs == 8
    assert len(tapes) == 1


def test_graphs_that_come_one_by_one_are_captured_one_by_one(tapes, monkeypatch):
    graphs = data.load("ppi-like", n=120, degree=2, graphs=5)
    settings = {
        "layers": 2,
        "width": 16,
        "dropout": 0.4,
        "epochs": 8,
        "patience": 8,
        "seeds": [0],
        "device": "cpu",
    }
    settings |= {"batches": "parts"}
    played = fit(graphs, "gcnii-ppi", **settings)
    assert len(tapes) == 3 + 1  # training graphs, and the evaluation
    assert not any(tape.waits for tape in tapes)
    monkeypatch.delitem(CAPTURES, "cpu")
    assert same(played, fit(graphs, "gcnii-ppi", **settings))


ON_GPU = SMALL | {"device": "cuda", "epochs": 30}


def eagerly(monkeypatch):
    monkeypatch.delitem(CAPTURES, "cuda")


@pytest.mark.cuda
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("model", ["gcnii", "gat", "jknet", "incep"])
def test_a_captured_epoch_trains_as_an_eager_one(model, replicas, graph, monkeypatch):
    settings = full(model, ON_GPU | {"seeds": range(replicas)})
    captured = fit(graph, model, **settings)
    eagerly(monkeypatch)
    eager = fit(graph, model, **settings)
    for one, two in zip(captured.runs, eager.runs, strict=True):
        # The kernels are the same; some sum in no fixed order.
        np.testing.assert_allclose(one.curve, two.curve, rtol=1e-3)
        assert one.epochs == two.epochs


@pytest.mark.cuda
def test_on_a_gpu_graphs_that_come_one_by_one_train_as_without_cuda_graphs(monkeypatch):
    graphs = data.load("ppi-like", n=120, degree=2, graphs=5)
    settings = ON_GPU | {"layers": 2, "width": 160, "batches": "parts", "seeds": [0]}
    captured = fit(graphs, "gcnii-ppi", **settings)
    eagerly(monkeypatch)
    eager = fit(graphs, "gcnii-ppi", **settings)
    np.testing.assert_allclose(captured.runs[0].curve, eager.runs[0].curve, rtol=1e-5)


@pytest.mark.cuda
@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_captured(model, graph):
    settings = full(
        model, {"layers": 2, "width": 16, "epochs": 20, "patience": 20, "drop_edge": 0.2}
    )
    task = Task.of(graph, make_plan(model, settings, graph), torch.device("cuda"))
    group = ReplicaGroup(task, [Run(0), Run(1)])
    while group.running:
        group.advance()
    # inverts a matrix in every epoch whose links are dropped, which asks the device for its luck
    if model == "ppnp":
        assert group.captured.why_not
    else:
        assert group.captured.replay, group.captured.why_not


@pytest.mark.cuda
def test_on_a_gpu_a_smaller_group_goes_on_to_the_same_numbers(graph, keep_stopped_runs, sync_every):
    sync_every(8, "cuda")
    settings = EARLY | {"device": "cuda"}
    shrunk = fit(graph, **settings)
    keep_stopped_runs()
    whole = fit(graph, **settings)
    assert len({run.epochs for run in whole.runs}) > 1
    for one, two in zip(shrunk.runs, whole.runs, strict=True):
        np.testing.assert_allclose(one.curve, two.curve, rtol=1e-6)


@pytest.mark.cuda
def test_on_a_gpu_a_loss_that_is_not_a_number_is_reported_with_its_epoch(graph, sync_every):
    messages = []
    for every in (1, 64):
        sync_every(every, "cuda")
        with pytest.raises(Diverged) as error:
            fit(graph, **ON_GPU | {"lr": 1e18})
        messages.append(str(error.value))
    assert messages[0] == messages[1]


@pytest.mark.usefixtures("save_every_epoch")
@pytest.mark.cuda
def test_on_a_gpu_a_killed_group_resumes(graph, tmp_path, sync_every):
    sync_every(8, "cuda")
    settings = EARLY | {"device": "cuda"}
    whole = fit(graph, **settings)
    resumed = killed_and_resumed(graph, tmp_path / "checkpoint", 2, **settings)
    for one, two in zip(whole.runs, resumed.runs, strict=True):
        np.testing.assert_allclose(one.curve, two.curve, rtol=1e-6)
        assert one.best_epoch == two.best_epoch


@pytest.mark.cuda
def test_a_capture_that_torch_refuses_leaves_the_device_usable(graph):
    x = torch.zeros((), device="cuda")
    captured = CapturedEpoch(x.device)

    def asks():
        x.add_(1)
        x.item()

    for _ in range(WARM + 3):
        captured(asks)
    assert captured.refused
    assert x.item() == WARM + 3
    assert fit(graph, **ON_GPU).runs[0].epochs == 30


def test_of_several_graphs_those_with_nodes_to_judge_by_are_evaluated(monkeypatch):
    graphs = data.load("ppi-like", n=120, degree=2, graphs=5)
    settings = {
        "layers": 2,
        "width": 16,
        "epochs": 4,
        "patience": 4,
        "seeds": [0],
        "device": "cpu",
        "batches": "parts",
    }
    some = fit(graphs, "gcnii-ppi", **settings)
    task = Task.of(graphs, make_plan("gcnii-ppi", {"batches": "parts"}), CPU)
    assert len(task.evaluation([0]).nodes) == 2 * 120  # a graph for validation, one for testing
    monkeypatch.setattr(Task, "evaluation", lambda self, splits: Batch.of(self.adjacency, self.X))
    every = fit(graphs, "gcnii-ppi", **settings)
    np.testing.assert_allclose(some.runs[0].curve, every.runs[0].curve, rtol=1e-6)
    assert some.test == pytest.approx(every.test)
