"""Clusters: balanced, the same again, and with few links between them."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from gcnii.propagation import adjacency
from gcnii.train.clusters import cluster, cut


def communities(groups=6, size=30, seed=0):
    """Dense groups and few links between them, the nodes in no order."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.arange(groups * size) % groups)
    near = group[:, None] == group
    A = rng.random(near.shape) < np.where(near, 0.3, 0.005)
    return sp.csr_array(np.triu(A, 1) | np.triu(A, 1).T, dtype=float), group


def share_cut(A, labels):
    A = sp.coo_array(A)
    return (labels[A.row] != labels[A.col]).mean()


@pytest.fixture(params=["metis", "ours"])
def cutter(request, monkeypatch):
    if request.param == "ours":
        monkeypatch.setitem(sys.modules, "pymetis", None)
    else:
        pytest.importorskip("pymetis")
    return cluster


def test_communities_are_found(cutter):
    A, group = communities()
    assert share_cut(A, cutter(A, 6)) <= 1.3 * share_cut(A, group)


def test_clusters_are_of_about_equal_size_and_none_is_empty(cutter):
    A, _ = communities()
    for count in (2, 5, 12):
        sizes = np.bincount(cutter(A, count), minlength=count)
        assert len(sizes) == count
        assert sizes.min() > 0
        assert sizes.max() <= 1.25 * len(A.indptr) / count


def test_the_same_links_give_the_same_clusters(cutter):
    A, _ = communities()
    assert (cutter(A, 7) == cutter(A.copy(), 7)).all()


def test_weights_loops_and_the_direction_of_links_do_not_matter(cutter):
    A, _ = communities()
    other = sp.csr_array(sp.triu(A) * 3.0 + sp.eye_array(A.shape[0]))
    assert (cutter(A, 5) == cutter(other, 5)).all()


@pytest.mark.parametrize("count", [1, 3, 9])
def test_nodes_without_links_are_shared_out_too(cutter, count):
    labels = cutter(sp.csr_array((5, 5)), count)
    assert labels.shape == (5,)
    assert set(labels) <= set(range(count))


def test_a_star_is_cut_though_its_hub_can_join_but_one(cutter):
    star = sp.lil_array((200, 200))
    star[0, 1:] = 1
    labels = cutter(sp.csr_array(star), 4)
    assert np.bincount(labels, minlength=4).max() <= 60


def test_cora_is_cut_nearly_as_well_as_by_metis(real_data):
    metis = pytest.importorskip("pymetis")
    A = adjacency(real_data("cora"))
    labels = cut(A, np.ones(A.shape[0]), 50)
    theirs = np.array(metis.part_graph(50, metis.CSRAdjacency(A.indptr, A.indices))[1])
    assert share_cut(A, labels) < 1.1 * share_cut(A, theirs)
    assert np.bincount(labels).max() <= 1.1 * A.shape[0] / 50
