"""The benchmark files hold what their README and, where it is right, the paper's Table 1 say."""

import numpy as np
import pytest

from gcnii.data import CATALOG

CITATIONS = ["cora", "citeseer", "pubmed"]
WEB = ["chameleon", "cornell", "cornell-2022", "texas", "wisconsin"]
REAL = [*CITATIONS, *(f"{name}-full" for name in CITATIONS), *WEB]
EMPTY = {"citeseer": 15, "citeseer-full": 15, "chameleon": 233}  # nodes without a feature


def ends(graph):
    """Both ends of every edge that is not a self-loop."""
    return graph.edges[:, graph.edges[0] != graph.edges[1]]


def sizes(split):
    return int(split.train.sum()), int(split.val.sum()), int(split.test.sum())


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cora", (2708, 5278, 1433, 7)),
        ("citeseer", (3327, 4552, 3703, 6)),
        ("pubmed", (19717, 44324, 500, 3)),
        ("chameleon", (2277, 31371, 2325, 5)),
        ("cornell", (183, 277, 1703, 5)),
        ("texas", (183, 279, 1703, 5)),
        ("wisconsin", (251, 450, 1703, 5)),
    ],
)
def test_nodes_undirected_edges_features_and_classes_are_as_published(real_data, name, counts):
    graph = real_data(name)
    pairs = {(min(u, v), max(u, v)) for u, v in ends(graph).T.tolist()}
    assert (graph.n, len(pairs), graph.d, graph.k) == counts


@pytest.mark.parametrize("name", REAL)
def test_the_catalog_counts_what_the_graph_counts(real_data, name):
    graph, counts = real_data(name), CATALOG[name].counts
    assert (graph.n, graph.m, graph.d, graph.k) == (
        counts.nodes,
        counts.edges,
        counts.features,
        counts.classes,
    )
    assert graph.name == name


@pytest.mark.parametrize("name", REAL)
def test_edges_are_not_repeated(real_data, name):
    graph = real_data(name)
    assert len(set(map(tuple, graph.edges.T.tolist()))) == graph.edges.shape[1]
    assert graph.directed == (name in WEB)


@pytest.mark.parametrize(
    ("name", "loops"),
    [
        ("cora", 0),
        ("citeseer", 124),
        ("pubmed", 3),
        ("chameleon", 50),
        ("cornell", 3),
        ("texas", 16),
        ("wisconsin", 16),
    ],
)
def test_self_loops_are_kept(real_data, name, loops):
    assert real_data(name).edges.shape[1] - ends(real_data(name)).shape[1] == loops


@pytest.mark.parametrize("name", REAL)
def test_rows_of_features_sum_to_one_or_are_zero(real_data, name):
    graph = real_data(name)
    sums = graph.X.sum(1)
    assert graph.X.dtype == np.float32
    np.testing.assert_allclose(sums[sums != 0], 1, rtol=1e-5)
    assert (sums == 0).sum() == EMPTY.get(name, 0)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cora", [351, 217, 418, 818, 426, 298, 180]),
        ("citeseer", [249, 590, 668, 701, 596, 508]),
        ("citeseer-full", [264, 590, 668, 701, 596, 508]),
        ("pubmed", [4103, 7739, 7875]),
        ("cornell", [33, 1, 18, 101, 30]),
        ("cornell-2022", [38, 16, 30, 82, 17]),
        ("texas", [33, 1, 18, 101, 30]),
        ("wisconsin", [10, 70, 118, 32, 21]),
    ],
)
def test_classes_are_as_large_as_published(real_data, name, counts):
    graph = real_data(name)
    assert np.bincount(graph.y[graph.labelled]).tolist() == counts


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("cora", 0.810),
        ("citeseer", 0.738),
        ("pubmed", 0.802),
        ("cornell", 0.298),
        ("texas", 0.061),
        ("wisconsin", 0.170),
    ],
)
def test_edges_join_equal_labels_as_often_as_published(real_data, name, share):
    graph = real_data(name)
    labels = graph.y[ends(graph)]
    labels = labels[:, (labels >= 0).all(0)]
    assert round(float((labels[0] == labels[1]).mean()), 3) == share


@pytest.mark.parametrize(("name", "train"), [("cora", 140), ("citeseer", 120), ("pubmed", 60)])
def test_the_public_split_has_20_labels_per_class(real_data, name, train):
    graph = real_data(name)
    (split,) = graph.splits
    assert sizes(split) == (train, 500, 1000)
    assert split.train[:train].all()
    assert split.val[train : train + 500].all()
    assert np.bincount(graph.y[split.train]).tolist() == [20] * graph.k


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cora", [130, 91, 144, 319, 149, 103, 64]),
        ("citeseer", [77, 182, 181, 231, 169, 160]),
        ("pubmed", [180, 413, 407]),
    ],
)
def test_test_rows_are_where_the_index_says(real_data, name, counts):
    graph = real_data(name)
    assert np.bincount(graph.y[graph.splits[0].test]).tolist() == counts


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cora-full", (1192, 796, 497)),
        ("pubmed-full", (9463, 6310, 3944)),
        ("chameleon", (1092, 729, 456)),
        ("cornell", (87, 59, 37)),
        ("cornell-2022", (87, 59, 37)),
        ("texas", (87, 59, 37)),
        ("wisconsin", (120, 80, 51)),
    ],
)
def test_the_ten_splits_are_48_32_20(real_data, name, expected):
    assert [sizes(split) for split in real_data(name).splits] == [expected] * 10


def test_two_splits_of_citeseer_cover_only_its_largest_component(real_data):
    expected = [(1596, 1065, 666)] * 10
    expected[4] = expected[5] = (1017, 679, 424)
    assert [sizes(split) for split in real_data("citeseer-full").splits] == expected


def test_citeseers_15_missing_nodes_are_unknown_or_class_0(real_data):
    public, full = real_data("citeseer"), real_data("citeseer-full")
    missing = public.X.sum(1) == 0
    assert missing.sum() == 15
    assert (public.y[missing] == -1).all()
    assert (full.y[missing] == 0).all()
    assert all((split.train & missing).any() for split in full.splits)


def test_cornell_of_2020_is_texas_on_other_edges(real_data):
    cornell, texas = real_data("cornell"), real_data("texas")
    assert (cornell.X != texas.X).nnz == 0
    assert (cornell.y == texas.y).all()
    assert cornell.edges.shape != texas.edges.shape


def test_cornell_of_2022_is_another_graph(real_data):
    assert (real_data("cornell").y != real_data("cornell-2022").y).any()


def test_texas_has_5_classes_though_split_0_trains_on_4(real_data):
    texas = real_data("texas")
    assert set(texas.y[texas.splits[0].train].tolist()) == {0, 2, 3, 4}
    assert texas.k == 5


def test_web_links_keep_their_direction(real_data):
    """Every page of Chameleon links somewhere, but 1413 are linked from nowhere."""
    graph = real_data("chameleon")
    assert len(np.unique(graph.edges[0])) == graph.n
    assert graph.n - len(np.unique(ends(graph)[1])) == 1413
