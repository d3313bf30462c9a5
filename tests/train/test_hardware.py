"""What training sets in the process is taken back where others would stumble over it."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import torch
from scipy.spatial import KDTree
from support.waiting import PATIENCE

from gcnii import data, load
from gcnii.errors import InputError
from gcnii.memory import LARGEST_POOLED
from gcnii.results.fit import fit
from gcnii.train import hardware
from gcnii.train.hardware import (
    CPU_THREADS,
    PRODUCTS,
    choose_device,
    large_blocks_kept,
    suited_threads,
    threads_for,
    tuned_cpu,
)
from gcnii.train.plan import make_plan
from gcnii.train.task import Task

SMALL = {"layers": 2, "width": 8, "epochs": 3, "device": "cpu"}


@pytest.fixture
def three_threads(monkeypatch):
    """torch has three, on four CPUs, whatever this machine has."""
    monkeypatch.setattr(hardware, "allowed_cpus", lambda: 4)
    monkeypatch.setenv("GOMP_SPINCOUNT", "1000")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def counts_denormals():
    return bool(torch.tensor(5e-324, dtype=torch.float64) * 1 > 0)


def test_denormal_numbers_are_zero_in_training_and_numbers_again_after_it():
    assert counts_denormals()
    with tuned_cpu():
        assert not counts_denormals()
    assert counts_denormals()


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's settings")
def test_large_blocks_come_from_the_system_once_where_they_are_kept():
    import resource  # not on Windows

    def faults():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.ones(2 * LARGEST_POOLED, dtype=torch.uint8)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    most = LARGEST_POOLED // resource.getpagesize()
    with tuned_cpu(1):
        with large_blocks_kept(True):
            # What else is allocated may lie in the first block when the next one is asked for.
            assert min(faults() for _ in range(5)) < most // 10
        assert faults() > most
        with large_blocks_kept(False):
            assert faults() > most


def test_after_a_fit_the_process_is_as_it_was():
    fit(data.load("csbm", n=60), layers=2, width=4, epochs=1, device="cpu")
    assert counts_denormals()
    KDTree(torch.zeros(500, 2).numpy()).count_neighbors(KDTree(torch.zeros(500, 2).numpy()), 1.0)


@pytest.fixture(params=[True, False])
def compiles(request, monkeypatch):
    """Whether layers of 64 columns are compiled."""
    monkeypatch.setattr(hardware, "are_compiled", lambda width, dtype: request.param)
    return request.param


@pytest.mark.parametrize(("small", "asked", "threads"), [(1, None, 1), (1, 2, 2), (0, None, 3)])
def test_small_work_is_done_by_one_thread_unless_asked_otherwise(
    small, asked, threads, compiles, three_threads
):
    most = (1 << 15 if compiles else 1 << 18) // 64
    graph, seen = load("csbm", n=most + 1 - small), []
    see = lambda report: seen.append(torch.get_num_threads())  # noqa: E731
    fit(graph, layers=1, width=64, epochs=1, device="cpu", threads=asked, callbacks=[see])
    assert (seen, torch.get_num_threads()) == ([threads], 3)


def test_only_layers_that_are_compiled_get_more_threads_sooner(monkeypatch, three_threads):
    monkeypatch.setattr(hardware, "are_compiled", lambda width, dtype: True)
    graph, cpu = load("csbm", n=600), torch.device("cpu")
    plans = [make_plan(name, {"layers": 2}) for name in ("gcnii", "gcn-residual", "deep-gcn")]
    assert [threads_for(Task.of(graph, plan, cpu)) for plan in plans] == [3, 1, 1]


def test_runs_of_a_batch_are_more_work(compiles, three_threads):
    task = Task.of(load("csbm", n=500), make_plan("gcnii", {"layers": 1}), torch.device("cpu"))
    assert (threads_for(task), threads_for(task, batch=20)) == (1, 3)


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "250000 100000"}, 2),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "nonsense"}, 8),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ({}, 8),
    ],
)
def test_a_containers_quota_and_the_affinity_limit_the_threads(files, cpus, tmp_path, monkeypatch):
    monkeypatch.setattr(hardware, "CONTAINER", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert hardware.allowed_cpus() == cpus


SETTINGS = "import os, gcnii; print(os.environ.get('GOMP_SPINCOUNT'), os.environ.get('MKL_CBWR'))"


@pytest.mark.parametrize(
    ("given", "spins"),
    [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
)
def test_threads_wait_without_a_core_unless_told_otherwise(given, spins):
    kept = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "MKL_CBWR")}
    code = [sys.executable, "-c", SETTINGS]
    done = subprocess.run(code, env=kept | given, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [spins, "AUTO,STRICT"]


@pytest.mark.parametrize(("crowded", "threads"), [(True, 1), (False, 3)])
def test_threads_that_spin_for_long_are_used_where_there_is_room(
    crowded, threads, three_threads, monkeypatch
):
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)  # as where torch was loaded first
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setattr(hardware, "_crowded", lambda threads: crowded)
    with suited_threads(1 << 20):
        assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("threads", "sentence"),
    [(0, "threads must be an integer ≥ 1, got 0"), (2**31 - 1, "threads must be at most 1024")],
)
def test_fewer_threads_than_one_or_far_too_many_are_refused(threads, sentence):
    with pytest.raises(InputError, match=sentence):
        fit(load("csbm", n=60), layers=1, width=4, epochs=1, device="cpu", threads=threads)


@pytest.fixture(scope="module")
def graph():
    return load("csbm", n=200)


def trained(graph, model, seed):
    return fit(graph, model, seeds=[seed], **SMALL)


def same(one, two):
    return one.runs[0].curve == two.runs[0].curve and all(
        torch.equal(one.weights[name], weight) for name, weight in two.weights.items()
    )


def test_six_threads_train_what_one_trains_and_draw_nothing_of_the_caller_s(graph):
    jobs = [(model, seed) for seed in range(6) for model in ("gcnii", "gcn", "gat")]
    state = torch.get_rng_state()
    alone = [trained(graph, *job) for job in jobs]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda job: trained(graph, *job), jobs))
    wrong = [job for job, one, two in zip(jobs, alone, together, strict=True) if not same(one, two)]
    assert not wrong
    assert torch.equal(torch.get_rng_state(), state)


def test_a_training_in_a_thread_does_not_take_another_s_number_of_threads_for_its_own(
    graph, three_threads
):
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(3)
    large = Task.of(load("csbm", n=4100), make_plan("gcnii", {"layers": 1}), torch.device("cpu"))
    try:
        with tuned_cpu(1):  # for new threads, torch's number is now 1
            other = threading.Thread(target=lambda: seen.append(threads_for(large)))
            other.start()
            other.join()
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda seed: trained(graph, "gcnii", seed), range(12)))
        assert (seen, CPU_THREADS.number()) == ([3], 3)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 3
    finally:
        torch.set_num_threads(before)


def test_a_training_within_a_training_gives_back_the_outer_one_s_number_of_threads():
    before = torch.get_num_threads()
    with tuned_cpu(before + 2):
        with tuned_cpu(before + 1):
            assert (torch.get_num_threads(), CPU_THREADS.number()) == (before + 1, before)
        assert (torch.get_num_threads(), CPU_THREADS.number()) == (before + 2, before)
    assert torch.get_num_threads() == before


def test_threads_that_multiply_with_another_precision_wait_for_one_another():
    entered, seen = threading.Event(), []

    def rounded():
        entered.set()
        with PRODUCTS.at("high"):
            seen.append(torch.get_float32_matmul_precision())

    other = threading.Thread(target=rounded)
    with PRODUCTS.at("highest"), PRODUCTS.at("highest"):
        other.start()
        entered.wait()
        other.join(0.05)
        assert (seen, torch.get_float32_matmul_precision()) == ([], "highest")
    other.join()
    assert (seen, torch.get_float32_matmul_precision()) == (["high"], "highest")


@contextmanager
def default_dtype(dtype):
    torch.set_default_dtype(dtype)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "mode",
    [
        torch.no_grad,
        torch.inference_mode,
        lambda: torch.autocast("cpu", torch.bfloat16),
        lambda: default_dtype(torch.float64),
    ],
    ids=["no_grad", "inference_mode", "autocast", "default_dtype"],
)
def test_the_caller_s_modes_change_nothing_in_a_training(graph, mode):
    plain = trained(graph, "gcnii", 0)
    with mode():
        assert same(trained(graph, "gcnii", 0), plain)


def test_a_device_may_be_torch_s_own():
    assert choose_device(torch.device("cpu")) == torch.device("cpu")


FORKING = """
import multiprocessing, gcnii

