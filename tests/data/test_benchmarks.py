"""The benchmark files hold what was published and, where it is right, the paper's Table 1."""

import numpy as np
import pytest

from gcnii.data import CATALOG
from gcnii.data.splits import stratified_split

CITATIONS = ["cora", "citeseer", "pubmed"]
WEB = ["chameleon", "cornell", "cornell-2022", "texas", "wisconsin", "film"]
WIKIPEDIA = ["squirrel", "chameleon-filtered"]
UNDIRECTED = ["minesweeper", "amazon-photo", "coauthor-cs"]
REAL = [*CITATIONS, *(f"{name}-full" for name in CITATIONS), *WEB, *WIKIPEDIA, *UNDIRECTED]
# nodes without a feature
EMPTY = {
    "citeseer": 15,
    "citeseer-full": 15,
    "chameleon": 233,
    "squirrel": 165,
    "chameleon-filtered": 94,
}


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
        ("film", (7600, 26659, 932, 5)),
        ("squirrel", (5201, 198353, 2089, 5)),
        ("chameleon-filtered", (890, 8854, 2325, 5)),
        ("minesweeper", (10000, 39402, 7, 2)),
        ("amazon-photo", (7650, 119081, 745, 8)),
        ("coauthor-cs", (18333, 81894, 6805, 15)),
    ],
)
def test_nodes_undirected_edges_features_and_classes_are_as_published(real_data, name, counts):
    graph = real_data(name)
    pairs = np.unique(np.sort(ends(graph), axis=0), axis=1)
    assert (graph.n, pairs.shape[1], graph.d, graph.k) == counts


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
    assert np.unique(graph.edges, axis=1).shape == graph.edges.shape
    assert graph.directed == (name in WEB + WIKIPEDIA)


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
        ("film", 93),
        ("squirrel", 140),
        ("chameleon-filtered", 50),
        ("minesweeper", 0),
        ("amazon-photo", 1),
        ("coauthor-cs", 0),
    ],
)
def test_self_loops_are_kept(real_data, name, loops):
    assert real_data(name).edges.shape[1] - ends(real_data(name)).shape[1] == loops


RAW = ("squirrel", "chameleon-filtered", "minesweeper", "amazon-photo", "coauthor-cs")


@pytest.mark.parametrize("name", REAL)
def test_rows_of_features_sum_to_one_or_are_zero_or_hold_zeros_and_ones(real_data, name):
    graph = real_data(name)
    sums = graph.X.sum(1)
    assert graph.X.dtype == np.float32
    if name in RAW:
        assert set(np.unique(graph.X.data)) <= {0, 1}
    else:
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
        ("film", [853, 1337, 1630, 1815, 1965]),
        ("squirrel", [1042, 1040, 1039, 1040, 1040]),
        ("chameleon-filtered", [242, 134, 209, 164, 141]),
        ("minesweeper", [8000, 2000]),
        ("amazon-photo", [369, 1686, 703, 915, 882, 823, 1941, 331]),
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
        ("minesweeper", 0.683),
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
        ("film", (3648, 2432, 1520)),
        ("squirrel", (2496, 1664, 1041)),
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


def alike_in_each_row(X):
    """Whether all numbers of a row are the same, zeros apart."""
    least, most = (reduce.reduceat(X.data, X.indptr[:-1]) for reduce in (np.minimum, np.maximum))
    return (least == most).all()


def test_film_names_the_words_of_an_actor_and_counts_each_once(real_data):
    X = real_data("film").X
    words = X[[4873]]
    assert words.indices.tolist() == [77, 92, 111, 521, 770]
    np.testing.assert_allclose(words.data, 1 / 5)
    assert alike_in_each_row(X)


def test_film_and_cornell_of_2022_have_no_neighbourhoods_of_geom_gcn():
    assert CATALOG["film"].neighbourhoods == CATALOG["cornell-2022"].neighbourhoods == {}


def out_links(graph):
    """(n,) the pages that each page links to, and its label."""
    found = [set() for _ in range(graph.n)]
    for u, v in graph.edges.T.tolist():
        found[u].add(v)
    return [(frozenset(pages), int(label)) for pages, label in zip(found, graph.y, strict=True)]


def test_squirrel_tests_on_copies_of_training_nodes(real_data):
    graph = real_data("squirrel")
    links, split = out_links(graph), graph.splits[0]
    trained = {links[u] for u in np.flatnonzero(split.train)}
    assert sum(links[u] in trained for u in np.flatnonzero(split.test)) == 650


def pages(graph):
    """The words of each page, and its label."""
    words = np.split(graph.X.indices, graph.X.indptr[1:-1])
    return {(*map(int, page), "label", int(y)) for page, y in zip(words, graph.y, strict=True)}


def test_chameleon_without_copies_is_a_part_of_chameleon(real_data):
    assert pages(real_data("chameleon-filtered")) < pages(real_data("chameleon"))
    assert sizes(real_data("chameleon-filtered").splits[0]) == (409, 287, 194)


def test_minesweeper_is_a_grid_whose_cells_touch_all_round(real_data):
    graph = real_data("minesweeper")
    rows, columns = np.divmod(graph.edges, 100)
    assert (abs(np.diff(rows, axis=0)) <= 1).all()
    assert (abs(np.diff(columns, axis=0)) <= 1).all()
    assert [sizes(split) for split in graph.splits] == [(5000, 2500, 2500)] * 10


@pytest.mark.parametrize("name", ["amazon-photo", "coauthor-cs"])
def test_graphs_without_a_published_split_get_ten_that_are_drawn_by_class(real_data, name):
    graph = real_data(name)
    members = np.bincount(graph.y)
    assert len({split.train.tobytes() for split in graph.splits}) == 10
    for seed, split in enumerate(graph.splits):
        assert (split.train == stratified_split(graph.y, seed).train).all()
        assert (split.train ^ split.val ^ split.test).all()
        for mask, share in ((split.train, 0.6), (split.val, 0.2), (split.test, 0.2)):
            assert (abs(np.bincount(graph.y[mask]) - share * members) <= 1).all()


def test_words_of_coauthors_count_once_and_names_are_kept(real_data):
    authors, photo = real_data("coauthor-cs"), real_data("amazon-photo")
    assert alike_in_each_row(authors.X)
    assert (len(set(authors.nodes)), authors.features[-1], authors.classes) == (
        18333,
        "zooming",
        None,
    )
    assert photo.classes[:2] == ("Film Photography", "Digital Cameras")
