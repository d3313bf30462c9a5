"""Callbacks are told of every epoch of every run, and may stop the training."""

import logging

import pytest
import torch
from support.killing import Killed, killed_after_a_save

import gcnii
from gcnii import StopTraining, fit
from gcnii.errors import InputError

SMALL = {"layers": 2, "width": 8, "epochs": 12, "device": "cpu", "lr": 0.02}


@pytest.fixture(scope="module")
def graph():
    return gcnii.load("csbm", n=120, degree=6, signal=3.0, labels_per_class=10)


def told(reports):
    """(seed, epoch) → measures, of all reports."""
    return {(seed, now.epoch): one for now in reports for seed, one in now.measures.items()}


def stop_after(epoch, seed=0):
    def callback(now):
        if now.epoch == epoch and seed in now.measures:
            raise StopTraining("enough")

    return callback


@pytest.mark.parametrize("batch", [1, 3])
def test_a_report_holds_the_measures_of_each_run(batch, graph):
    seen = []
    settings = SMALL | {"patience": 2, "lr": 0.2, "epochs": 40}
    result = fit(graph, seeds=range(3), batch=batch, callbacks=[seen.append], **settings)
    assert len({run.epochs for run in result.runs}) > 1
    assert told(seen) == {
        (run.seed, epoch): point for run in result.runs for epoch, point in enumerate(run.curve)
    }
    assert seen[-1].runs_done == seen[-1].runs == 3


def test_a_report_gives_means_over_its_runs(graph):
    seen = []
    fit(graph, seeds=range(2), batch=2, callbacks=[seen.append], **SMALL)
    one, two = seen[3].measures.values()
    means = (seen[3].train_loss, seen[3].val_loss, seen[3].val)
    assert means == pytest.approx([(a + b) / 2 for a, b in zip(one, two, strict=True)])


def test_a_stopped_training_keeps_its_best_weights_and_is_finished(graph):
    stopped = fit(graph, callbacks=[stop_after(4)], **SMALL)
    whole = fit(graph, **SMALL | {"epochs": 5})
    assert [run.epochs for run in stopped.runs] == [5]
    assert stopped.runs[0].stopped
    assert not stopped.interrupted
    assert all(torch.equal(stopped.weights[name], stack) for name, stack in whole.weights.items())


def test_a_stop_ends_all_training_and_runs_that_have_not_begun_are_absent(graph):
    result = fit(graph, seeds=range(4), batch=1, callbacks=[stop_after(2, seed=1)], **SMALL)
    assert [(run.seed, run.epochs) for run in result.runs] == [(0, 12), (1, 3)]
    assert not result.interrupted


def test_replicas_trained_together_stop_together(graph):
    result = fit(graph, seeds=range(3), batch=3, callbacks=[stop_after(2)], **SMALL)
    assert [run.epochs for run in result.runs] == [3, 3, 3]


def test_epochs_trained_before_a_stop_is_known_count_and_are_reported(graph, sync_every):
    sync_every(8)
    seen = []
    result = fit(graph, callbacks=[stop_after(2), seen.append], **SMALL)
    assert result.runs[0].epochs == len(seen) == len(result.runs[0].curve) == 8


def test_every_callback_is_told_of_the_epoch_in_which_one_stops(graph):
    before, after = [], []
    fit(graph, callbacks=[before.append, stop_after(3), after.append], **SMALL)
    assert [now.epoch for now in before] == [now.epoch for now in after] == [0, 1, 2, 3]


@pytest.mark.usefixtures("save_every_epoch")
def test_a_stopped_training_leaves_no_checkpoint_to_resume(graph, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    fit(graph, checkpoint=path, callbacks=[stop_after(4)], **SMALL)
    assert not path.exists()


def test_a_callbacks_error_is_raised_unchanged_once_a_checkpoint_is_saved(graph, tmp_path):
    error = KeyError("mine")

    def fail(now):
        if now.epoch == 4:
            raise error

    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyError) as raised:
        fit(graph, checkpoint=path, callbacks=[fail], **SMALL)
    assert raised.value is error
    resumed, whole = fit(graph, checkpoint=path, **SMALL), fit(graph, **SMALL)
    assert path.exists()
    assert resumed.runs[0].curve == whole.runs[0].curve


