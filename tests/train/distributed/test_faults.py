"""A process that dies is named by the others, and the same command goes on to the same digits."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch.distributed as dist
from support.processes import TESTS, started, torchrun
from support.waiting import PATIENCE, wait_until

import gcnii
from gcnii.train.distributed import world as room
from gcnii.train.distributed.world import World

COMMAND = TESTS / "support" / "save_often.py"
WORDS = ("train", "csbm", "--layers", "3", "--width", "8", "--precision", "float64")
WORDS += ("--device", "cpu", "--threads", "1", "--patience", "100", "--lr", "0.001")


@pytest.fixture
def world(monkeypatch):
    """Rank 0 of 2, of which rank 1 has said nothing yet."""
    monkeypatch.setattr(room, "_leave", lambda: None)
    return World(0, 2, dist.HashStore(), hosted=True)


def test_a_survivor_says_that_it_lives_before_it_leaves(world, monkeypatch):
    seen = []
    monkeypatch.setattr(room, "GRACE", 0.0)
    monkeypatch.setattr(room, "_leave", lambda: seen.append(world.store.check(["alive/0"])))
    assert "rank 1 of 2 ended before the training began" in str(room._obituary(world))
    assert seen == [True]  # leaving may take longer than the others wait


def test_a_process_that_has_ended_is_not_waited_for(world):
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        world.store.set("process/1", f"{room._machine()} {process.pid}")
        assert "rank 1 of 2 ended" in str(room._obituary(world))  # though nobody has reaped it


def test_a_process_that_runs_is_not_called_ended_however_slow_it_is(world, monkeypatch):
    monkeypatch.setattr(room, "GRACE", 0.1)
    world.store.set("process/1", f"{room._machine()} {os.getpid()}")
    assert "all 2 processes were stopped" in str(room._obituary(world))


def test_who_has_the_store_waits_until_the_others_have_read_it(world):
    world.store.set("alive/1", "yes")
    reader = threading.Timer(0.3, world.store.set, ("read/1", "yes"))
    reader.start()
    room._obituary(world)
    assert reader.finished.is_set()


def ranks_of(torchrun_pid):
    """rank → pid of the processes that this torchrun has started."""
    found = {}
    children = Path(f"/proc/{torchrun_pid}/task/{torchrun_pid}/children").read_text().split()
    for pid in children:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        named = dict(word.split(b"=", 1) for word in words if b"=" in word)
        if b"RANK" in named:
            found[int(named[b"RANK"])] = int(pid)
    return found


def killed(folder, size, rank, sent):
    """Start a training, and send one of its processes a signal when a checkpoint is there."""
    words = (*WORDS, "--epochs", "100", "--out", folder)
    with started(size, COMMAND, *words) as process:
        wait_until((folder / "checkpoint.safetensors").exists)
        os.kill(ranks_of(process.pid)[rank] if rank is not None else process.pid, sent)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    return errors


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which process is which")
def test_a_killed_process_is_named_and_the_training_resumes_with_fewer(tmp_path):
    errors = killed(tmp_path / "many", 3, 1, signal.SIGKILL)
    sentence = "rank 1 of 3 ended, and so did the others; run the same command again to resume"
    assert f"gcnii: {sentence}" in errors, errors
    assert f"gcnii: rank 2: {sentence}" in errors, errors
    assert not (tmp_path / "many" / "run.json").exists()
    words = (*WORDS, "--epochs", "100")
    done = torchrun(2, "-m", "gcnii", *words, "--out", tmp_path / "many")
    assert done.returncode == 0, done.stderr
    alone = [sys.executable, "-m", "gcnii", *words, "--out", tmp_path / "one"]
    subprocess.run(alone, check=True, capture_output=True)
    one, many = (gcnii.open_bundle(tmp_path / name) for name in ("one", "many"))
    assert one.runs[0].epochs == many.runs[0].epochs == 100
    assert abs(one.runs[0].val_loss - many.runs[0].val_loss) < 1e-9
    assert one.runs[0].test == many.runs[0].test
    for name, weight in one.weights.items():
        assert np.allclose(weight, many.weights[name], 1e-9, 1e-9), name
    assert done.stdout.count("test accuracy") == 1  # rank 0 speaks for all


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which process is which")
@pytest.mark.long
def test_a_signal_ends_all_processes_at_once_and_leaves_the_checkpoint(tmp_path):
    errors = killed(tmp_path / "run", 2, None, signal.SIGTERM)
    assert "all 2 processes were stopped; run the same command again to resume" in errors
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()
