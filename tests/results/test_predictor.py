"""Which runs predict, and what they answer."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gcnii import data, open_bundle
from gcnii.errors import GraphError, InputError
from gcnii.graph import Graph
from gcnii.results.fit import fit

SMALL = {"layers": 2, "width": 8, "epochs": 5, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    one = data.load("csbm", n=60, degree=6, labels_per_class=5)
    split = one.splits[0]
    swapped = replace(split, train=split.val, val=split.train)
    return replace(one, classes=("köter", "cat"), splits=(split, swapped, split))


@pytest.fixture(scope="module")
def one_split(graph):
    return fit(graph, seeds=range(3), split=1, calibrate="none", **SMALL)


@pytest.fixture(scope="module")
def two_splits(graph):
    """Seeds 0, 3, 1 and 4 on splits 0, 0, 1 and 1."""
    return fit(graph, seeds=[0, 3, 1, 4], calibrate="none", **SMALL)


def test_labels_are_the_names_of_the_classes(graph, one_split, tmp_path):
    labels = open_bundle(one_split.save(tmp_path)).predict(graph, "cpu")
    ids = one_split.predict_ids(graph, "cpu")
    assert set(labels) == {"köter", "cat"}
    assert [graph.classes[i] for i in ids] == labels.tolist()


def test_labels_are_class_ids_if_the_classes_have_no_names(graph):
    nameless = replace(graph, classes=None)
    result = fit(nameless, seeds=[0], **SMALL)
    assert result.predict(nameless, "cpu").dtype == np.int64
    assert np.array_equal(result.predict(nameless, "cpu"), result.predict_ids(nameless, "cpu"))


def test_several_labels_per_node_are_zeros_and_ones_even_if_they_have_names(graph):
    y = np.stack([graph.labels, 1 - graph.labels], 1)
    many = replace(graph, y=y)
    labels = fit(many, seeds=[0], **SMALL).predict(many, "cpu")
    assert labels.shape == (60, 2)
    assert set(np.unique(labels)) <= {0, 1}


def test_runs_on_one_split_predict_by_the_mean_of_their_probabilities(graph, one_split):
    alone = [one_split.alone(i).predict_proba(graph, "cpu") for i in range(3)]
    np.testing.assert_allclose(one_split.predict_proba(graph, "cpu"), np.mean(alone, 0))
    assert not np.allclose(alone[0], alone[1])


def test_without_an_ensemble_the_best_run_predicts_alone(graph, one_split):
    best = one_split.alone(one_split.best).predict_proba(graph, "cpu")
    assert np.array_equal(one_split.predict_proba(graph, "cpu", ensemble=False), best)
    assert one_split.predicting(ensemble=False) == [one_split.best]


def test_runs_on_other_splits_than_that_of_the_best_do_not_predict(graph, two_splits):
    split = two_splits.runs[two_splits.best].split
    mates = [0, 1] if split == 0 else [2, 3]
    assert two_splits.predicting() == mates
    sentence = (
        "the 4 runs were trained on 2 splits, which are never mixed; the mean of 2 runs on "
        f"split {split}, the best by validation, predicts"
    )
    with pytest.warns(UserWarning, match=sentence):
        P = two_splits.predict_proba(graph, "cpu")
    alone = [two_splits.alone(i).predict_proba(graph, "cpu") for i in mates]
    np.testing.assert_allclose(P, np.mean(alone, 0))


def test_of_runs_on_splits_of_their_own_the_best_predicts_with_a_notice(graph):
    result = fit(graph, seeds=range(3), **SMALL)
    seed = result.runs[result.best].seed
    with pytest.warns(UserWarning, match=f"the run of seed {seed} on split {seed}, the best by"):
        P = result.predict_proba(graph, "cpu")
    assert np.array_equal(P, result.predict_proba(graph, "cpu", ensemble=False))  # does not warn


def test_the_embedding_and_the_network_are_those_of_the_best_run(graph, one_split):
    best = one_split.alone(one_split.best)
    assert np.array_equal(one_split.embed(graph, "cpu"), best.embed(graph, "cpu"))
    model, _ = one_split.network(graph, "cpu")
    for name, weight in model.state_dict().items():
        assert np.array_equal(weight, best.weights[name][0])


def test_scores_that_are_not_finite_are_refused(graph, one_split):
    signs = np.sign(one_split.weights["dense.encode.weight"][0][0].numpy())
    huge = Graph(X=np.stack([3e38 * signs] * 3), edges=[[0], [1]], name="huge")
    with pytest.raises(GraphError, match="the scores of 3 nodes of huge are not finite; its feat"):
        one_split.predict(huge, "cpu")
    one = Graph(X=huge.X[:1], edges=[[0], [0]], name="huge")
    with pytest.raises(GraphError, match="the scores of 1 node of huge are not finite; its feat"):
        one_split.predict(one, "cpu")


def test_tables_of_new_nodes_are_shown_the_way(one_split):
    nodes, edges = pd.DataFrame({"id": ["x"]}), pd.DataFrame({"source": [], "target": []})
    for ask in (one_split.predict, one_split.predict_proba):
        with pytest.raises(InputError, match=r"a gcnii.Graph, got DataFrame; .*predict_new\(nodes"):
            ask(nodes, edges)
