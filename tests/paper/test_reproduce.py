"""What the ledger lacks is run, once; a table grows where it was left."""

import contextlib
import gc
import os
import weakref

import pytest
import torch
from support import knobs
from support.tiny_cells import cell

from gcnii.analysis import by_degree
from gcnii.results.fit import fit, fit_plans
from gcnii.train.replicas import Replicas
from gcnii_paper import reproduce as module
from gcnii_paper.ledger import Ledger, measured, open_graph, run_key
from gcnii_paper.reproduce import CellWork, reproduce
from gcnii_paper.verdict import verdicts


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        yield ledger


@pytest.fixture
def fitted(monkeypatch):
    """The seeds of each call of `fit_plans`."""
    calls = []

    def listen(*words, seeds, **settings):
        calls.append(list(seeds))
        return fit_plans(*words, seeds=seeds, **settings)

    monkeypatch.setattr(knobs.REPRODUCED_FIT, listen)
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


def test_the_commit_is_asked_before_the_first_training(ledger, monkeypatch):
    order = []
    monkeypatch.setattr(module, "commit", lambda: order.append("commit"))
    monkeypatch.setattr(
        module, "open_graph", lambda cell: order.append("train") or open_graph(cell)
    )
    reproduce([cell()], ledger, device="cpu", runs=1)
    assert order[:2] == ["commit", "train"]


def test_nothing_is_run_twice_and_more_runs_go_on_from_there(ledger, fitted):
    reproduce([cell()], ledger, device="cpu", runs=2)
    reproduce([cell()], ledger, device="cpu", runs=2)
    reproduce([cell()], ledger, device="cpu")
    assert fitted == [[0], [1], [2]]


def test_progress_says_how_many_cells_there_are_still_to_run(ledger, monkeypatch):
    titles = []

    @contextlib.contextmanager
    def watch(title, epochs):
        titles.append(title)
        yield lambda now: None

    monkeypatch.setattr("gcnii.results.fit.training_bar", watch)
    done, one, two = cell(), cell("Other", "deep-gcn"), cell("Third", "gcn-residual")
    reproduce([done], ledger, device="cpu", runs=1)
    reproduce([done, one, two], ledger, device="cpu", runs=1, verbose=True)
    assert titles == [f"1/2 {one.id}, seed 0", f"2/2 {two.id}, seed 0"]


def test_cells_that_agree_are_run_once(ledger, fitted):
    reproduce(
        [cell(), cell("GCNII again", table="table3"), cell("Other", "deep-gcn")],
        ledger,
        device="cpu",
        runs=1,
    )
    assert fitted == [[0], [0]]


def test_a_hole_in_the_seeds_does_not_count_until_it_is_filled(ledger):
    one = cell()
    reproduce([one], ledger, device="cpu")
    ledger.connection.execute("DELETE FROM runs WHERE seed = 1")
    assert measured(one, ledger).n == 1
    reproduce([one], ledger, device="cpu")
    assert measured(one, ledger).n == 3


def test_a_seed_that_diverges_counts_as_lost_and_the_others_begin_again(
    ledger, fitted, monkeypatch
):
    def step(replicas, *words):
        losses = STEP(replicas, *words)
        for weight in replicas.weights.values():
            weight.data[replicas.seeds == 1] = torch.nan
        return losses

    monkeypatch.setattr(knobs.STEP, step)
    work = CellWork(cell(), ledger, 3, "cpu")
    work.batch = 3
    lost = (
        "table2/gcnii/drawn, kept as lost: "
        "the loss of seed 1 was infinite or not a number in epoch 1; try a smaller"
    )
    with pytest.warns(UserWarning, match=f"^{lost}"):
        assert work.advance() == 3
    assert fitted == [[0, 1, 2], [0, 2]]
    found = measured(cell(), ledger)
    assert [run.test is None for run in found.runs] == [False, True, False]
    assert (found.runs[1].device, found.runs[1].epochs) == ("cpu", 1)
    assert verdicts([found]) == {}
    assert not ledger.claimed(run_key(cell()))
    assert not unfinished(ledger)


class SmallGPU:
    """Has room for `room` runs at once; a larger batch runs out of memory in its second step, when
    it has a checkpoint.
    """

    def __init__(self, room, folder):
        self.room, self.folder = room, folder
        self.batches = []  # the seeds of each, in the order in which they began
        self.alive = []  # for each, how many earlier ones were still in memory when it began
        self.refs = []

    def step(self, replicas, *words):
        if all(ref() is not replicas for ref in self.refs):
            self.alive.append(sum(ref() is not None for ref in self.refs))
            self.refs.append(weakref.ref(replicas))
            self.batches.append(replicas.seeds.tolist())
        elif len(replicas.seeds) > self.room:
            assert list(self.folder.rglob(f"*-{len(replicas.seeds)}.safetensors"))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return STEP(replicas, *words)

    @property
    def sizes(self):
        return [len(seeds) for seeds in self.batches]


STEP = Replicas.differentiate


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """A small GPU that all steps are done on, though by the CPU."""
    gpu = SmallGPU(room=3, folder=tmp_path)
    monkeypatch.setattr(knobs.STEP, lambda *words: gpu.step(*words))
    monkeypatch.setattr(module, "choose_device", lambda name: torch.device("cuda"))
    monkeypatch.setattr(knobs.SAVE_EVERY, 0.0)
    return gpu


