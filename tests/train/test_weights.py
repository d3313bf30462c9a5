"""Which models use edge weights, and what the others say."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.fitting import fitting
from support.small_models import build

import gcnii
from gcnii.errors import InputError
from gcnii.nn import MODELS
from gcnii.propagation import feature_matrix, propagation_matrix
from gcnii.train.plan import make_plan
from gcnii.train.task import Task

SETTINGS = {"layers": 2, "width": 4, "epochs": 3}
CPU = torch.device("cpu")
PARTLY = {"cluster-gcn"}  # its first layer does not use them


@pytest.fixture(scope="module")
def graph():
    """Neighbours of the same class are joined more strongly."""
    drawn = gcnii.load("csbm", n=90, degree=8, signal=0.5)
    u, v = drawn.edges
    same = drawn.y[u] == drawn.y[v]
    return replace(drawn, weights=np.where(same, 5.0, 0.2), name="pets")


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"mlp"}))
def test_a_card_says_whether_p_s_values_change_the_scores(name, graph):
    if "geometry" in MODELS[name].card.recipe:
        assert not MODELS[name].card.uses_weights
        return
    model = build(name, graph, layers=2)
    X = feature_matrix(graph, dtype=torch.float64)
    P, plain = (
        propagation_matrix(one, dtype=torch.float64)
        for one in (graph, replace(graph, weights=None))
    )
    changed = not torch.allclose(model(P, X), model(plain, X), rtol=1e-9)
    assert changed == MODELS[name].card.uses_weights or name in PARTLY


@pytest.mark.parametrize("name", [name for name in MODELS if not MODELS[name].card.uses_weights])
def test_a_model_that_does_not_use_weights_refuses_them_in_one_sentence(name, graph):
    who = "the neighbours of the geometry " if "geom" in name else f"{name} does not use edge w"
    with pytest.raises(InputError) as error:
        make_plan(name, {}, graph)
    assert str(error.value).startswith(who)
    assert str(error.value).endswith("or dataclasses.replace(graph, weights=None)")
    with pytest.raises(InputError, match=who):
        Task.of(graph, make_plan(name, {}), CPU)
    make_plan(name, {}, replace(graph, weights=None))


def test_a_geometry_has_no_weights_for_any_model(graph):
    with pytest.raises(InputError, match="the neighbours of the geometry isomap have no weights"):
        make_plan("gcnii", {"geometry": "isomap"}, graph)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gcnii", {}),
        ("gcnii", {"batches": "clusters", "clusters": 3}),
        ("gcnii", {"diffusion": "ppr", "top_k": 8}),
        ("gcn", {"drop_edge": 0.5}),
        ("graphsage-mean", {"fanout": (3, 3)}),
        ("vr-gcn-cvd", {}),
        ("mlp", {}),
    ],
)
def test_models_train_on_weighted_graphs_and_predict(name, settings, graph):
    result = gcnii.fit(graph, name, device="cpu", **fitting(name, SETTINGS | settings))
    assert np.isfinite(result.predict_proba(graph)).all()


def test_weights_that_tell_the_classes_help(graph):
    how = {"layers": 4, "width": 16, "epochs": 60, "seeds": [0], "device": "cpu"}
    how |= {"alpha": 0.1, "lam": 0.5}  # edges count for more than features
    plain = replace(graph, weights=None)
    assert gcnii.fit(graph, **how).test[0] > gcnii.fit(plain, **how).test[0] + 0.1


def test_predicting_with_weights_a_model_trained_without_warns_and_the_other_way(graph):
    plain = replace(graph, weights=None)
    for one, other, said in ((graph, plain, "has no edge weights"), (plain, graph, "has edge w")):
        result = gcnii.fit(one, device="cpu", **SETTINGS)
        with pytest.warns(UserWarning, match=f"^pets {said}"):
            result.predict(other)


def test_a_bundle_remembers_whether_its_graph_was_weighted(graph, tmp_path):
    result = gcnii.fit(graph, device="cpu", **SETTINGS)
    opened = gcnii.open_bundle(result.save(tmp_path / "bundle"))
    np.testing.assert_array_equal(opened.predict_proba(graph), result.predict_proba(graph))
    assert opened.graph.weighted
