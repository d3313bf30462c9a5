"""Where one of two classes is rare, average precision decides instead of accuracy."""

from dataclasses import replace

import numpy as np
import pytest

from gcnii import Graph, Split, data
from gcnii.targets.objective import positive_class, rare_class
from gcnii.train.plan import about_rare, make_plan
from gcnii.train.recipe import in_force


def graph_of(y, n=100):
    """A ring whose split has the classes in turns."""
    roles = np.array(["train", "val", "test"])[np.arange(n) // 5 % 3]
    edges, X = np.stack([np.arange(n), (np.arange(n) + 1) % n]), np.ones((n, 1))
    return Graph(X=X, edges=edges, y=y, splits=(Split.of_roles(roles),), classes=("fraud", "usual"))


@pytest.fixture(scope="module")
def rare():
    return graph_of((np.arange(100) % 10 > 0).astype(int))


@pytest.fixture(scope="module")
def common():
    return graph_of((np.arange(100) % 5 > 0).astype(int))


def test_a_class_of_less_than_a_fifth_is_rare_and_the_positive_one(rare, common):
    assert rare_class(rare) == positive_class(rare) == 0
    assert rare_class(common) is None  # just a fifth


def test_average_precision_and_a_threshold_are_the_default_of_any_model(rare, common):
    for model in ("gcnii", "gcn", "mlp"):
        recipe = make_plan(model, {}, rare).recipe
        assert (recipe.scored_by, recipe.label_threshold) == ("ap", "validation")
        assert make_plan(model, {"metric": "auto"}, rare).recipe == recipe
        plain = make_plan(model, {}, common)
        assert {"metric", "label_threshold", "cost", "focal"}.isdisjoint(in_force(plain.settings))


def test_what_is_given_wins(rare):
    def asked(**given):
        recipe = make_plan("gcn", given, rare).recipe
        return recipe.scored_by, recipe.label_threshold

    assert asked(metric="accuracy") == ("accuracy", "half")
    assert asked(metric="auc") == ("auc", "validation")
    assert asked(monitor="val_f1") == ("f1", "validation")
    assert asked(label_threshold="half") == ("ap", "half")


def test_a_graph_of_the_catalog_is_graded_as_it_was(rare):
    csbm = data.load("csbm", n=60)
    y = (np.arange(60) % 10 > 0).astype(int)
    named = replace(csbm, y=y)._with_origin("csbm", "csbm")
    assert rare_class(named) is None
    assert rare_class(named._with_origin("csbm")) is None  # as the portfolio sees it
    assert rare_class(named._with_origin("/tmp/csbm")) == 0


def test_what_validation_cannot_rank_is_graded_by_accuracy(rare):
    split = rare.splits[0]
    alike = replace(rare, splits=(replace(split, val=split.val & (rare.labels == 1)),))
    assert rare_class(alike) is None
    assert make_plan("gcn", {}, alike).recipe.metric == "auto"


def told(graph, **given):
    return about_rare(graph, make_plan("gcn", given, graph).recipe, given)


def test_one_sentence_says_which_class_is_named_and_by_how_many(rare):
    assert "it is named above the probability of its best F1 on validation; 7 nodes" in told(rare)
    assert "and usual is named above the probability of least" in told(
        rare, positive="usual", cost="2:1"
    )


def test_a_rare_class_that_no_validation_node_is_of_is_said(rare):
    split = rare.splits[0]
    alike = replace(rare, splits=(replace(split, val=split.val & (rare.labels == 1)),))
    assert "and of no validation node of a split: accuracy chooses" in told(alike)
