"""Graphs without published settings have the portfolio; a model that is named has its best point.

Every other graph is trained as was published.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import gcnii
from gcnii.data.catalog import CATALOG
from gcnii.nn import MODELS
from gcnii.train import presets
from gcnii.train.plan import chosen_model, make_plan, model_defaults, source_of_model
from gcnii.train.presets import (
    FAMILY,
    LONGEST,
    MOST_NODES,
    OURS,
    PORTFOLIO,
    SOME,
    first_point,
    portfolio,
    preset,
    presets_of,
    uses_own_default,
)
from gcnii.train.recipe import RECIPE_FIELDS, Recipe

DOWNLOADED = (
    "film",
    "squirrel",
    "chameleon-filtered",
    "minesweeper",
    "amazon-photo",
    "coauthor-cs",
)
WITHOUT = {*DOWNLOADED, "customers"}
SHARED = {"scale": "length", "epochs": 500, "patience": 60, "monitor": "val_score_loss"}
POINTED = sorted({point.model for point in PORTFOLIO})


def graph(X, y=None, train=0.6):
    n = len(X) if isinstance(X, np.ndarray) else X.shape[0]
    y = np.arange(n) % 2 if y is None else y
    roles = np.full(n, "train", object)
    roles[int(train * n) :: 2], roles[int(train * n) + 1 :: 2] = "val", "test"
    edges = np.stack([np.arange(n - 1), np.arange(1, n)])
    return gcnii.Graph(X=X, edges=edges, y=y, splits=(gcnii.Split.of_roles(roles),))


def counts(n=40, d=80, share=0.1):
    rng = np.random.default_rng(0)
    return (rng.random((n, d)) < share) * rng.integers(1, 4, (n, d)).astype(np.float32)


def names(graph):
    return [point.name for point in portfolio(graph)]


def test_every_point_can_be_trained_and_has_a_name_of_its_own():
    every = [point.name for point in PORTFOLIO]
    assert len(set(every)) == len(every)
    for point in PORTFOLIO:
        settings = make_plan(point.model, point.settings, told_by_in_links()).settings
        assert settings == settings | {"direction": "both"} | point.settings


def test_no_setting_of_a_model_s_first_point_shows_through_another():
    for point in PORTFOLIO:
        assert first_point(point.model).settings.keys() <= point.settings.keys()


def test_points_of_one_direction_are_for_directed_graphs():
    directed = told_by_in_links()
    assert names(directed) == [point.name for point in PORTFOLIO]
    left_out = set(names(directed)) - set(names(replace(directed, directed=False)))
    assert left_out == {"plus-out", "product-out"}


def test_models_that_cannot_use_edge_weights_are_left_out_of_a_weighted_graph():
    directed = told_by_in_links()
    weighted = replace(directed, weights=np.full(directed.edges.shape[1], 2.0))
    assert set(names(directed)) - set(names(weighted)) == {"gat"}
    for point in portfolio(weighted):
        make_plan(point.model, point.settings, weighted)


@pytest.mark.parametrize("model", POINTED)
def test_a_model_that_is_named_has_its_first_point_and_the_shared_settings(model):
    default = SHARED | first_point(model).settings | {"longest": LONGEST}
    default |= {"batches": "full"} if model == "graphsage-mean" else {}
    settings = make_plan(model, {}, graph(counts())).settings
    assert settings == make_plan(model, {}).settings | default


@pytest.mark.parametrize("model", FAMILY)
def test_the_variants_of_gcnii_have_its_settings(model):
    settings = make_plan(model, {}, graph(counts())).settings
    assert settings == make_plan("gcnii", {}, graph(counts())).settings
    assert SOME.items() <= settings.items()


def test_without_a_name_the_model_is_gcnii_and_sources_say_so():
    drawn = told_by_in_links()
    assert (chosen_model(None, drawn), source_of_model(None)) == ("gcnii", "default")
    assert (chosen_model("gcn", drawn), source_of_model("gcn")) == ("gcn", "given")
    sources = make_plan("gcnii-plus", {"lr": 0.02}, drawn).sources
    assert sources["lr"] == "given"
    assert sources["residual"] == "point plus-features of the portfolio"
    assert sources["direction"] == "default for graphs without published settings"


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("X", "scale"),
    [
        (counts(), "length"),
        (counts(share=0.45), "length"),
        (counts(share=0.6), "standard"),
        (-counts(), "standard"),
        (np.column_stack([counts(), np.full(40, 50_000, np.float32)]), "standard"),  # an income
        (np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32), "standard"),
    ],
    ids=["words", "many words", "dense", "negative", "a large column", "numbers"],
)
def test_features_like_word_counts_are_scaled_by_length_and_others_by_column(X, scale, store):
    assert make_plan("gcnii", {}, graph(store(X))).recipe.scale == scale


def test_several_labels_per_node_get_thresholds_from_validation_and_stop_by_the_loss():
    y = np.random.default_rng(0).integers(0, 2, (40, 3))
    recipe = make_plan("gcnii", {}, graph(counts(), y)).recipe
    assert (recipe.label_threshold, recipe.monitor) == ("validation", "val_loss")
    assert make_plan("sgc", {}, graph(counts(), y)).recipe.label_threshold == "validation"
    recipe = make_plan("gcnii", {}, graph(counts())).recipe
    assert (recipe.label_threshold, recipe.monitor) == ("half", "val_score_loss")


def test_what_is_given_wins_over_the_default():
    given = {"layers": 3, "alpha": 0.7, "scale": "none", "epochs": 7, "monitor": "val_loss"}
    settings = make_plan("gcnii", given, graph(counts())).settings
    assert given.items() <= settings.items()
    assert settings["patience"] == 60


@pytest.mark.parametrize("model", sorted(set(MODELS) - {*POINTED, *FAMILY}))
def test_a_model_without_a_point_keeps_its_card_s_stopping_and_batches(model):
    card, settings = make_plan(model, {}).settings, make_plan(model, {}, graph(counts())).settings
    assert settings == card | {"scale": "length"}


def test_graphsage_sees_the_full_graph_unless_it_is_large_or_sampling_is_set(monkeypatch):
    def batches(given=()):
        return make_plan("graphsage-mean", dict(given), graph(counts())).recipe.batches

    assert batches() == "full"
    assert batches({"fanout": (5, 5)}) == "neighbours"
    assert MOST_NODES == 200_000
    monkeypatch.setattr(presets, "MOST_NODES", 39)
    assert batches() == "neighbours"


def test_tables_and_downloaded_graphs_without_published_settings_have_the_default():
    assert {name for name in CATALOG if uses_own_default(name)} == WITHOUT
    assert uses_own_default("")
    assert not any(presets_of(name) for name in WITHOUT)


@pytest.mark.parametrize("name", sorted(set(CATALOG) - WITHOUT))
def test_published_presets_and_generated_graphs_are_planned_as_before(name):
    known = graph(counts())._with_origin("", name)
    for model in set(MODELS) - set(OURS):
        merged = MODELS[model].card.recipe | preset(name, model)
        recipe = Recipe(**{field: merged[field] for field in RECIPE_FIELDS if field in merged})
        plan = make_plan(model, {}, known)
        assert plan.recipe == recipe
        own = {key: merged.get(key, value) for key, value in model_defaults(model).items()}
        assert dict(plan.model_settings) == own


@pytest.mark.parametrize("name", ["", "cora", "chameleon", "digits"])
def test_gcnii_plus_has_its_first_point_on_every_graph(name):
    plain = graph(counts(), np.repeat([0, 1], 20))
    plus = make_plan("gcnii-plus", {}, plain._with_origin("", name)).settings
    assert (first_point("gcnii-plus").settings | SHARED).items() <= plus.items()
    assert plus["longest"] == (0 if name else LONGEST)


def test_the_catalog_s_graphs_without_presets_are_planned_like_one_s_own():
    plain = told_by_in_links()
    mine = make_plan("gcnii", {}, plain)
    assert mine.recipe.longest == LONGEST
    alike = replace(mine, recipe=replace(mine.recipe, longest=0))
    for name in WITHOUT:
        assert make_plan("gcnii", {}, plain._with_origin("", name)) == alike


def test_defaults_of_classes_and_of_the_recipe_stay():
    plan = make_plan("gcnii", {})
    assert plan.model_settings["layers"] == 64
    assert (plan.recipe.epochs, plan.recipe.patience, plan.recipe.scale) == (1500, 100, "none")


def told_by_in_links(n=60, seed=0):
    """Nodes with telling features point to nodes of their class, which have others."""
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(2), n)
    X = rng.normal(size=(2 * n, 4))
    X[:n, 0] += 4 * (2 * y[:n] - 1)
    told = np.repeat(np.arange(n, 2 * n), 3)
    own = [rng.choice(np.flatnonzero(y[:n] == y[v])) for v in told]
    roles = np.array([None] * n + ["train", "train", "val", "val", "test", "test"] * (n // 6))
    split = gcnii.Split.of_roles(roles)
    return gcnii.Graph(X=X, edges=[own, told], y=y, splits=(split,), directed=True, name="web")


def test_a_directed_graph_of_your_own_needs_both_ways():
    graph = told_by_in_links()
    how = {"seeds": range(3), "epochs": 60, "device": "cpu"}
    assert gcnii.fit(graph, "gcnii", **how).test.mean() > 0.9
    assert gcnii.fit(graph, "gcnii", direction="out", **how).test.mean() < 0.7


@pytest.mark.parametrize("model", ["gcnii", "gcn", "gat", "jknet"])
def test_only_directed_graphs_without_published_settings_are_gathered_over_both_ways(model):
    graph = told_by_in_links()
    assert make_plan(model, {}, graph).recipe.direction == "both"
    assert make_plan(model, {"direction": "in"}, graph).recipe.direction == "in"
    assert make_plan(model, {}, replace(graph, directed=False)).recipe.direction == "out"
    for name, both in (("squirrel", True), ("chameleon", False)):
        of_catalog = graph._with_origin(name, name)
        assert (make_plan(model, {}, of_catalog).recipe.direction == "both") == both
