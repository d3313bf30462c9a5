"""Depth costs time, not memory: activations are recomputed to the same numbers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.each_kind import of_each_kind
from support.fitting import fitting

from gcnii import data
from gcnii.dropout import epoch_key, keyed
from gcnii.errors import InputError
from gcnii.memory import FILLED, KEPT
from gcnii.nn import MODELS
from gcnii.results.fit import fit
from gcnii.train import hardware
from gcnii.train.hardware import held_how
from gcnii.train.plan import make_plan
from gcnii.train.task import Task

FORGETFUL = [name for name, model in MODELS.items() if model.can_recompute]
SMALL = {
    "layers": 10,
    "width": 8,
    "dropout": 0.4,
    "epochs": 5,
    "device": "cpu",
    "precision": "float64",
}


@pytest.fixture(scope="module")
def graph():
    return data.load("csbm", n=100, degree=6, signal=3.0, labels_per_class=10)


def curves(result):
    return np.array([run.curve for run in result.runs])


@of_each_kind("name", FORGETFUL, pytest.mark.long)
@pytest.mark.parametrize("batch", [1, 3])
def test_recomputing_changes_no_number(name, batch, graph):
    settings = SMALL | {"epochs": 3, "drop_edge": 0.3, "seeds": range(batch), "batch": batch}
    settings = fitting(name, settings)
    kept, again, away = (
        curves(fit(graph, name, memory=memory, **settings))
        for memory in ("keep", "recompute", "offload")
    )
    assert (again == away).all()
    # The forward passes are the same to the last bit; the gradient of H0 is added up in another
    # order.
    assert (kept[:, 0, 0] == again[:, 0, 0]).all()
    np.testing.assert_allclose(kept, again, rtol=1e-11)


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["gcnii", "gcnii-star", "deep-gcn"])
def test_recomputing_changes_no_number_on_cuda(name, graph):
    settings = SMALL | {
        "width": 32,
        "epochs": 30,
        "seeds": range(3),
        "device": "cuda",
        "precision": "float32",
    }
    kept, again, away = (
        curves(fit(graph, name, memory=memory, **settings))
        for memory in ("keep", "recompute", "offload")
    )
    assert (again[:, :3] == away[:, :3]).all()  # then recomputing has a CUDA graph
    np.testing.assert_allclose(again, away, rtol=1e-5)
    assert (kept[:, 0, 0] == again[:, 0, 0]).all()
    np.testing.assert_allclose(kept, again, rtol=1e-5)


def kept_bytes(graph, name, layers, forget):
    plan = make_plan(name, {"layers": layers, "width": 32, "dropout": 0.5})
    task, seen = Task.of(graph, plan, torch.device("cpu")), {}

    def note(tensor):
        seen[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    model = plan.build(graph.d, graph.k).train()
    model.recomputes = forget
    with (
        torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor),
        keyed(epoch_key(torch.tensor([0]), 0)[0]),
    ):
        # holds what is kept, so that no address is used twice
        scores = model(task.P, task.X)
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    assert scores.requires_grad
    return sum(size for address, size in seen.items() if address not in weights) / (
        graph.n * 32 * 4
    )


@pytest.mark.parametrize(("name", "numbers"), [("deep-gcn", KEPT), ("gcnii", 2 + 32 / 100)])
def test_what_is_kept_grows_with_the_root_of_the_depth(name, numbers, graph):
    kept = [kept_bytes(graph, name, layers, forget=False) for layers in (16, 64)]
    again = [kept_bytes(graph, name, layers, forget=True) for layers in (16, 64)]
    # fused, a mapping beside two activations
    assert (kept[1] - kept[0]) / 48 == pytest.approx(numbers, rel=0.05)
    assert again[1] - again[0] == pytest.approx(4, abs=2)  # eight segments instead of four
    assert again[1] < kept[1] / 8


def test_memory_decides_by_itself(graph, monkeypatch):
    task = Task.of(graph, make_plan("gcnii", {"layers": 64, "width": 64}), torch.device("cpu"))
    needed = 64 * 100 * 64 * KEPT * 4
    monkeypatch.setattr(hardware, "_free", lambda device: 1.5 * needed)
    assert held_how(task, 1) == "keep"
    assert held_how(task, 2) == "recompute"
    viewed = make_plan("gcnii", {"layers": 64, "width": 64, "views": 2})
    assert held_how(Task.of(graph, viewed, torch.device("cpu")), 1) == "recompute"


def test_what_does_not_fit_on_a_gpu_recomputed_goes_to_a_host_that_has_room(graph, monkeypatch):
    plan = make_plan("gcnii", {"layers": 64, "width": 64})
    task = replace(Task.of(graph, plan, torch.device("cpu")), device=torch.device("cuda"))
    state = 100 * 64 * 4
    # 11 inputs of six layers each, three numbers for each of the six, and ten states around them
    monkeypatch.setattr(hardware, "_free", lambda device: 39 * state / FILLED + 1)
    monkeypatch.setattr(hardware, "_host_free", lambda: 2 * 16 * state / FILLED + 1)
    assert [held_how(task, replicas) for replicas in (1, 2, 3)] == [
        "recompute",
        "offload",
        "recompute",
    ]
    assert held_how(replace(task, device=torch.device("cpu")), 2) == "recompute"


def test_a_host_without_room_is_named(graph, monkeypatch):
    plan = make_plan("gcnii", {"layers": 64, "width": 64, "memory": "offload"})
    task = replace(Task.of(graph, plan, torch.device("cpu")), device=torch.device("cuda"))
    monkeypatch.setattr(hardware, "_host_free", lambda: 5.0 * 2**30)
    assert held_how(task, 1) == "offload"
    words = "memory offload needs 38 GiB of the host's memory, of which 5 are free; use memory"
    with pytest.raises(InputError, match=words):
        held_how(task, 100_000)


def test_the_host_s_free_memory_is_what_the_system_says_within_a_container_s_limit(
    tmp_path, monkeypatch
):
    about = tmp_path / "meminfo"
    about.write_text("MemTotal:       2000 kB\nMemAvailable:   1000 kB\nHugePages_Total:   0\n")
    monkeypatch.setattr(hardware, "MEMINFO", about)
    monkeypatch.setattr(hardware, "CONTAINER", tmp_path)
    assert hardware._host_free() == 1000 * 1024
    (tmp_path / "memory.max").write_text("500000\n")
    (tmp_path / "memory.stat").write_text("anon 100000\nfile 300000\n")
    assert hardware._host_free() == 400_000
    (tmp_path / "memory.max").write_text("max\n")
    assert hardware._host_free() == 1000 * 1024
    about.unlink()
    assert hardware._host_free() > 0


@pytest.mark.cuda
def test_what_a_training_before_has_left_counts_as_free():
    device = torch.device("cuda")
    before = hardware._free(device)
    held = torch.empty(1 << 30, dtype=torch.uint8, device=device)
    assert before - hardware._free(device) == pytest.approx(1 << 30, rel=0.1)
    del held  # torch keeps it
    assert hardware._free(device) == pytest.approx(before, rel=0.01)


def test_a_model_that_cannot_recompute_says_so(graph):
    for memory in ("recompute", "offload"):
        with pytest.raises(
            ValueError, match="gat cannot recompute its activations; use memory auto or keep"
        ):
            fit(graph, "gat", memory=memory)


def test_outside_of_fit_a_recomputing_model_trains_by_torchs_own_seed(graph):
    task = Task.of(graph, make_plan("gcnii", {"layers": 9, "width": 8}), torch.device("cpu"))
    model = task.plan.build(graph.d, graph.k).train()
    model.recomputes = True
    torch.manual_seed(0)
    model(task.P, task.X).square().mean().backward()
    assert all(weight.grad.abs().max() > 0 for weight in model.parameters())
