"""Which models use edge weights, and what the others say."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from support.fitting import fitting
from support.small_models import build

import gcnii
from gcnii.analysis import Doctor
from gcnii.errors import InputError
from gcnii.nn import MODELS
from gcnii.propagation import feature_matrix, propagation_matrix
from gcnii.train.plan import make_plan
from gcnii.train.presets import MANY
from gcnii.train.task import Task, make_adjacency

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
    assert str(error.value).endswith("leave them out: edge_weights none (--edge-weights none)")
    assert make_plan(name, {"edge_weights": "none"}, graph).recipe.edge_weights == "none"
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
    assert opened.origin.weighted


def payments(graph, sigma=2.0, seed=0):
    """The graph with amounts that tell nothing, a few of them large."""
    amounts = np.random.default_rng(seed).lognormal(sigma=sigma, size=graph.edges.shape[1])
    return replace(graph, weights=amounts, name="payments")


def P_of(graph, **settings):
    return make_adjacency(graph, make_plan("gcnii", settings, graph)).whole.values


@pytest.mark.parametrize("sigma", [0.3, 2.0])
@pytest.mark.parametrize("directed", [False, True])
def test_the_unit_of_weights_does_not_matter(sigma, directed, graph):
    euros = replace(payments(graph, sigma), directed=directed)
    cents = replace(euros, weights=100 * euros.weights)
    for settings in ({}, *({"edge_weights": kind} for kind in ("median", "log", "rank", "none"))):
        torch.testing.assert_close(P_of(cents, **settings), P_of(euros, **settings))
    raw = {"edge_weights": "raw"}
    assert not torch.allclose(P_of(cents, **raw), P_of(euros, **raw), rtol=0.1)


@pytest.mark.parametrize("kind", ["auto", "raw", "median", "log", "rank", "none"])
def test_edges_that_all_weigh_1_count_as_without_weights_to_the_last_bit(kind, graph):
    plain = replace(graph, weights=None)
    ones = replace(graph, weights=np.ones(graph.edges.shape[1]))
    assert torch.equal(P_of(ones, edge_weights=kind), P_of(plain))


def test_skewed_weights_of_your_own_graph_count_by_rank_and_others_by_the_median(graph):
    kinds = [make_plan("gcnii", {}, payments(graph, s)).recipe.edge_weights for s in (0.3, 2)]
    assert kinds == ["median", "rank"]
    assert make_plan("gcnii", {}, replace(graph, weights=None)).recipe.edge_weights == "raw"
    of_catalog = payments(graph)._with_origin("csbm", "csbm")
    assert make_plan("gcnii", {}, of_catalog).recipe.edge_weights == "raw"


def test_a_few_large_payments_do_not_decide():
    rng, n = np.random.default_rng(0), 400
    y = np.arange(n) % 2
    u = rng.integers(n, size=5 * n)  # three payments of four stay within a class
    v = 2 * rng.integers(n // 2, size=5 * n) + (u + (rng.random(5 * n) < 0.25)) % 2
    edges = np.unique(np.sort([u, v], 0), axis=1)
    split = gcnii.Split.of_roles(np.repeat(["train", "val", "test"], [200, 80, 120]))
    shop = gcnii.Graph(X=rng.normal(size=(n, 4)) + 0.3 * y[:, None], edges=edges, y=y)
    shop = payments(replace(shop, splits=(split,)))
    how = {**MANY, "epochs": 60, "seeds": range(3), "device": "cpu"}
    by_rank = gcnii.fit(shop, "gcnii", edge_weights="rank", **how)
    with pytest.warns(UserWarning, match="% of all weight and decide what a node gathers"):
        raw = gcnii.fit(shop, "gcnii", edge_weights="raw", **how)
    assert by_rank.test.mean() > raw.test.mean() + 0.05


def test_a_fit_says_what_it_made_of_skewed_weights_and_what_would_be_safer(graph):
    skewed = payments(graph)
    with pytest.warns(UserWarning, match="payments: the heaviest 1 % .* by the rank of their wei"):
        gcnii.fit(skewed, device="cpu", **SETTINGS)
    with pytest.warns(UserWarning, match=r"rank or log \(--edge-weights rank\) is safer$"):
        gcnii.fit(skewed, device="cpu", edge_weights="median", **SETTINGS)
    gcnii.fit(skewed, device="cpu", edge_weights="rank", **SETTINGS)  # it was asked for


def test_a_bundle_counts_weights_as_it_was_trained(graph, tmp_path):
    result = gcnii.fit(graph, device="cpu", edge_weights="log", **SETTINGS)
    opened = gcnii.open_bundle(result.save(tmp_path / "bundle"))
    assert opened.plan.recipe.edge_weights == "log"
    cents = replace(graph, weights=100 * graph.weights)
    np.testing.assert_allclose(opened.predict_proba(cents), result.predict_proba(graph), rtol=1e-5)


def test_the_doctor_and_new_nodes_count_weights_as_the_training_did(graph):
    euros = payments(graph)
    cents = replace(euros, weights=100 * euros.weights)
    one, other = (Doctor(each, device="cpu").meter.pair_weights for each in (euros, cents))
    torch.testing.assert_close(one, other)
    new = pd.DataFrame({"id": ["new"], **{str(j): [0.5] for j in range(graph.d)}})
    found = []
    for each, paid in ((euros, 3.0), (cents, 300.0)):
        named = replace(each, features=tuple(map(str, range(graph.d))))
        model = gcnii.fit(named, device="cpu", edge_weights="rank", **SETTINGS)
        links = pd.DataFrame({"source": ["new"], "target": ["5"], "weight": [paid]})
        found.append(model.predict_new(new, links, named, "cpu")["probability"][0])
    assert found[0] == pytest.approx(found[1], rel=1e-5)
