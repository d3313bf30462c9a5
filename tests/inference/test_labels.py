"""The table of labels."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from gcnii import data, fit
from gcnii.inference import label_table
from gcnii.inference.predict import harmless

SMALL = {"layers": 2, "width": 8, "epochs": 5, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    one = data.load("csbm", n=60, degree=6, labels_per_class=5)
    split, y = one.splits[0], one.labels.copy()
    y[~(split.train | split.val | split.test)] = -1
    unknown = np.flatnonzero(split.test)[:5]
    y[unknown] = -1
    split = replace(split, test=split.test & (y >= 0))
    nodes = tuple(f"00{i}" for i in range(60))
    return replace(one, y=y, splits=(split,), classes=("cat", "dog"), nodes=nodes)


@pytest.fixture(scope="module")
def result(graph):
    return fit(graph, seeds=range(2), **SMALL)


def test_a_row_has_what_is_predicted_and_what_is_known(graph, result):
    table = label_table(result, graph, "cpu")
    assert list(table) == ["node", "label", "probability", "known", "split", "p(cat)", "p(dog)"]
    assert list(table["node"]) == list(graph.nodes)
    assert list(table["label"]) == result.predict(graph, "cpu").tolist()
    chances = table[["p(cat)", "p(dog)"]]
    assert np.array_equal(table["probability"], chances.max(axis=1))
    np.testing.assert_allclose(chances, result.predict_proba(graph, "cpu"), atol=1e-6)
    names = {-1: None, 0: "cat", 1: "dog"}
    assert list(table["known"]) == [names[i] for i in graph.labels]
    assert table["known"].isna().sum() >= 5


def test_the_split_is_that_of_the_runs_that_predict(graph):
    split = graph.splits[0]
    swapped = replace(split, train=split.val, val=split.train)
    twice = replace(graph, splits=(split, swapped))
    table = label_table(fit(twice, seeds=[1], **SMALL), twice, "cpu")
    for role in ("train", "val", "test"):
        assert np.array_equal(table["split"] == role, getattr(swapped, role))
    assert (table["split"].isna() == table["known"].isna()).all()


def test_another_graph_has_no_split_and_its_own_known_labels(graph, result):
    y = np.where(graph.labels >= 0, 1 - graph.labels, -1)
    other = replace(graph, y=y, classes=("wolf", "cat"))
    with pytest.warns(UserWarning, match="the classes 'wolf', which the model was not trained on"):
        table = label_table(result, other, "cpu")
    assert table["split"].isna().all()
    assert set(table["known"]) == {None, "wolf", "cat"}
    assert set(table["label"]) <= {"cat", "dog"}


def test_columns_in_another_order_are_the_same_graph(graph):
    named = replace(graph, features=tuple(f"x{j}" for j in range(graph.d)))
    result = fit(named, seeds=[0], **SMALL)
    turned = replace(named, X=named.X[:, ::-1], features=named.features[::-1])
    table = label_table(result, turned, "cpu")
    assert table.equals(label_table(result, named, "cpu"))
    assert table["split"].notna().any()


def test_nodes_and_classes_without_names_have_numbers(graph):
    bare = replace(graph, nodes=None, classes=None)
    table = label_table(fit(bare, seeds=[0], **SMALL), bare, "cpu")
    assert list(table["node"]) == list(range(60))
    assert list(table)[-2:] == ["p(0)", "p(1)"]
    assert set(table["known"]) == {None, "0", "1"}


def test_several_labels_are_joined_by_semicolons_and_read_back_as_csv(graph):
    names = ("a", 'b;"c', "d e")
    y = np.stack([np.ones(60, int), np.ones(60, int), np.zeros(60, int)], 1)
    y[graph.labels < 0] = -1
    many = replace(graph, y=y, classes=names)
    table = label_table(fit(many, seeds=[0], **SMALL | {"epochs": 60}), many, "cpu")
    assert list(table) == ["node", "label", "known", "split", *(f"p({name})" for name in names)]
    assert set(table["known"]) == {None, 'a;"b;""c"'}
    assert next(csv.reader(["".join(table["label"][:1])], delimiter=";")) == ["a", 'b;"c']


def test_a_node_known_to_have_no_label_is_not_unknown(graph):
    y = np.zeros((60, 2), int)
    y[graph.labels < 0] = -1
    y[0] = 1
    many = replace(graph, y=y)
    known = label_table(fit(many, seeds=[0], **SMALL), many, "cpu")["known"]
    assert set(known) == {None, "", "cat;dog"}


def test_nodes_without_links_in_another_graph_are_answered_by_their_features(graph, result):
    linked = set(graph.edges.ravel())
    node = min(linked)
    other = replace(graph, edges=graph.edges[:, (graph.edges != node).all(0)])
    with pytest.warns(UserWarning, match="no edges, unlike the nodes that the model was trained"):
        table = label_table(result, other, "cpu")
    assert table["basis"][node] == "features"
    elsewhere = replace(result, trained_on=None, origin=replace(result.origin, source=""))
    with pytest.warns(UserWarning, match="is not there; take the model's answer for a guess"):
        table = label_table(elsewhere, other, "cpu")
    assert table["basis"][node] == "guess"
    np.testing.assert_allclose(
        table[["p(cat)", "p(dog)"]], result.predict_proba(other, "cpu"), atol=1e-6
    )


def test_a_class_may_have_a_name_that_is_not_utf8(graph):
    odd = replace(graph, classes=("cat", "\ud800"))
    table = label_table(fit(odd, seeds=[0], **SMALL), odd, "cpu")
    assert list(table)[-2:] == ["p(cat)", "p(\ud800)"]
    assert list(harmless(table)[0]) == list(table)
