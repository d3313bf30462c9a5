"""What scikit-learn does with a classifier."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from gcnii import GCNIIClassifier


def test_cross_validation_cuts_ids_and_leaves_the_graph_whole(graph, classifier):
    assert cross_val_score(classifier(graph), list(graph.nodes), graph.y, cv=3).mean() > 0.8
    assert cross_val_score(classifier(graph), graph.nodes, cv=3).mean() > 0.8


def test_rows_with_unknown_labels_take_part_in_cross_validation(graph, classifier):
    y = np.where(np.arange(graph.n) % 2, graph.y, -1)
    assert cross_val_score(classifier(graph, unknown=-1), graph.nodes, y, cv=3).mean() > 0.7


def test_every_fold_gives_probabilities(rows, classifier):
    predicted = cross_val_predict(classifier(), *rows, cv=3, method="predict_proba")
    assert predicted.shape == (90, 3)


def test_a_grid_search_finds_settings(graph, classifier):
    grid = {"layers": [1, 2], "alpha": [0.1, 0.5]}
    search = GridSearchCV(classifier(graph, epochs=10), grid, cv=2)
    search.fit(np.array(graph.nodes), graph.y)
    assert set(search.best_params_) == {"layers", "alpha"}
    assert search.best_estimator_.graph is graph
    assert search.predict(["a1", "a2"]).shape == (2,)


def test_a_pipeline_scales_rows_first(rows, classifier):
    X, y = rows
    pipeline = make_pipeline(StandardScaler(), classifier(layers=4, width=16))
    assert cross_val_score(pipeline, X * [1, 1, 1, 1e4], y, cv=3).mean() > 0.8


@pytest.mark.parametrize("ensemble", [True, False])
def test_probabilities_can_be_calibrated_by_a_temperature(graph, classifier, ensemble):
    ids, y = np.array(graph.nodes), np.array(["no", "yes"])[graph.y]
    made = CalibratedClassifierCV(
        classifier(graph), method="temperature", cv=2, ensemble=ensemble
    ).fit(ids[:60], y[:60])
    assert log_loss(y[60:], made.predict_proba(ids[60:])) < np.log(2)


def test_a_clone_shares_the_graph_and_copies_the_rest(graph, classifier):
    settings = {"norm": "walk"}
    other = clone(classifier(graph, settings=settings))
    assert other.graph is graph
    assert other.settings == settings
    assert other.settings is not settings


def test_parameters_are_read_and_set(graph):
    made = GCNIIClassifier(graph).set_params(layers=3)
    assert made.get_params()["layers"] == 3
    assert made.get_params()["graph"] is graph


def test_a_trained_classifier_can_be_pickled(graph, classifier):
    made = classifier(graph).fit(graph.nodes[:40], graph.y[:40])
    again = pickle.loads(pickle.dumps(made))
    assert np.array_equal(again.predict_proba(graph.nodes), made.predict_proba(graph.nodes))


def test_several_models_can_be_cloned_searched_and_pickled(graph):
    made = GCNIIClassifier(graph, effort="quick", epochs=2)
    search = GridSearchCV(made, {"epochs": [2]}, cv=2).fit(np.array(graph.nodes), graph.y)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(again.predict_proba(graph.nodes), search.predict_proba(graph.nodes))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_nothing_wrong_with_it():
    quick = GCNIIClassifier(layers=2, width=16, epochs=40, device="cpu")
    check(quick)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_nothing_wrong_with_several_models():
    check(GCNIIClassifier(effort="quick", epochs=5, device="cpu"))


def check(quick):
    results = check_estimator(quick, on_skip=None, on_fail="raise")
    skipped = {one["check_name"] for one in results if one["status"] == "skipped"}
    # Other array libraries are checked only where $SCIPY_ARRAY_API is set.
    assert skipped <= {"check_array_api_input"}
