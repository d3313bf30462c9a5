"""Generated graphs are what their parameters say, and the same every time."""

import hashlib
import re
from functools import cache

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from support.exact import exact_matrix

import gcnii
from gcnii.data import CATALOG, customer_tables, generators, load
from gcnii.errors import DataError
from gcnii.members.known import Known
from gcnii.members.propagation import LabelPropagation
from gcnii.train.plan import combines


def share_of_equal_labels(graph):
    return float((graph.y[graph.edges[0]] == graph.y[graph.edges[1]]).mean())


@cache
def default(name):
    return load(name)


@pytest.mark.parametrize("name", ["digits", "csbm", "customers", "ppi-like"])
def test_the_catalog_counts_the_default_graph(name):
    graph, counts = default(name), CATALOG[name].counts
    assert (graph.n, graph.m, graph.d, graph.k) == (
        counts.nodes,
        counts.edges,
        counts.features,
        counts.classes,
    )


@pytest.mark.parametrize("name", ["digits", "csbm"])
def test_a_graph_is_its_seed(name):
    assert (
        load(name).fingerprint == load(name, seed=0).fingerprint != load(name, seed=1).fingerprint
    )


def test_digits_have_20_labels_per_class():
    graph = load("digits")
    (split,) = graph.splits
    assert np.bincount(graph.y[split.train]).tolist() == [20] * 10
    assert (split.val.sum(), split.test.sum()) == (500, 1000)
    assert graph.classes == tuple("0123456789")


def test_digits_are_those_of_scikit_learn_wherever_it_keeps_them(monkeypatch):
    images, y = load_digits(return_X_y=True)
    graph = load("digits")
    np.testing.assert_array_equal(graph.X * 16, images)
    np.testing.assert_array_equal(graph.y, y)
    monkeypatch.setattr(generators, "SCANNED", "elsewhere.csv.gz")
    assert load("digits").fingerprint == graph.fingerprint


def test_pixels_lie_between_0_and_1():
    graph = load("digits")
    assert (graph.X.min(), graph.X.max(), graph.X.dtype) == (0, 1, np.float32)


@pytest.mark.slow
def test_digits_are_joined_to_their_nearest_either_way():
    graph = load("digits", neighbours=3)
    (u, v), X = graph.edges, graph.X.astype(float)
    distances = ((X[:, None, :8] - X[None, :, :8]) ** 2).sum(2)  # in slices, for memory
    for start in range(8, 64, 8):
        distances += ((X[:, None, start : start + 8] - X[None, :, start : start + 8]) ** 2).sum(2)
    np.fill_diagonal(distances, np.inf)
    third = np.sort(distances, 1)[:, 2]
    assert (distances[u, v] <= np.maximum(third[u], third[v])).all()
    joined = np.zeros((graph.n, graph.n), bool)
    joined[u, v] = joined[v, u] = True
    nearer = distances < third[:, None]
    assert (joined | ~nearer).all()
    assert joined.sum(1).min() >= 3


def test_neighbouring_digits_are_mostly_equal():
    assert share_of_equal_labels(load("digits")) > 0.9


@pytest.mark.parametrize(
    ("homophily", "classes", "degree"), [(0.8, 2, 10), (0.1, 3, 6), (1.0, 4, 4), (0.0, 2, 7.5)]
)
def test_csbm_has_the_degree_and_homophily_asked_for(homophily, classes, degree):
    graph = load("csbm", n=600, homophily=homophily, classes=classes, degree=degree)
    assert 2 * graph.m / graph.n == pytest.approx(degree, abs=0.01)
    assert share_of_equal_labels(graph) == pytest.approx(homophily, abs=0.001)
    assert (graph.edges[0] < graph.edges[1]).all()


def test_csbm_degrees_are_alike_for_all_nodes():
    """Poisson: the variance of the degrees is their mean, whatever the class."""
    graph = load("csbm", n=20_000, classes=3, homophily=0.3)
    degrees = np.bincount(graph.edges.ravel(), minlength=graph.n)
    assert degrees.var() == pytest.approx(10, rel=0.05)
    assert [degrees[graph.y == c].mean() for c in range(3)] == pytest.approx([10] * 3, rel=0.02)


@pytest.mark.parametrize("classes", [2, 5])
def test_csbm_class_means_lie_signal_apart(classes):
    graph = load("csbm", n=40_000, classes=classes, signal=3.0, degree=1)
    means = np.stack([graph.X[graph.y == c].mean(0) for c in range(classes)])
    distances = np.linalg.norm(means[:, None] - means, axis=2)[np.triu_indices(classes, 1)]
    np.testing.assert_allclose(distances, 3, atol=0.1)
    assert (graph.X - means[graph.y]).std() == pytest.approx(1, abs=0.01)


def test_csbm_can_have_more_classes_than_features():
    assert load("csbm", classes=6, features=2).k == 6


def test_csbm_without_signal_has_features_that_tell_nothing():
    graph = load("csbm", n=40_000, signal=0.0, degree=1)
    assert np.abs(graph.X.mean(0)).max() < 0.03


def test_csbm_splits_20_per_class_then_30_percent_then_the_rest():
    graph = load("csbm", classes=4)
    (split,) = graph.splits
    assert np.bincount(graph.y[split.train]).tolist() == [20] * 4
    assert (split.val.sum(), split.test.sum()) == (300, 1000 - 80 - 300)


