"""Batches made ahead: the same in the same order, errors when they are due, no thread left."""

import threading
import time

import pytest
import torch
from support import knobs
from support.killing import Killed, killed_after_a_save
from support.waiting import PATIENCE

from gcnii import data
from gcnii.propagation import Adjacency, adjacency
from gcnii.results.fit import fit
from gcnii.train import batches as module
from gcnii.train.batches import NeighbourBatches, ahead
from gcnii.train.callbacks import StopTraining

SETTINGS = {"layers": 2, "width": 8, "epochs": 4, "device": "cpu", "batch_size": 7, "threads": 1}
KINDS = {
    "graphsage-mean": {"fanout": (2, 3)},
    "vr-gcn-cv": {"fanout": (1, 0)},
    "vr-gcn-cvd": {"fanout": (1,)},
    "gat": {"batches": "neighbours", "fanout": (3,)},
}
every_kind = pytest.mark.parametrize("model", KINDS)


def graph():
    return data.load("csbm", n=60, degree=6, signal=3.0, labels_per_class=10)


def threads():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("gcnii")]


def in_turn(makers):
    yield from (make() for make in makers)


@every_kind
def test_a_training_is_the_same_to_the_last_bit_without_the_thread(model, monkeypatch):
    settings = SETTINGS | KINDS[model]
    before = fit(graph(), model, seeds=range(2), **settings)
    monkeypatch.setattr(module, "ahead", in_turn)
    after = fit(graph(), model, seeds=range(2), **settings)
    assert [run.curve for run in before.runs] == [run.curve for run in after.runs]
    assert all(torch.equal(after.weights[name], stack) for name, stack in before.weights.items())
    assert threads() == []


def test_the_next_batch_is_made_while_one_is_in_use_and_no_further_one():
    made, second = [], threading.Event()

    def maker(number):
        def make():
            made.append((number, threading.current_thread().name))
            if number == 1:
                second.set()
            return number

        return make

    batches = ahead(maker(number) for number in range(4))
    assert next(batches) == 0
    assert second.wait(PATIENCE)  # nobody has asked for it
    time.sleep(0.05)
    assert [number for number, _ in made] == [0, 1]
    assert list(batches) == [1, 2, 3]
    assert len({name for _, name in made}) == 1
    assert made[0][1].startswith("gcnii-batches")
    assert threads() == []


def test_nothing_to_make_is_no_batch():
    assert list(ahead([])) == []


def test_an_error_is_raised_when_its_batch_is_due_and_ends_the_thread():
    def fail():
        raise ZeroDivisionError("of the maker")

    batches = ahead([lambda: 0, fail, lambda: 2])
    assert next(batches) == 0
    with pytest.raises(ZeroDivisionError, match="of the maker"):
        next(batches)
    assert threads() == []
    assert list(batches) == []


def test_an_iterator_closed_early_waits_for_its_thread():
    batches = ahead([lambda number=number: number for number in range(9)])
    assert next(batches) == 0
    batches.close()
    assert threads() == []


def failing(monkeypatch, error):
    """The sampler fails in its seventh hop, which is in the second epoch's first batches."""
    draw, left = module.NeighbourSampler.draw, iter(range(7))

    def fails(*args):
        if next(left, None) is None:
            raise error
        return draw(*args)

    monkeypatch.setattr(module.NeighbourSampler, "draw", fails)


@pytest.mark.parametrize("error", [MemoryError("no room"), KeyboardInterrupt()])
def test_what_fails_in_the_thread_fails_the_training_and_leaves_no_thread(error, monkeypatch):
    failing(monkeypatch, error)
    with pytest.raises(type(error)):
        fit(graph(), "graphsage-mean", **SETTINGS)
    assert threads() == []


def test_a_step_that_fails_leaves_no_thread(monkeypatch):
    def fails(*args, **kwargs):
        raise ZeroDivisionError

    monkeypatch.setattr(knobs.STEP, fails)
    with pytest.raises(ZeroDivisionError):
        fit(graph(), "graphsage-mean", **SETTINGS)
    assert threads() == []


def test_a_training_that_a_callback_stops_leaves_no_thread():
    def stop(report):
        raise StopTraining

    result = fit(graph(), "graphsage-mean", callbacks=[stop], **SETTINGS)
    assert result.runs[0].epochs == 1
    assert threads() == []


@pytest.mark.usefixtures("save_every_epoch")
@every_kind
def test_a_killed_training_resumes_to_what_it_is_without_the_thread(model, monkeypatch, tmp_path):
    settings = SETTINGS | KINDS[model]
    with monkeypatch.context() as without:
        without.setattr(module, "ahead", in_turn)
        whole = fit(graph(), model, **settings)
    settings["checkpoint"] = tmp_path / "checkpoint.safetensors"
    for _ in range(2):
        with killed_after_a_save(), pytest.raises(Killed):
            fit(graph(), model, **settings)
        assert threads() == []
    resumed = fit(graph(), model, **settings)
    assert resumed.runs[0].curve == whole.runs[0].curve


def test_two_epochs_of_one_sampler_may_be_under_way_at_once():
    links = Adjacency.of(adjacency(graph()))
    batches = NeighbourBatches(
        links, torch.eye(60), torch.arange(60), size=9, fanout=(2, 3), layers=2
    )
    alone = [[batch.X for batch in batches.epoch(0, epoch)] for epoch in range(2)]
    at_once = zip(batches.epoch(0, 0), batches.epoch(0, 1), strict=True)
    for first, second, (one, other) in zip(*alone, at_once, strict=True):
        assert torch.equal(one.X, first)
        assert torch.equal(other.X, second)
