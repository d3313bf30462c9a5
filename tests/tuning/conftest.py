"""A small graph, and studies of it that take seconds."""

from dataclasses import replace
from unittest import mock

import pytest
from alembic.script import ScriptDirectory
from support.forking import Forks
from support.small_studies import QUICK, few_runs

import gcnii


@pytest.fixture(scope="session")
def graph():
    """60 nodes of two classes, of one's own: 10 train, 18 validate and 32 test."""
    return replace(gcnii.load("csbm", n=60, labels_per_class=5))


@pytest.fixture(scope="session", autouse=True)
def _reads_the_migrations_once():
    """Optuna asks alembic for its newest schema whenever it opens a storage, which costs as much as
    all else that opening does: the modules of all migrations are run.  Here once for all tests.
    """
    read, found = ScriptDirectory.from_config, []

    def once(config):
        if not found:
            found.append(read(config))
        return found[0]

    with mock.patch.object(ScriptDirectory, "from_config", once):
        yield


@pytest.fixture(autouse=True)
def _few_runs():
    with few_runs():
        yield


@pytest.fixture(scope="session")
def tuned(graph):
    """A closed study of six settings, in memory."""
    with few_runs():
        return gcnii.tune(graph, trials=6, models=["gcnii", "gcn"], layers=2, **QUICK)


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    """Starts commands in processes of their own, at once."""
    forks = Forks(tmp_path_factory.mktemp("said"))
    yield forks
    forks.close()
