"""Known: the labels that may be used."""

import numpy as np
import pytest

from gcnii import Graph, Split
from gcnii.errors import InputError
from gcnii.members.known import Known

SPLIT = Split.of_roles(["train", "train", "train", "val", "test"])
GRAPH = Graph(X=np.ones((5, 1)), edges=[[0], [1]], y=[0, 1, 1, 0, 1], classes=("a", "b", "c"))


def test_only_labels_of_training_nodes_are_known():
    known = Known.of(GRAPH, SPLIT)
    np.testing.assert_array_equal(known.Y, [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0] * 3, [0] * 3])
    np.testing.assert_allclose(known.shares, [1 / 3, 2 / 3, 0])


def test_nodes_that_come_later_have_no_known_label():
    known = Known.of(GRAPH, SPLIT)
    more = known.reaching(7)
    assert more.train.tolist() == [True] * 3 + [False] * 4
    np.testing.assert_array_equal(more.Y[:5], known.Y)
    assert not more.Y[5:].any()
    with pytest.raises(InputError, match="the graph has 4 nodes, but labels of 5 are known"):
        known.reaching(4)


def test_of_another_graph_only_the_shares_are_known():
    shares = Known.of(GRAPH, SPLIT).shares
    np.testing.assert_allclose(shares, [1 / 3, 2 / 3, 0])
    known = Known.elsewhere(2, shares, True)
    assert known.Y.shape == (2, 3)
    assert not known.train.any()
