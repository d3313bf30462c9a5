"""Training over edges of several types: learned shares, and what cannot use them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import gcnii
from gcnii.errors import GraphError, InputError
from gcnii.graph import Graph
from gcnii.nn import MODELS
from gcnii.train.plan import make_plan
from gcnii.train.presets import PORTFOLIO, portfolio

ABLE = ("gcnii", "gcnii-star", "gcnii-plus", "gcn", "appnp", "graphsage-mean")
FEW = {"epochs": 4, "verbose": False, "batches": "full"}


def typed(types: int = 2, n: int = 120, seed: int = 0) -> Graph:
    """Edges of the first type join alike nodes, those of the second any."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % 2
    alike = random.integers(0, n // 2, (2, 3 * n)) * 2 + random.integers(0, 2, 3 * n)
    edges = np.concatenate([alike, random.integers(0, n, (2, 6 * n))], 1)
    kinds = np.repeat([0, 1], [3 * n, 6 * n]) % types
    X = y[:, None] + 4 * random.normal(size=(n, 4))
    roles = random.choice(["train", "val", "test"], n)
    split = gcnii.Split.of_roles(roles)
    names = ("alike", "any")[:types]
    return Graph(X=X, edges=edges, y=y, splits=(split,), edge_types=kinds, edge_type_names=names)


@pytest.mark.parametrize("model", ABLE)
def test_with_one_type_losses_are_those_without_types_to_the_last_bit(model):
    one = typed(types=1)
    plain = replace(one, edge_types=None, edge_type_names=None)
    runs = [gcnii.fit(graph, model, seeds=[3], **FEW).runs[0] for graph in (one, plain)]
    assert runs[0].curve == runs[1].curve


@pytest.mark.parametrize("model", ABLE)
def test_a_run_over_types_is_the_same_alone_or_beside_another(model):
    both = gcnii.fit(typed(), model, seeds=[0, 1], batch=2, **FEW)
    alone = gcnii.fit(typed(), model, seeds=[1], **FEW)
    assert both.runs[1].val_loss == pytest.approx(alone.runs[0].val_loss, rel=1e-5)


@pytest.mark.filterwarnings("ignore:the run of seed")
def test_a_model_learns_which_type_joins_alike_nodes():
    graph, settings = typed(n=300), {"layers": 2, "epochs": 80, "verbose": False}
    used = gcnii.fit(graph, "gcnii", seeds=range(3), **settings)
    alike = gcnii.fit(graph, "gcnii", seeds=range(3), edge_types="ignore", **settings)
    assert all((w[:, 0] > w[:, 1]).all() for name, w in used.weights.items() if "types" in name)
    assert used.test.mean() > alike.test.mean()


def test_layers_computed_again_have_the_same_losses():
    runs = [
        gcnii.fit(typed(), "gcnii", seeds=[0], layers=6, epochs=5, memory=memory, verbose=False)
        for memory in ("keep", "recompute")
    ]
    assert runs[0].runs[0].val_loss == runs[1].runs[0].val_loss


def test_dropped_edges_and_views_work_over_types():
    settings = {"layers": 2, "epochs": 3, "drop_edge": 0.3, "views": 2, "verbose": False}
    result = gcnii.fit(typed(), "gcnii", seeds=[0, 1], batch=2, **settings)
    assert np.isfinite([run.val_loss for run in result.runs]).all()


def test_a_bundle_keeps_the_names_of_types_and_matches_them(tmp_path):
    graph = typed()
    result = gcnii.fit(graph, "gcnii", layers=2, seeds=[0], **FEW)
    opened = gcnii.open_bundle(result.save(tmp_path / "bundle"))
    other = replace(graph, edge_types=1 - graph.edge_types, edge_type_names=("any", "alike"))
    assert np.array_equal(opened.predict_proba(other), result.predict_proba(graph))


@pytest.mark.parametrize(("kinds", "given"), [("ab", "a"), ("a", "ab")])
@pytest.mark.filterwarnings("ignore:.* types of edges")
def test_a_table_with_other_types_is_encoded_as_that_of_the_training(kinds, given):
    random, n = np.random.default_rng(0), 60
    nodes = pd.DataFrame({"id": range(n), "x": random.normal(size=n), "label": list("uv") * 30})
    nodes.loc[:5, "x"] = np.nan
    ends = {"source": random.integers(0, n, 90), "target": random.integers(0, n, 90)}

    def graph(kinds, x=0.0):
        types = [kinds[i % len(kinds)] for i in range(90)]
        edges = pd.DataFrame({**ends, "type": types})
        return gcnii.from_frames(nodes.assign(x=nodes.x + x), edges)

    result = gcnii.fit(graph(kinds), "gcnii", layers=2, seeds=[0], **FEW)
    other = graph(given, x=100.0)
    X, _ = result.origin.columns.encode(other.table, "as in training")
    expected = result.predict_proba(replace(other, X=X))
    np.testing.assert_array_equal(result.predict_proba(other), expected)


@pytest.mark.parametrize("model", ["gcnii", "mlp"])
def test_a_model_that_takes_all_edges_alike_needs_no_types(model):
    result = gcnii.fit(typed(), model, edge_types="ignore", seeds=[0], **FEW)
    plain = replace(typed(), edge_types=None, edge_type_names=None)
    renamed = replace(typed(), edge_type_names=("some", "other"))
    expected = result.predict_proba(typed())
    for other in (plain, renamed):
        assert np.array_equal(result.predict_proba(other), expected)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"edge_type_names": ("alike", "some")}, "the type 'some', unlike the training graph,"),
        ({"edge_types": None, "edge_type_names": None}, "have no types, but those of the training"),
    ],
)
def test_another_graph_needs_the_types_of_the_training(changes, error):
    graph = typed()
    result = gcnii.fit(graph, "gcnii", layers=2, seeds=[0], **FEW)
    with pytest.raises(GraphError, match=error):
        result.predict(replace(graph, **changes))