def work(threads):
    try:
        return gcnii.fit(graph, seeds=[1], threads=threads, **how).runs[0].curve
    except gcnii.errors.InputError as error:
        return str(error)

graph = gcnii.load("csbm", n=4100)
how = {"layers": 1, "width": 64, "epochs": 2, "device": "cpu"}
own = work(None)
with multiprocessing.get_context("fork").Pool(1) as pool:
    inherited, one, two = pool.map_async(work, [None, 1, 2]).get(60)
assert inherited == one
assert len(one) == len(own) == 2
print(two)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_that_is_forked_after_a_fit_trains_with_one_thread():
    many = os.environ | {"OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", FORKING], env=many, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "threads must be 1 in a process that was forked after a training run, got 2; "
        'start processes with multiprocessing.get_context("spawn")\n'
    )


def test_work_on_few_numbers_has_one_thread_and_more_work_those_of_the_process(three_threads):
    with suited_threads(1 << 18):
        assert torch.get_num_threads() == 1
    with suited_threads((1 << 18) + 1):
        assert torch.get_num_threads() == 3


@pytest.mark.parametrize("layers", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_one_and_two_threads_train_the_same_weights_to_the_last_bit(layers):
    graph, how = load("digits"), SMALL | {"layers": layers, "width": 64, "epochs": 3}
    one, two = (fit(graph, "gcnii", threads=threads, **how) for threads in (1, 2))
    assert same(one, two)