@pytest.mark.usefixtures("save_every_epoch")
@pytest.mark.parametrize("batch", [1, 3])
def test_a_resumed_training_reports_its_earlier_epochs_first(batch, graph, tmp_path):
    settings = SMALL | {"seeds": range(3), "batch": batch, "patience": 2, "lr": 0.2}
    path, whole, resumed = tmp_path / "checkpoint.safetensors", [], []
    fit(graph, callbacks=[whole.append], **settings)
    for _ in range(5 if batch == 1 else 2):
        with killed_after_a_save(), pytest.raises(Killed):
            fit(graph, checkpoint=path, **settings)
    fit(graph, checkpoint=path, callbacks=[resumed.append], **settings)
    assert told(resumed) == told(whole)
    assert resumed[0].epoch == 0


@pytest.mark.usefixtures("save_every_epoch")
def test_a_resumed_training_stops_where_it_would_have_stopped(graph, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    for _ in range(5):
        with killed_after_a_save(), pytest.raises(Killed):
            fit(graph, checkpoint=path, **SMALL)
    result = fit(graph, seeds=None, checkpoint=path, callbacks=[stop_after(2)], **SMALL)
    assert result.runs[0].epochs == 5  # those that the checkpoint had


def test_callbacks_are_closed_even_if_training_fails(graph):
    class Careless:
        closed = 0

        def __call__(self, now):
            raise KeyError

        def close(self):
            self.closed += 1

    careless = Careless()
    with pytest.raises(KeyError):
        fit(graph, callbacks=[careless], **SMALL)
    assert careless.closed == 1


@pytest.mark.parametrize("wrong", [print, [None], "abc"])
def test_callbacks_that_cannot_be_called_are_refused(wrong, graph):
    with pytest.raises(InputError, match="callbacks must be a list of functions, got "):
        fit(graph, callbacks=wrong, **SMALL)


@pytest.mark.usefixtures("save_every_epoch")
def test_a_training_is_logged_from_start_to_end(graph, tmp_path, caplog):
    path = tmp_path / "checkpoint"
    with caplog.at_level(logging.INFO, "gcnii"):
        result = fit(graph, seeds=[3], checkpoint=path, callbacks=[stop_after(0, 3)], **SMALL)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[:3] == [
        f"training gcnii on csbm (n 120, m {graph.m}), device cpu, seeds [3]",
        f"saved a checkpoint at epoch 1: {path}",
        "stopped by a callback after epoch 0: StopTraining('enough')",
    ]
    assert lines[3].startswith(f"{result!r}, ")
    assert {record.name for record in caplog.records} == {"gcnii.results.fit"}


def test_epochs_are_logged_at_level_debug_alone(graph, caplog):
    with caplog.at_level(logging.DEBUG, "gcnii"):
        fit(graph, **SMALL)
    lines = [one.getMessage() for one in caplog.records if one.levelno == logging.DEBUG]
    assert [line.split(":")[0] for line in lines] == ["epoch 0 of 1 runs", "epoch 10 of 1 runs"]


def test_nothing_is_printed_where_nobody_watches(graph, capfd):
    fit(graph, **SMALL)
    assert capfd.readouterr() == ("", "")
    assert any(isinstance(one, logging.NullHandler) for one in logging.getLogger("gcnii").handlers)


def nothing():
    pass


@pytest.mark.parametrize("wrong", [nothing, lambda one, two: 0, lambda *, now: 0])
def test_a_callback_that_takes_other_arguments_is_refused_before_the_first_epoch(wrong, graph):
    seen = []
    with pytest.raises(InputError, match=r"called with one argument, an EpochReport, got .*\("):
        fit(graph, callbacks=[seen.append, wrong], **SMALL)
    assert not seen
