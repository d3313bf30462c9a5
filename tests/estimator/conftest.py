"""Small graphs and rows to classify."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import gcnii


@pytest.fixture(scope="session")
def graph():
    """80 nodes called a0 … a79, in two classes."""
    made = gcnii.load("csbm", n=80, signal=3.0, labels_per_class=5)
    return replace(made, nodes=tuple(f"a{i}" for i in range(made.n)))


@pytest.fixture(scope="session")
def rows():
    """X (90, 4) and y in three classes."""
    X, y = make_blobs(90, 4, centers=3, cluster_std=2.0, random_state=0)
    return X, np.array(["ant", "bee", "cat"])[y]


@pytest.fixture
def classifier():
    """`classifier(graph=None, **parameters)`: of a network that is trained in no time."""

    def make(graph=None, **parameters):
        quick = {"layers": 2, "width": 8, "epochs": 20, "device": "cpu"}
        return gcnii.GCNIIClassifier(graph, **quick | parameters)

    return make
