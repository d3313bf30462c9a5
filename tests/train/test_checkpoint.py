"""Checkpoints: damage is found and named, the one before is used, and signals save and stop."""

import os
import signal
import subprocess
import sys
import threading
import warnings

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from support import knobs
from support.killing import Killed, killed_after_a_save

import gcnii
from gcnii import data
from gcnii.errors import InputError
from gcnii.results.fit import fit
from gcnii.train.checkpoint import Checkpoint, before, remove
from gcnii.train.group import interruptible
from gcnii.train.stopping import Run

CPU = torch.device("cpu")
HOW = {"layers": 2, "width": 4, "epochs": 6, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    return data.load("csbm", n=60)


@pytest.fixture
def path(tmp_path, save_every_epoch):
    """Of a checkpoint; trainings save after every epoch."""
    return tmp_path / "checkpoint.safetensors"


def saved_at(graph, path, epochs):
    """Train until a checkpoint of this epoch is saved, and be killed."""
    for _ in range(epochs):
        with killed_after_a_save(), pytest.raises(Killed):
            fit(graph, checkpoint=path, **HOW)


def some_checkpoint():
    roles = ("now", "best", "first", "second")
    weights = lambda: {"b": torch.ones(2, 0), "convs.0.W": torch.arange(32.0).reshape(2, 4, 4)}  # noqa: E731
    stacks = {role: weights() for role in roles}
    runs = [Run(0, epochs=2, curve=[(1.0, 2.0, float("nan"))] * 2), Run(1)]
    steps = {"steps": torch.tensor([2])}
    return Checkpoint({"settings": {}}, runs, [(0, 0)], stacks | {"adam": steps})


def flip(path, place, bit=0):
    """Flip one bit of a file, at this share of its length."""
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1 << bit
    path.write_bytes(content)


def whole_run(graph):
    return fit(graph, **HOW)


def test_what_was_saved_is_loaded(tmp_path):
    some_checkpoint().save(tmp_path / "checkpoint")
    one, two = some_checkpoint(), Checkpoint.load(tmp_path / "checkpoint", CPU)
    assert repr((one.identity, one.runs, one.active)) == repr((two.identity, two.runs, two.active))
    assert repr(two.runs[0].curve) == "[(1.0, 2.0, nan), (1.0, 2.0, nan)]"
    for role, stack in one.stacks.items():
        assert all(torch.equal(two.stacks[role][name], own) for name, own in stack.items())


@pytest.mark.parametrize("bit", [0, 5])
def test_one_flipped_bit_anywhere_is_found(tmp_path, bit):
    path = tmp_path / "checkpoint"
    some_checkpoint().save(path)
    good, places = path.read_bytes(), 120
    for place in range(places):
        path.write_bytes(good)
        flip(path, place / places, bit)
        with pytest.warns(UserWarning, match=r"checkpoint is damaged \(.+\); starting over$"):
            assert Checkpoint.load(path, CPU) is None


@pytest.mark.parametrize("kept", [0, 7, 100, 1000, -1])
def test_a_file_cut_short_is_damaged(tmp_path, kept):
    path = tmp_path / "checkpoint"
    some_checkpoint().save(path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.warns(UserWarning, match="is damaged"):
        assert Checkpoint.load(path, CPU) is None


def test_no_checkpoint_is_not_a_damaged_one(tmp_path):
    assert Checkpoint.load(tmp_path / "checkpoint", CPU) is None


def renamed(tensors):
    return {name.replace("now/convs.0.W", "now/convs.0.V"): one for name, one in tensors.items()}


def without_adam(tensors):
    return {name: one for name, one in tensors.items() if not name.startswith("adam")}


@pytest.mark.parametrize(
    ("tensors", "note", "said"),
    [
        (renamed, None, "do not have the same names and shapes"),
        (without_adam, None, "it holds no adam"),
        (dict, '{"identity": {}, "runs": [{}], "active": []}', r"runs\[0\].seed is missing"),
        (dict, "[]", "it must be an object"),
        (dict, "[" * 99_999, "recursion"),
    ],
)
def test_one_without_a_checksum_as_version_0_1_wrote_is_read_by_a_shape(
    tmp_path, tensors, note, said
):
    path = tmp_path / "checkpoint"
    some_checkpoint().save(path)
    with safe_open(path, "pt") as file:
        old = {"checkpoint": note or file.metadata()["checkpoint"]}
    save_file(tensors(load_file(path)), path, old)
    with pytest.warns(UserWarning, match=f"checkpoint is damaged .*{said}.*; starting over"):
        assert Checkpoint.load(path, CPU) is None


def test_the_one_before_is_what_the_checkpoint_was(graph, path):
    saved_at(graph, path, 3)
    assert Checkpoint.load(path, CPU).runs[0].epochs == 3
    assert Checkpoint.load(before(path), CPU).runs[0].epochs == 2


def test_a_damaged_checkpoint_is_named_and_the_one_before_resumes_to_the_same_numbers(graph, path):
    saved_at(graph, path, 3)
    flip(path, 0.9)
    sentence = rf"{path} is damaged \(its SHA-256 .*\); resuming from the checkpoint before it"
    with pytest.warns(UserWarning, match=sentence), killed_after_a_save(), pytest.raises(Killed):
        fit(graph, checkpoint=path, **HOW)
    # The damaged one was not kept as the one before.
    assert Checkpoint.load(before(path), CPU).runs[0].epochs == 2
    resumed = fit(graph, checkpoint=path, **HOW)
    assert resumed.runs[0].curve == whole_run(graph).runs[0].curve


@pytest.mark.parametrize("place", [0.0, 0.1, 0.9])
def test_two_damaged_ones_are_named_and_training_starts_over(graph, path, place):
    saved_at(graph, path, 2)
    flip(path, place)
    flip(before(path), place)
    with pytest.warns(UserWarning, match="is damaged .*, and .*previous.* is damaged .*; starting"):
        again = fit(graph, checkpoint=path, **HOW)
    assert again.runs[0].curve == whole_run(graph).runs[0].curve


def test_a_kill_between_the_old_one_s_move_and_the_new_one_s_loses_an_epoch(graph, path):
    saved_at(graph, path, 3)
    path.unlink()
    resumed = fit(graph, checkpoint=path, **HOW)
    assert resumed.runs[0].curve == whole_run(graph).runs[0].curve


def test_a_checkpoint_is_removed_with_the_one_before_and_nothing_else(path):
    other = path.with_name("mine.previous.safetensors")
    other.touch()
    for _ in range(2):
        some_checkpoint().save(path)
    remove(path)
    remove(path)
    assert list(path.parent.iterdir()) == [other]


def test_a_full_disk_is_told_once_and_training_goes_on(graph, path, small_files):
    sentence = f"cannot save {path}: File too large; continuing without it"
    with small_files(), pytest.warns(UserWarning, match=sentence) as told:
        result = fit(graph, checkpoint=path, **HOW)
    assert len(told) == 1
    assert result.runs[0].curve == whole_run(graph).runs[0].curve
    assert list(path.parent.iterdir()) == []


def test_what_a_killed_process_has_left_is_removed_at_the_next_start(graph, path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    names = {pid: path.with_name(f".{path.name}.{pid}.0123abcd") for pid in (process.pid, 1)}
    for name in names.values():
        name.touch()
    fit(graph, checkpoint=path, **HOW | {"epochs": 1})
    assert not names[process.pid].exists()
    assert names[1].exists()  # its process runs


@pytest.fixture
def default_signals():
    """Those that a shell starts a program with."""
    handlers = {signal.SIGINT: signal.default_int_handler}
    handlers |= dict.fromkeys((signal.SIGTERM, signal.SIGHUP), signal.SIG_DFL)
    earlier = {number: signal.signal(number, one) for number, one in handlers.items()}
    yield handlers
    for number, one in earlier.items():
        signal.signal(number, one)


STOPPING = "gcnii: stopping after this epoch"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_asks_to_stop_and_is_acknowledged_at_once(default_signals, capfd, name):
    number = getattr(signal, name)
    with interruptible() as interrupt:
        assert signal.getsignal(number) not in default_signals.values()
        signal.raise_signal(number)
        again = "; press Ctrl-C again to stop now" if name == "SIGINT" else ""
        assert (bool(interrupt), capfd.readouterr().err) == (True, f"{STOPPING}{again}\n")
        # A closed terminal may say it twice.
        signal.raise_signal(signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert capfd.readouterr().err == ""
    assert {number: signal.getsignal(number) for number in default_signals} == default_signals


def test_a_handler_of_the_program_s_own_stays(default_signals):
    heard = []
    signal.signal(signal.SIGTERM, lambda *_: heard.append("term"))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
    with interruptible() as interrupt:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
        assert (bool(interrupt), heard) == (False, ["term"])


def test_a_thread_handles_no_signals(default_signals):
    seen = []

    def work():
        with interruptible():
            seen.append({number: signal.getsignal(number) for number in default_signals})

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [default_signals]


@pytest.mark.usefixtures("default_signals")
def test_the_second_ctrl_c_stops_at_once_and_loses_nothing_that_was_saved(graph, path, monkeypatch):
    def press(now):
        if now.epoch == 3:
            monkeypatch.setattr(knobs.SAVE_EVERY, 1000.0)  # no other save
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit(graph, checkpoint=path, callbacks=[press], **HOW)
    assert Checkpoint.load(path, CPU).runs[0].epochs == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = fit(graph, checkpoint=path, **HOW)
    assert resumed.runs[0].curve == whole_run(graph).runs[0].curve


@pytest.mark.parametrize("kind", ["pipe", "device", "weights", "text"])
def test_a_file_that_is_not_a_checkpoint_is_neither_waited_for_nor_replaced(kind, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    {
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "weights": lambda: save_file({"W": torch.eye(2)}, path, {"format": "pt"}),
        "text": lambda: path.write_text("years of work"),
    }[kind]()
    with pytest.raises(InputError, match=r"is not a (regular file|checkpoint); "):
        gcnii.fit(gcnii.load("csbm", n=60), layers=2, epochs=2, device="cpu", checkpoint=path)
    assert kind != "text" or path.read_text() == "years of work"
