"""Which nodes the page shows: those in doubt, and those that are wrong and sure of it."""

import numpy as np
import pytest
from support.run_pages import a_graph, trained

from gcnii.inference import page
from gcnii.inference.page import cards


@pytest.fixture(scope="module")
def graph():
    return a_graph(unknown=6)


@pytest.fixture(scope="module")
def result(graph):
    return trained(graph)


@pytest.fixture(scope="module")
def shown(result, graph):
    return cards(result, graph, "cpu")


def test_the_least_certain_are_test_or_unlabelled_nodes_with_the_lowest_top_probability(
    shown, result, graph
):
    split = graph.splits[0]
    top = result.predict_proba(graph, "cpu").max(1)
    top[split.train | split.val] = 2
    assert [one.node for one in shown[0]] == np.argsort(top)[:5].tolist()


def test_the_most_surprising_are_wrong_test_nodes_sorted_by_their_probability(shown, result, graph):
    P = result.predict_proba(graph, "cpu")
    guess = P.argmax(1)
    wrong = np.flatnonzero(graph.splits[0].test & (guess != graph.labels))
    expected = sorted(wrong, key=lambda i: -P[i, guess[i]])[:5]
    assert [one.node for one in shown[1]] == expected
    assert all(one.known != one.label for one in shown[1])


def test_a_node_has_its_most_probable_classes_and_an_explanation_of_the_first(shown, result, graph):
    P = result.predict_proba(graph, "cpu")
    for one in (*shown[0], *shown[1]):
        names, chances = zip(*one.chances, strict=True)
        assert chances == pytest.approx(np.sort(P[one.node])[::-1][:3])
        assert names[0] == one.asked == one.explanation.label
        assert len(one.explanation.nodes) <= 3


def test_of_several_labels_the_surest_wrong_one_is_asked_about():
    graph = a_graph(several=True)
    result = trained(graph)
    P = result.predict_proba(graph, "cpu")
    guess, y = result.decide(P), graph.labels
    sure = np.where(guess == 1, P, 1 - P) * (guess != y) * graph.splits[0].test[:, None]
    node, label = np.unravel_index(sure.argmax(), sure.shape)
    first = cards(result, graph, "cpu")[1][0]
    assert (first.node, first.asked) == (node, str(label))
    assert first.chances == ((str(label), pytest.approx(P[node, label])),)


def test_where_explanations_take_long_the_first_of_each_kind_is_explained(
    result, graph, monkeypatch
):
    monkeypatch.setattr(page, "PATIENCE", 0.0)
    for shown in cards(result, graph, "cpu"):
        assert [bool(one.explanation) for one in shown] == [True] + [False] * 4
        assert "take long on this graph" in shown[1].why_not


def test_nodes_of_one_name_say_why_they_are_not_explained():
    graph = a_graph(n=80, names=("twin",))
    graph = type(graph)(
        X=graph.X, edges=graph.edges, y=graph.y, splits=graph.splits, nodes=("twin",) * graph.n
    )
    unsure, _ = cards(trained(graph), graph, "cpu")
    assert "80 nodes of" in unsure[0].why_not
