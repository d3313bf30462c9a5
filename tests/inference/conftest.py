"""Graphs and trainings that several tests share."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from gcnii import Graph, Split, data, fit, open_bundle
from tests.support.neighbours import neighbours

SMALL = {"layers": 2, "width": 8, "epochs": 100, "patience": 100, "device": "cpu", "threads": 1}


@pytest.fixture(scope="session")
def blocks():
    """Two named classes that the graph tells apart, and the features hardly."""
    graph = data.load("csbm", n=300, degree=8, homophily=0.95, signal=1.0, labels_per_class=20)
    return replace(graph, classes=("cat", "dog"))


@pytest.fixture(scope="session")
def result(blocks):
    return fit(blocks, seeds=[0], **SMALL)


@pytest.fixture(scope="session")
def evaluation(result):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return result.evaluate()


@pytest.fixture(scope="session")
def own():
    """A graph of one's own, without a split."""
    return neighbours(classes=("cat", "dog"), features=tuple("0123"), name="own")


@pytest.fixture(scope="session")
def ensemble(own):
    """Members that were trained with folds held out."""
    return fit(own, effort="quick", epochs=12, device="cpu")


@pytest.fixture(scope="session")
def opened(ensemble, tmp_path_factory):
    """The same from its bundle, which does not hold the graph."""
    return open_bundle(ensemble.save(tmp_path_factory.mktemp("bundles") / "own"))


@pytest.fixture(scope="session")
def lopsided():
    """95 nodes in 100 are of one class, and nothing says which."""
    random = np.random.default_rng(0)
    n = 400
    y = (random.random(n) < 0.05).astype(int)
    roles = random.permutation(np.repeat(["train", "val", "test"], [160, 80, 160]))
    return Graph(
        X=random.normal(size=(n, 4)),
        edges=random.integers(0, n, (2, 800)),
        y=y,
        splits=(Split.of_roles(roles),),
        classes=("usual", "rare"),
        name="lopsided",
    )