def unfinished(ledger):
    return [path.name for path in CellWork(cell(), ledger, 1, "cpu")._folder.glob("*")]


def test_too_little_memory_halves_the_batch_and_loses_nothing(ledger, gpu):
    reproduce([cell(runs=10)], ledger, device="cpu")
    assert gpu.sizes == [10, 5, 2, 2, 2, 2, 2]
    # each to its end once
    assert [seed for seeds in gpu.batches[2:] for seed in seeds] == list(range(10))
    gpu.room = 10
    direct = fit(
        open_graph(cell()), "gcnii", seeds=range(10), device="cpu", batch=2, **cell().settings
    )
    assert [run.test for run in measured(cell(), ledger).runs] == list(direct.test)
    assert [run.epochs for run in measured(cell(), ledger).runs] == [3] * 10
    assert not ledger.claimed(run_key(cell()))
    assert unfinished(ledger) == []


def test_a_batch_that_did_not_fit_has_left_memory_when_the_next_begins(ledger, gpu):
    gc.disable()  # on a GPU, nobody would wait for it
    try:
        reproduce([cell(runs=10)], ledger, device="cpu")
    finally:
        gc.enable()
    assert gpu.alive == [0] * 7


def test_memory_that_becomes_short_costs_no_run_that_is_finished(ledger, gpu, monkeypatch):
    def record(*words):
        gpu.room = 1  # from the first finished batch on
        return keep(*words)

    keep = ledger.record
    monkeypatch.setattr(ledger, "record", record)
    reproduce([cell(runs=7)], ledger, device="cpu")
    assert gpu.batches == [[*range(7)], [0, 1, 2], [3, 4, 5], [3], [4], [5], [6]]
    assert measured(cell(), ledger).n == 7


def test_another_process_goes_on_from_the_smaller_batches(ledger, gpu):
    reproduce([cell(runs=4)], ledger, device="cpu")
    reproduce([cell(runs=10)], ledger, device="cpu")
    assert gpu.batches[:3] == [[0, 1, 2, 3], [0, 1], [2, 3]]
    assert gpu.batches[3:] == [[4, 5, 6, 7, 8, 9], [4, 5, 6], [7, 8, 9]]


def test_a_cell_that_never_fits_is_told_and_left_out_and_the_others_go_on(ledger, gpu):
    gpu.room = 0
    other = cell("Other", "deep-gcn", runs=1, settings={"epochs": 1})  # ends before its second step
    with pytest.warns(
        UserWarning, match="table2/gcnii/drawn is left out: a single run does not fit"
    ):
        reproduce([cell(runs=4), other], ledger, device="cpu")
    assert gpu.sizes == [4, 2, 1, 1]
    assert (measured(cell(), ledger).n, measured(other, ledger).n) == (0, 1)
    assert not ledger.claimed(run_key(cell()))
    assert unfinished(ledger) == []


def test_a_cell_that_never_fits_on_a_cpu_is_left_out_likewise(ledger, monkeypatch):
    def fail(*words, **settings):
        raise RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
        )

    monkeypatch.setattr(knobs.REPRODUCED_FIT, fail)
    with pytest.warns(
        UserWarning, match="table2/gcnii/drawn is left out: a single run does not fit into memory"
    ):
        reproduce([cell()], ledger, device="cpu")


def test_a_process_that_waits_long_names_the_others_once(ledger, monkeypatch):
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) == 25:
            other.close()

    monkeypatch.setattr(module.time, "sleep", wait)
    with Ledger(ledger.path) as other:
        other.host = "elsewhere"
        other.claim(run_key(cell()), [1, 2], 2)
        who = (
            "^waiting for seeds 1, 2 of table2/gcnii/drawn, "
            f"claimed by process {os.getpid()} on elsewhere, last heard"
        )
        with pytest.warns(UserWarning, match=who) as told:
            reproduce([cell()], ledger, device="cpu")
    assert (len(waits), len(told)) == (25, 1)
    assert measured(cell(), ledger).n == 3


def test_ctrl_c_keeps_what_is_finished(ledger, monkeypatch):
    def stopped(*words, **options):
        result = fit_plans(*words, **options)
        object.__setattr__(result, "interrupted", True)
        result.runs[0].stopped = options["seeds"] == [0]
        return result

    monkeypatch.setattr(knobs.REPRODUCED_FIT, stopped)
    for kept in (1, 1):  # the second is stopped in the middle of seed 1
        with pytest.raises(KeyboardInterrupt):
            reproduce([cell()], ledger, device="cpu")
        assert measured(cell(), ledger).n == kept


def test_leftover_checkpoints_go_when_the_cell_is_done(ledger):
    work = CellWork(cell(runs=1), ledger, 1, "cpu")
    work._folder.mkdir()
    leftover = work._checkpoint([0, 1, 2])
    leftover.write_bytes(b"of a larger batch")
    work.advance()
    assert not leftover.exists()


def test_figure_1_keeps_accuracy_by_degree(ledger):
    one = cell("Drawn", "gcn-residual", runs=2, by_degree=True, printed=None)
    reproduce([one], ledger, device="cpu")
    groups = measured(one, ledger).runs[1].by_degree
    graph, result = (
        open_graph(one),
        fit(open_graph(one), one.model, seeds=[1], device="cpu", **one.settings),
    )
    assert groups == by_degree(graph, result.predict_ids(graph, "cpu"))
    assert run_key(one) != run_key(cell("Drawn", "gcn-residual"))
