"""Fixtures shared by all rooms."""

import os
import signal

import pytest
import torch
from support import chromium

from gcnii.data import load
from gcnii.errors import DataError


@pytest.fixture(scope="session")
def real_data():
    """`real_data(name)` → Graph, read once; without its files the test skips, or fails if
    $GCNII_REQUIRE_DATA is 1.
    """
    graphs = {}
    # An address may be asked, but upstream never: tests need no network.
    offline = not os.environ.get("GCNII_MIRROR", "").startswith("http")

    def read(name):
        if name not in graphs:
            try:
                graphs[name] = load(name, offline=offline)
            except DataError as error:
                if os.environ.get("GCNII_REQUIRE_DATA") == "1":
                    raise
                pytest.skip(str(error))
        return graphs[name]

    return read


@pytest.fixture(autouse=True)
def _seeded():
    """A test that fails fails again: what draws from torch's generator draws the same each time."""
    torch.manual_seed(0)


@pytest.fixture
def listening():
    """Hear Ctrl-C even where the tests run in the background of a shell that has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pytest_configure():
    """One thread: the graphs of the tests are small; and a mirror that is found from whatever
    folder a test is in.
    """
    torch.set_num_threads(1)
    mirror = os.environ.get("GCNII_MIRROR", "")
    if os.path.isdir(mirror):
        os.environ["GCNII_MIRROR"] = os.path.abspath(mirror)


def pytest_collection_modifyitems(items):
    """What needs a GPU is skipped without one."""
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("cuda"):
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium; without one the tests skip, or fail if $GCNII_REQUIRE_BROWSER is 1."""
    yield from chromium.launched()
