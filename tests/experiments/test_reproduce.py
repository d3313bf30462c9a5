"""What the ledger lacks is run, once; a table grows where it was left."""

import pytest
import torch
from tiny import cell

from gcnii.analysis import by_degree
from gcnii.experiments import reproduce as module
from gcnii.experiments.exchange import measured
from gcnii.experiments.identity import open_graph, settings_hash
from gcnii.experiments.ledger import Ledger
from gcnii.experiments.reproduce import Work, reproduce, unwatched
from gcnii.train import fit


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        yield ledger


@pytest.fixture
def fitted(monkeypatch):
    """The seeds of each call of fit."""
    calls = []

    def listen(*words, seeds, **settings):
        calls.append(list(seeds))
        return fit(*words, seeds=seeds, **settings)

    monkeypatch.setattr(module, "fit", listen)
    return calls


def test_runs_are_those_of_fit(ledger):
    one = cell()
    reproduce([one], ledger, device="cpu")
    direct = fit(open_graph(one), one.model, seeds=range(3), device="cpu", **one.settings)
    found = measured(one, ledger)
    assert [run.test for run in found.runs] == list(direct.test)
    assert found.mean == pytest.approx(100 * direct.test.mean())
    assert found.runs[0].versions["torch"] == torch.__version__
    assert found.settings == direct.plan.settings


def test_nothing_is_run_twice_and_more_runs_go_on_from_there(ledger, fitted):
    reproduce([cell()], ledger, device="cpu", runs=2)
    reproduce([cell()], ledger, device="cpu", runs=2)
    reproduce([cell()], ledger, device="cpu")
    assert fitted == [[0], [1], [2]]


def test_cells_that_agree_are_run_once(ledger, fitted):
    reproduce([cell(), cell("GCNII again", table="table3"), cell("Other", "deep-gcn")], ledger, device="cpu", runs=1)
    assert fitted == [[0], [0]]


def test_a_hole_in_the_seeds_does_not_count_until_it_is_filled(ledger):
    one = cell()
    reproduce([one], ledger, device="cpu")
    ledger.connection.execute("DELETE FROM runs WHERE seed = 1")
    assert measured(one, ledger).n == 1
    reproduce([one], ledger, device="cpu")
    assert measured(one, ledger).n == 3


@pytest.fixture
def small_gpu(monkeypatch):
    """A stand-in for a GPU with room for `room[0]` runs at once; the sizes of the batches that were tried."""
    tried, room = [], [3]

    def short_of_memory(*words, seeds, device, **settings):
        tried.append(len(seeds))
        if len(seeds) > room[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return fit(*words, seeds=seeds, device="cpu", **settings)

    monkeypatch.setattr(module, "fit", short_of_memory)
    monkeypatch.setattr(module, "choose_device", lambda name: torch.device("cuda"))
    return tried, room


def test_too_little_memory_halves_the_batch(ledger, small_gpu):
    reproduce([cell(runs=10)], ledger)
    assert small_gpu[0] == [10, 5, 2, 2, 2, 2, 2]
    assert measured(cell(), ledger).n == 10


def test_a_cell_that_never_fits_is_told_and_left_out(ledger, small_gpu):
    small_gpu[1][0] = 0
    with pytest.warns(UserWarning, match="table2/gcnii/drawn is left out: one run alone does not fit"):
        reproduce([cell(runs=4)], ledger)
    assert small_gpu[0] == [4, 2, 1]
    assert not ledger.claimed(settings_hash(cell()))


def test_ctrl_c_keeps_what_is_finished(ledger, monkeypatch):
    def stopped(*words, **settings):
        result = fit(*words, **settings)
        object.__setattr__(result, "interrupted", True)
        result.runs[0].stopped = settings["seeds"] == [0]
        return result

    monkeypatch.setattr(module, "fit", stopped)
    for kept in (1, 1):  # the second is stopped in the middle of seed 1
        with pytest.raises(KeyboardInterrupt):
            reproduce([cell()], ledger, device="cpu")
        assert measured(cell(), ledger).n == kept


def test_leftover_checkpoints_go_when_the_cell_is_done(ledger):
    work = Work(cell(runs=1), ledger, 1, "cpu", unwatched)
    work._folder.mkdir()
    leftover = work._checkpoint([0, 1, 2])
    leftover.write_bytes(b"of a larger batch")
    work.advance()
    assert not leftover.exists()


def test_figure_1_keeps_accuracy_by_degree(ledger):
    one = cell("Drawn", "gcn-residual", runs=2, by_degree=True, printed=None)
    reproduce([one], ledger, device="cpu")
    groups = measured(one, ledger).runs[1].by_degree
    graph, result = open_graph(one), fit(open_graph(one), one.model, seeds=[1], device="cpu", **one.settings)
    assert groups == by_degree(graph, result.predict(graph, "cpu"))
    assert settings_hash(one) != settings_hash(cell("Drawn", "gcn-residual"))