def test_a_model_of_one_type_takes_the_edges_of_another_graph_alike():
    plain = replace(typed(), edge_types=None, edge_type_names=None)
    result = gcnii.fit(plain, "gcnii", layers=2, seeds=[0], **FEW)
    with pytest.warns(UserWarning, match="has types of edges, but the training graph had n"):
        found = result.predict_proba(typed())
    assert np.array_equal(found, result.predict_proba(plain))


@pytest.mark.parametrize("name", [name for name in MODELS if not MODELS[name].uses_types])
def test_models_that_cannot_use_types_refuse_them(name):
    with pytest.raises(InputError, match="have no types; take a model that uses them, such as gc"):
        make_plan(name, {}, typed())
    assert make_plan(name, {"edge_types": "ignore"}, typed()).types == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"geometry": "isomap", "loops": "keep"},
        {"diffusion": "ppr", "loops": "keep"},
        {"batches": "neighbours"},
    ],
)
def test_what_has_no_types_refuses_them(settings):
    model = "graphsage-mean" if "batches" in settings else "gcnii"
    with pytest.raises(InputError, match="have no types; take a model that uses them"):
        make_plan(model, settings, typed())


def test_a_portfolio_has_members_that_use_types():
    points = portfolio(typed())
    assert {one.name for one in PORTFOLIO} - {one.name for one in points} >= {"gat"}
    assert all(MODELS[point.model].uses_types for point in points)


def test_a_setting_of_an_older_run_is_not_in_its_key():
    plain = gcnii.load("csbm", n=60)
    assert "edge_types" not in str(make_plan("gcnii", {}, plain).identity(plain.fingerprint))


def test_a_module_without_weights_of_types_refuses_a_matrix_with_types():
    graph = typed()
    P = gcnii.propagation_matrix(graph)
    net = gcnii.nn.GCNII(graph.d, graph.k, layers=2, width=4)
    with pytest.raises(InputError, match="P has 2 types of edges, and the model weights of 1"):
        net(P, gcnii.feature_matrix(graph))
    with pytest.raises(InputError, match="the model has weights of 2 types of edges, but P is of"):
        net.over_types(2)(P.mixed(torch.zeros(2)), gcnii.feature_matrix(graph))
