"""Fixtures of this room."""

from contextlib import contextmanager

import pytest


@pytest.fixture
def small_files():
    """Within `small_files()`, nobody may write more than so many bytes to a file; not longer,
    because pytest's own output may be one.
    """
    resource = pytest.importorskip("resource")

    @contextmanager
    def limited():
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited
