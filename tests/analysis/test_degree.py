"""Accuracy by degree: which nodes are in which group."""

from dataclasses import replace

import numpy as np
import pytest

from gcnii.analysis import by_degree, degrees
from gcnii.graph import Graph, Split


@pytest.fixture
def star():
    """Node 0 is joined to 1, 2, 3 (to 1 in both directions) and to itself; node 4 is isolated."""
    roles = ["train", "val", "test", "test", "test"]
    edges = [[0, 0, 0, 1, 0], [1, 2, 3, 0, 0]]
    return Graph(
        X=np.eye(5), edges=edges, y=[0, 1, 0, 1, 1], splits=(Split.of_roles(roles),), name="star"
    )


def test_a_neighbour_counts_once_and_a_node_is_not_its_own(star):
    assert degrees(star).tolist() == [3, 1, 1, 1, 0]


def test_a_group_holds_the_degrees_from_a_power_of_two_to_below_the_next(star):
    low, high, tested = by_degree(star, np.array([0, 1, 1, 1, 1]))
    assert low == {"who": "all", "from": 1, "below": 2, "nodes": 3, "accuracy": 2 / 3}
    assert high == {"who": "all", "from": 2, "below": 4, "nodes": 1, "accuracy": 1.0}
    assert tested == {"who": "test", "from": 1, "below": 2, "nodes": 2, "accuracy": 0.5}


def test_test_nodes_are_those_of_the_split(star):
    (first,) = star.splits
    several = star.with_splits([first, replace(first, test=first.val, val=first.test)])
    *_, tested = by_degree(several, np.array([0, 1, 1, 1, 1]), 1)
    assert tested == {"who": "test", "from": 1, "below": 2, "nodes": 1, "accuracy": 1.0}
