"""Rows as a graph, and new rows joined to it."""

import numpy as np
import pytest
import scipy.sparse as sp
from support.each_kind import of_each_kind

from gcnii.errors import InputError
from gcnii.estimator import GCNIIClassifier, NearestRows, refuse_unjoinable
from gcnii.nn import MODELS
from gcnii.propagation import propagation_matrix
from gcnii.train.plan import make_plan, model_defaults

DEFAULTS = GCNIIClassifier().get_params()
LINE = np.array([[0.0], [1.0], [3.0], [7.0]])


def dense(graph):
    return propagation_matrix(graph).to_dense().numpy()


def test_each_row_is_joined_to_its_nearest_others():
    graph = NearestRows.of(LINE, 1).graph(LINE)
    assert graph.edges.tolist() == [[0, 1, 2, 3], [1, 0, 1, 2]]


def test_a_few_rows_are_joined_to_all_others():
    assert NearestRows.of(LINE, 10).graph(LINE).m == 6


def test_distances_are_of_x_as_given_and_features_are_standardised():
    X = np.array([[0.0, 0.0], [0.0, 100.0], [1.0, 0.0]])
    graph = NearestRows.of(X, 1).graph(X)
    assert graph.edges[1].tolist() == [2, 0, 0]
    assert np.allclose(graph.X.mean(0), 0)
    assert np.allclose(graph.X.std(0), 1)


def test_a_new_row_gathers_and_is_not_gathered_from():
    neighbours = NearestRows.of(LINE, 2)
    graph = neighbours.graph(LINE)
    P = dense(neighbours.joined(graph, np.array([[2.9], [0.1]])))
    assert np.array_equal(P[:4, :4], dense(graph))
    assert not P[:4, 4:].any()
    assert np.flatnonzero(P[4]).tolist() == [1, 2, 4]
    assert np.flatnonzero(P[5]).tolist() == [0, 1, 5]


def test_sparse_rows_stay_sparse():
    X = sp.csr_array(LINE)
    neighbours = NearestRows.of(X, 1)
    graph = neighbours.joined(neighbours.graph(X), X[:2])
    assert sp.issparse(graph.X)
    assert graph.n == 6


@of_each_kind("model", [name for name in MODELS if not name.startswith("geom-gcn")])
def test_with_every_model_a_row_has_one_prediction_alone_or_among_others(model, rows, classifier):
    X, y = rows
    sizes = {"layers": 2, "width": 4}
    # A parameter that a model does not have must be left at its default.
    unset = {name: DEFAULTS[name] for name in set(sizes) - set(model_defaults(model))}
    made = classifier(model=model, epochs=2, **sizes | unset).fit(X[:60], y[:60])
    alone = np.concatenate([made.predict_proba(X[i : i + 1]) for i in range(57, 63)])
    assert np.allclose(alone, made.predict_proba(X)[57:63], rtol=0, atol=1e-12)


def test_with_several_models_a_row_has_one_prediction_alone_or_among_others(rows):
    X, y = rows
    made = GCNIIClassifier(effort="quick", epochs=5, device="cpu").fit(X[:60], y[:60])
    answered = {type(member) for member in made.result_.weighty}
    alone = np.concatenate([made.predict_proba(X[i : i + 1]) for i in range(57, 63)])
    assert np.allclose(alone, made.predict_proba(X)[57:63], rtol=0, atol=1e-12)
    assert len(answered) > 1  # networks, and what spreads labels or grows trees


@pytest.mark.parametrize(
    ("model", "settings", "name"),
    [
        ("gcnii", {"direction": "in"}, "direction"),
        ("gcnii", {"diffusion": "ppr"}, "diffusion"),
        ("dropedge-gcn", {"batch_norm": True}, "batch_norm"),
        ("geom-gcn-i", {}, "geometry"),
        ("gcn", {"loops": "none"}, "loops"),
    ],
)
def test_settings_that_would_mix_rows_are_refused(model, settings, name):
    with pytest.raises(InputError, match=f"without a graph, {name} must be"):
        refuse_unjoinable(make_plan(model, settings))