def test_a_million_edges_are_drawn_in_one_go():
    assert load("csbm", n=100_000, degree=20).m == 1_000_000


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("csbm", {"n": 1}, "n of csbm must be an integer ≥ 2, got 1"),
        ("csbm", {"n": 10.5}, "n of csbm must be an integer ≥ 2, got 10.5"),
        ("csbm", {"n": "500"}, "n of csbm must be an integer ≥ 2, got '500'"),
        ("csbm", {"n": True}, "n of csbm must be an integer ≥ 2, got True"),
        ("csbm", {"classes": 1}, "classes of csbm must be an integer in [2, 1000], got 1"),
        ("csbm", {"homophily": 1.5}, "homophily of csbm must be a number in [0, 1], got 1.5"),
        ("csbm", {"degree": -1}, "degree of csbm must be a number ≥ 0, got -1"),
        (
            "csbm",
            {"signal": float("nan")},
            "signal of csbm must be a number ≥ 0, got nan",
        ),
        ("csbm", {"features": 0}, "features of csbm must be an integer ≥ 1, got 0"),
        ("csbm", {"seed": -1}, "seed of csbm must be an integer ≥ 0, got -1"),
        (
            "csbm",
            {"labels_per_class": 501},
            "labels_per_class of csbm must be an integer in [1, 500], got 501",
        ),
        (
            "csbm",
            {"labels_per_class": 400},
            "csbm of 1000 nodes keeps 300 for validation, but 800 are for training; lower",
        ),
        (
            "csbm",
            {"degree": 600},
            "csbm draws at most half of the 249500 possible edges of a kind, got 240000; lower",
        ),
        (
            "digits",
            {"neighbours": 0},
            "neighbours of digits must be an integer in [1, 1796], got 0",
        ),
        ("digits", {"seed": 0.5}, "seed of digits must be an integer ≥ 0, got 0.5"),
    ],
)
def test_impossible_parameters_are_refused(name, parameters, message):
    with pytest.raises(DataError, match=re.escape(message)):
        load(name, **parameters)


def test_ppi_like_has_ppis_shape():
    graph = default("ppi-like")
    (split,) = graph.splits
    sizes = [len(np.unique(graph.part[role])) for role in (split.train, split.val, split.test)]
    assert sizes == [20, 2, 2]
    assert (graph.part[graph.edges[0]] == graph.part[graph.edges[1]]).all()
    assert 0.3 < graph.labels.mean() < 0.45


def test_ppi_likes_labels_need_the_graph():
    """A linear map of the features does worse than one that also sees the neighbours' mean."""
    graph = load("ppi-like", graphs=6, n=1000, degree=20)
    (split,) = graph.splits
    neighbours = (exact_matrix(graph, norm="mean") @ torch.tensor(graph.X).double()).numpy()

    def f1(*X):
        X = np.column_stack([*X, np.ones(graph.n)])
        W = np.linalg.lstsq(X[split.train], graph.labels[split.train], rcond=None)[0]
        guess, truth = (X @ W > 0.5)[split.test], graph.labels[split.test] == 1
        return 2 * (guess & truth).sum() / (guess.sum() + truth.sum())

    assert f1(graph.X, neighbours) > f1(graph.X) + 0.1


def test_customers_are_the_same_on_every_machine():
    tables = customer_tables()
    cells = tables.nodes.to_csv() + tables.edges.to_csv() + ",".join(tables.truth)
    assert hashlib.sha256(cells.encode()).hexdigest()[:16] == "f3932d0fb26cb08e"


def test_customers_are_tables_of_ones_own(tmp_path):
    nodes, edges, truth = customer_tables()
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    graph = load("customers", offline=True)
    assert load(tmp_path, text="note").fingerprint == graph.fingerprint
    told = np.array(graph.classes)[graph.y[graph.labelled]]
    np.testing.assert_array_equal(told, truth[graph.labelled])
    assert combines(graph, None, "published", ())  # several models, as for a graph of one's own
    assert {column.kind for column in graph.columns} == {"numeric", "categorical", "words"}


def test_customers_take_the_options_of_tables():
    graph = load("customers", drop="note", seed=1)
    assert (graph.d, graph.loaded_with) == (8, {"drop": "note", "seed": 1})
    assert (graph.splits[0].test != load("customers").splits[0].test).any()
    with pytest.raises(DataError, match="the data set 'customers' takes only id, label, "):
        load("customers", n=3)


def test_who_leaves_is_told_by_columns_and_neighbours_together():
    """Of customers without a label; each kind of knowledge alone tells far less."""
    graph, truth = load("customers"), customer_tables().truth
    unknown, split = ~graph.labelled, graph.splits[0]

    def right(answers):
        return (np.asarray(answers) == truth)[unknown].mean()

    network, alone = (
        right(gcnii.fit(graph, model, epochs=60, threads=1).predict(graph))
        for model in ("gcnii", "mlp")
    )
    spread = LabelPropagation.fit(graph, split)(graph, Known.of(graph, split))
    labels = right(np.array(graph.classes)[spread.argmax(1)])
    assert network > 0.83
    assert network > max(alone, labels) + 0.05
