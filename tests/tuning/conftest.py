"""A small graph, and studies of it that take seconds."""

from dataclasses import replace

import pytest
from support.small_studies import QUICK, few_runs

import gcnii


@pytest.fixture(scope="session")
def graph():
    """60 nodes of two classes, of one's own: 10 train, 18 validate and 32 test."""
    return replace(gcnii.load("csbm", n=60, labels_per_class=5))


@pytest.fixture(autouse=True)
def _few_runs():
    with few_runs():
        yield


@pytest.fixture(scope="session")
def tuned(graph):
    """A closed study of six settings, in memory."""
    with few_runs():
        return gcnii.tune(graph, trials=6, models=["gcnii", "gcn"], layers=2, **QUICK)
