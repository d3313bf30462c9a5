"""A probe reads what a linear map can read, and nothing else."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from gcnii.analysis.checkup import PENALTY, Probe, centred
from gcnii.data import load
from gcnii.graph import Graph, Split


@pytest.fixture(scope="module")
def graph():
    return load("csbm", n=300, classes=3, features=6, signal=2.0)


def one_hot(graph):
    return torch.tensor(np.eye(graph.k)[graph.labels])


def test_labels_that_are_in_the_state_are_read_in_full(graph):
    assert Probe(graph).score(one_hot(graph)) == 1


def test_a_state_without_differences_is_read_as_well_as_guessing(graph):
    probe = Probe(graph)
    same = torch.full((300, 4), 7.0)
    assert probe.score(same) <= probe.chance
    # float32's rounding is not information
    assert probe.score(same + 1e-7 * torch.randn(300, 4)) <= probe.chance


def test_chance_is_the_share_of_the_most_common_label(graph):
    y = graph.labels[graph.splits[0].val]
    assert Probe(graph).chance == pytest.approx(np.bincount(y).max() / len(y))


@pytest.mark.parametrize("width", [6, 200])  # of 60 training nodes, fewer and more units
def test_a_probe_is_scikit_learns_logistic_regression(graph, width):
    H = torch.tensor(graph.X).double() @ torch.randn(6, width, dtype=torch.float64)
    split = graph.splits[0]
    Z = centred(H.numpy())
    theirs = LogisticRegression(C=1 / (PENALTY * split.train.sum()), tol=1e-8, max_iter=1000)
    theirs.fit(Z[split.train], graph.labels[split.train])
    assert Probe(graph).score(H, "test") == pytest.approx(
        theirs.score(Z[split.test], graph.labels[split.test]), abs=0.01
    )


def test_a_probe_depends_neither_on_the_size_of_a_state_nor_on_its_mean(graph):
    H, probe = torch.tensor(graph.X).double(), Probe(graph)
    assert probe.score(H) == probe.score(1e-20 * H) == probe.score(3 * H + 5)


def test_probes_of_nodes_with_several_labels_are_scored_by_micro_f1():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, (90, 4))
    roles = np.repeat(["train", "val", "test"], 30)
    graph = Graph(X=y + 0.0, edges=np.zeros((2, 0)), y=y, splits=(Split.of_roles(roles),))
    assert Probe(graph).score(torch.tensor(graph.X)) == 1
    assert Probe(graph).chance == 0
