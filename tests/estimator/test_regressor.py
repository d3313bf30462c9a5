"""GCNIIRegressor on a graph and on rows."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator
from support.amounts import diffused

from gcnii import GCNIIRegressor
from gcnii.errors import GraphError, InputError

QUICK = {"layers": 2, "width": 8, "epochs": 40, "device": "cpu"}


@pytest.fixture(scope="module")
def grid():
    made = diffused(side=10, unit=100.0)
    return replace(made, nodes=tuple(f"a{i}" for i in range(made.n)))


@pytest.fixture(scope="module")
def amounts():
    X, y = make_regression(90, 4, noise=1.0, random_state=0)
    return X, y + 1000


def made(graph=None, **how):
    return GCNIIRegressor(graph, **QUICK | how)


def test_nodes_are_predicted_by_their_ids_in_units(grid):
    found = made(grid, epochs=100).fit(grid.nodes[:60], grid.y[:60, 0])
    assert found.predict(grid.nodes[60:]).shape == (40,)
    assert found.score(grid.nodes[60:], grid.y[60:, 0]) > 0.2
    expected = r2_score(grid.y[60:, 0], found.predict(grid.nodes[60:]))
    assert found.score(grid.nodes[60:]) == pytest.approx(expected)


def test_no_number_but_those_given_is_looked_at(grid):
    wrong = replace(grid, y=np.where(np.arange(grid.n)[:, None] < 60, grid.y, 1e6))
    blank = replace(grid, y=None, targets=(), splits=())
    right, *others = (
        made(one, epochs=5).fit(grid.nodes[:60], grid.y[:60, 0]).predict(grid.nodes)
        for one in (grid, wrong, blank)
    )
    assert np.array_equal(others, [right, right])


def test_without_y_the_numbers_of_the_graph_are_used(grid):
    given = made(grid, epochs=5).fit(grid.nodes[:60], grid.y[:60, 0])
    own = made(grid, epochs=5).fit(grid.nodes[:60])
    assert own.graph_.targets == ("heat",)
    assert np.array_equal(own.predict(["a70"]), given.predict(["a70"]))


def test_of_dated_nodes_the_latest_of_those_given_validate(grid):
    dated = replace(grid, splits=(), times=np.arange(grid.n))
    found = made(dated, epochs=2).fit(grid.nodes[:50])
    (split,) = found.graph_.splits
    assert np.flatnonzero(split.val).tolist() == list(range(40, 50))
    assert split.train.sum() == 40


def test_rows_without_a_graph_are_predicted_by_their_neighbours(amounts):
    X, y = amounts
    found = made(width=16, epochs=150, layers=4).fit(X[:60], y[:60])
    assert found.score(X[60:], y[60:]) > 0.3
    assert found.predict(X[60:]).mean() == pytest.approx(1000, abs=50)
    together = found.predict(X[60:])
    assert found.predict(X[60:61])[0] == pytest.approx(together[0])


def test_unknown_numbers_are_in_the_graph_but_not_trained_on(amounts):
    X, y = amounts
    known = np.arange(90) % 3 > 0
    partial = np.where(known, y, np.nan)
    found = made(epochs=5).fit(X, partial)
    assert (found.graph_.n, found.graph_.labelled.sum()) == (90, known.sum())
    assert found.score(X, partial) == found.score(X[known], y[known])
    again = made(epochs=5).fit(
        X, [one if there else None for one, there in zip(y, known, strict=True)]
    )
    assert np.array_equal(again.predict(X), found.predict(X))


def test_several_numbers_are_predicted_at_once(amounts):
    X, y = amounts
    found = made().fit(X, np.column_stack([y, -y]))
    assert found.predict(X).shape == (90, 2)
    assert found.graph_.targets == ("y0", "y1")


def test_it_can_be_cross_validated_cloned_and_pickled(grid):
    found = made(grid, epochs=5)
    assert len(cross_val_score(found, np.array(grid.nodes), grid.y[:, 0], cv=2)) == 2
    fitted = clone(found).fit(grid.nodes[:50])
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(grid.nodes), fitted.predict(grid.nodes))


@pytest.mark.parametrize(
    ("y", "error", "sentence"),
    [
        (["a"] * 100, InputError, "y must hold numbers, NaN or None where unknown: could not"),
        ([np.inf] * 100, GraphError, "y must be finite, or NaN where it is unknown"),
        ([None] * 100, GraphError, "no row has a known number; give at least two"),
        ([1.0, *[None] * 99], GraphError, "1 sample has a known number; give at least two"),
        ([3.0] * 100, GraphError, "all known numbers of y are the same; they must"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(grid, y, error, sentence):
    with pytest.raises(error, match=sentence):
        made(grid).fit(grid.nodes, y)


def test_a_graph_of_classes_has_no_numbers_of_its_own(graph):
    with pytest.raises(InputError, match="has classes, but GCNIIRegressor predicts numbers; give"):
        made(graph).fit(graph.nodes)
    with pytest.raises(InputError, match=r"graph must be a gcnii\.Graph or None, got str"):
        made("grid").fit([0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_nothing_wrong_with_it():
    results = check_estimator(made(width=16), on_skip=None, on_fail="raise")
    skipped = {one["check_name"] for one in results if one["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}
