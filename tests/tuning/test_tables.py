"""On tables as users have them, the portfolio keeps up with what skilled users would try first."""

import numpy as np
import pytest
from support import comparators, knobs
from support.tables import TABLES, bipartite

import gcnii

SMALL = {"churn": 1000, "papers": 600, "fraud": 2500, "bipartite": 600, "no_graph": 1000}
ENOUGH = 300  # seconds, so that what is trained does not depend on how busy the machine is


def compared(table, linear=False, **given):
    """The portfolio's grade less that of the best comparator, and its standard error."""
    graph = table.graph()
    P = gcnii.fit(graph, effort="quick", budget=ENOUGH, device="cpu", **given).predict_proba(graph)
    nodes = np.flatnonzero(comparators.graded_nodes(table, graph))
    found = comparators.fitted(table, graph, linear=linear)
    grades = {name: comparators.grade(table, graph, Q, nodes) for name, Q in found.items()}
    best = max(grades, key=grades.__getitem__)
    difference = comparators.grade(table, graph, P, nodes) - grades[best]
    return difference, comparators.standard_error(table, graph, P, found[best])


@pytest.mark.filterwarnings("ignore:.*heaviest")
@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
def test_it_is_not_behind_logistic_regression_and_boosting_by_more_than_a_standard_error(name):
    difference, error = compared(TABLES[name](SMALL[name]))
    assert difference >= -error


def test_it_uses_a_graph_that_says_more_than_the_columns(monkeypatch):
    monkeypatch.setattr(knobs.ROUNDS, 30)
    difference, error = compared(bipartite(200), linear=True, epochs=30)
    assert difference >= -error
