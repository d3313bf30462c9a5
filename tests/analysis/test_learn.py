"""Models whose filters cannot be measured, or not compared, are refused before any training."""

import pytest

from gcnii.analysis.filters import refuse_filters
from gcnii.data import load
from gcnii.train.plan import make_plan


@pytest.fixture(scope="module")
def graph():
    return load("csbm", n=60, labels_per_class=5)


def test_models_with_the_same_symmetric_matrix_are_accepted(graph):
    refuse_filters(graph, [make_plan(name, {}, graph) for name in ("gcn", "gcnii")])


def test_a_matrix_that_is_not_symmetric_is_refused(graph):
    plan = make_plan("gcn", {"norm": "walk"}, graph)
    with pytest.raises(ValueError, match="gcn's P̃ on csbm is not symmetric"):
        refuse_filters(graph, [plan])


def test_models_with_different_matrices_are_refused(graph):
    plans = [make_plan("gcn", {}, graph), make_plan("gcnii", {"norm": "symmetric+I"}, graph)]
    with pytest.raises(ValueError, match=r"gcn, gcnii have different ones; ask for one model"):
        refuse_filters(graph, plans)
