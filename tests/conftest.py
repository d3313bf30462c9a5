"""Fixtures shared by all rooms."""

import os
import signal
import tempfile
from pathlib import Path

import pytest
import torch
from support import chromium, knobs
from support.no_network import sitecustomize
from support.waiting import wait_until

from gcnii.data import load
from gcnii.data.download import fetch
from gcnii.errors import DataError
from gcnii.train import group, hardware


@pytest.fixture(scope="session")
def real_data():
    """`real_data(name)` → Graph, read once; without its files the test skips, or fails if
    $GCNII_REQUIRE_DATA is 1.
    """
    graphs = {}

    def read(name):
        if name not in graphs:
            try:
                fetch(name, offline=True)
            except DataError as error:  # files that are there and cannot be read fail below
                if os.environ.get("GCNII_REQUIRE_DATA") == "1":
                    raise
                pytest.skip(str(error))
            graphs[name] = load(name, offline=True)
        return graphs[name]

    return read


@pytest.fixture(autouse=True)
def _connects_to_this_machine_only():
    """Fail a test that tried to reach another one, even if the failure was answered kindly."""
    notes = Path(os.environ[sitecustomize.NOTES])
    notes.write_text("")
    yield
    hosts = sorted(set(notes.read_text().split()))
    assert not hosts, f"this test tried to connect to {', '.join(hosts)}"


@pytest.fixture(autouse=True)
def _seeded():
    """A test that fails fails again: what draws from torch's generator draws the same each time."""
    torch.manual_seed(0)


@pytest.fixture
def save_every_epoch(monkeypatch):
    """Every epoch ends with a checkpoint, however long writing it takes."""
    monkeypatch.setattr(knobs.SAVE_EVERY, 0)
    monkeypatch.setattr(group, "SAVE_SHARE", float("inf"))


@pytest.fixture
def sync_every(monkeypatch):
    """`sync_every(8)`: the host looks at the replicas every 8 epochs, and not sooner."""

    def look(epochs, device="cpu"):
        monkeypatch.setitem(hardware.SYNC_EVERY, device, epochs)
        if device == "cpu":
            monkeypatch.setattr(group, "PAUSE", 1e9)

    return look


@pytest.fixture
def keep_stopped_runs(monkeypatch):
    """`keep_stopped_runs()`: from now on, runs that have stopped stay among the replicas."""
    return lambda: monkeypatch.setattr(group.ReplicaGroup, "compact", lambda self: None)


@pytest.fixture
def without_kernels(monkeypatch):
    """`without_kernels()`: from now on, Triton's kernels are not used."""
    return lambda: monkeypatch.setattr(knobs.USABLE, lambda tensor: False)


@pytest.fixture
def line_of_progress(monkeypatch, capsys):
    """Lines of progress come every 20 ms: `line_of_progress(line)` waits for one on stderr, and
    returns all so far; nothing may be printed to stdout.
    """
    monkeypatch.setattr(knobs.LINES_EVERY, 0.02)
    lines = []

    def come(line):
        out, err = capsys.readouterr()
        assert out == ""
        lines.extend(filter(None, err.splitlines()))
        return line in lines

    return lambda line: wait_until(lambda: come(line)) and lines


@pytest.fixture
def listening():
    """Hear Ctrl-C even where the tests run in the background of a shell that has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_configure():
    """One thread: the graphs of the tests are small; a mirror that is found from whatever folder a
    test is in; and no connection to another machine, from here or from processes started here.
    """
    torch.set_num_threads(1)
    handle, os.environ[sitecustomize.NOTES] = tempfile.mkstemp(prefix="gcnii-connections-")
    os.close(handle)
    paths = [str(Path(sitecustomize.__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    mirror = os.environ.get("GCNII_MIRROR", "")
    if os.path.isdir(mirror):
        os.environ["GCNII_MIRROR"] = os.path.abspath(mirror)


def pytest_unconfigure():
    Path(os.environ[sitecustomize.NOTES]).unlink(missing_ok=True)


def pytest_collection_modifyitems(items):
    """What needs a GPU is skipped without one; what asks for real data is marked `data`."""
    for item in items:
        if "real_data" in item.fixturenames:
            item.add_marker(pytest.mark.data)
        if item.get_closest_marker("cuda") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; without one the tests skip, or fail if $GCNII_REQUIRE_BROWSER is 1."""
    yield from chromium.launched()
