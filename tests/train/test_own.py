"""A graph without published settings gets the measured default; every other graph is as before."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import cohen_kappa_score

import gcnii
from gcnii.data.catalog import CATALOG
from gcnii.nn import MODELS
from gcnii.train import own as traits_module
from gcnii.train.own import (
    ASSUMED,
    CHOSEN,
    DEFAULTS,
    FAMILY,
    FEWEST,
    LONGEST,
    LOW,
    MEASURED_BASELINES,
    MOST_NODES,
    OURS,
    Traits,
    agreement,
    homophily_of,
    kind_of,
    own_default,
    own_model,
    range_of,
    shared,
)
from gcnii.train.plan import make_plan, model_defaults
from gcnii.train.presets import preset, presets_of, uses_own_default
from gcnii.train.recipe import RECIPE_FIELDS, Recipe

WITHOUT = {"film", "squirrel", "chameleon-filtered", "minesweeper", "amazon-photo", "coauthor-cs"}
WORDS = Traits(n=100, d=50, train=20, sparse=True, multilabel=False)


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


def linked(edges, y, roles="train", **how):
    """A graph of these edges and labels; `roles` is one word for all nodes, or a list."""
    n = len(y)
    roles = np.array([roles] * n if isinstance(roles, str) else roles, object)
    more = np.array(["val", "test"], object)  # two nodes without edges
    split = gcnii.Split.of_roles(np.concatenate([roles, more]))
    y = np.concatenate([y, y[:2]])
    return gcnii.Graph(X=counts(n + 2), edges=np.array(edges).T, y=y, splits=(split,), **how)


def ring(n=24):
    return [(i, (i + 1) % n) for i in range(n)]


@pytest.mark.parametrize(
    ("rho", "index"), [(0, 0), (0.999, 0), (1, 1), (29.9, 1), (30, 2), (700, 2)]
)
def test_the_bounds_of_rho_belong_to_the_range_above(rho, index):
    traits = replace(WORDS, d=1000, train=int(1000 * rho))
    assert range_of(traits) == index
    for model in FAMILY:
        assert own_default(model, traits) == shared(traits) | CHOSEN[index]


@pytest.mark.parametrize(
    ("rho", "homophily", "index"),
    [
        *[(0.5, LOW - 0.0001, 1), (0.5, LOW, 0), (0.5, -0.0, 0), (0.5, 1, 0), (0, -1, 1)],
        *[(1, -1, 1), (29, -1, 1), (30, -1, 2), (30, 1, 2)],
    ],
)
def test_low_homophily_moves_only_graphs_with_few_training_nodes(rho, homophily, index):
    traits = replace(WORDS, d=1000, train=int(1000 * rho), homophily=homophily)
    assert range_of(traits) == index
    assert own_default("gcnii", traits) == shared(traits) | CHOSEN[index]


@pytest.mark.parametrize(
    ("homophily", "links", "features", "kind"),
    [
        *[(0.1, 0.45, 0.0, 3), (0.1, 0.0, 0.45, 4), (0.1, 0.6, 0.5, 3), (-0.3, 0.5, 0.6, 4)],
        *[(0.1, 0.44, 0.44, 0), (0.2, 0.9, 0.9, 0), (-0.1, 0.1, 0.1, 1)],
    ],
)
def test_where_linked_nodes_are_unlike_links_or_features_may_tell(homophily, links, features, kind):
    given = {"homophily": homophily, "links": links, "features": features}
    traits = replace(WORDS, d=1000, train=500, **given)
    assert kind_of(traits) == kind
    assert own_model(traits) == ("gcnii" if kind < 3 else "gcnii-plus")
    assert DEFAULTS[kind].settings.items() <= own_default("gcnii-plus", traits).items()
    assert own_default("gcnii", traits) == shared(traits) | CHOSEN[range_of(traits)]


def test_nodes_agree_as_cohen_s_kappa_of_them_and_their_nearest():
    rows = sp.csr_array([[1, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 0], [0, 0, 3, 1], [0, 0, 0, 0.0]])
    assert agreement(rows, np.array([0, 0, 1, 1, 0])) == 0.8  # the last has nothing in common
    assert agreement(rows, np.array([0, 1, 0, 1, 0])) == -0.8
    assert agreement(rows, np.zeros(5, int)) == 0
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 3)), rng.integers(0, 3, 40)
    cosine = X @ X.T / np.outer(*[np.linalg.norm(X, axis=1)] * 2) - 2 * np.eye(40)
    expected = cohen_kappa_score(y, y[cosine.argmax(1)])
    assert agreement(sp.csr_array(X), y) == pytest.approx(expected, abs=5e-5)


def test_naming_the_largest_class_is_no_agreement():
    y = np.array([0] * 95 + [1] * 5)  # of one feature, all cosines are alike
    assert agreement(sp.csr_array(np.ones((100, 1))), y) == 0


def test_a_graph_whose_links_tell_is_trained_with_gcnii_plus_unless_a_model_is_given():
    # 60 nodes link to one of two hubs by their class; the hubs' classes alternate.
    y = np.array([0, 1] * 30 + [1, 0])
    edges = [(i, 60 + y[i]) for i in range(60)]
    found = linked(edges, y, directed=True)
    assert Traits.of(linked([(i, 40 + y[i]) for i in range(40)], y[-42:])).links == 0  # too few
    traits = Traits.of(found)
    assert (traits.homophily < 0.2, traits.links > 0.8) == (True, True)
    short = {"epochs": 2, "verbose": False, "seeds": [0]}
    result = gcnii.fit(found, **short)
    assert (result.plan.model, result.plan.settings["product_first"]) == ("gcnii-plus", True)
    assert gcnii.fit(found, "gcnii", **short).plan.model == "gcnii"


def test_homophily_is_that_of_edges_between_training_nodes():
    y = np.array([0, 0, 0, 1, 2, 1] * 4)
    # Duplicates, the other direction and self-loops count for nothing.
    edges = [*ring(), (1, 0), (0, 1), (5, 5), (2, 2)]
    h = np.mean([y[u] == y[v] for u, v in ring()])
    p = np.array([1 / 2, 1 / 3, 1 / 6])  # each node is the end of two edges
    assert h == 1 / 3
    expected = (h - (p**2).sum()) / (1 - (p**2).sum())
    for directed in (False, True):
        found = homophily_of(linked(edges, y, directed=directed))
        assert found == pytest.approx(expected, abs=5e-5)
    assert Traits.of(linked(edges, y)).homophily == found


def test_homophily_of_equal_and_of_alternating_labels_is_1_and_minus_1():
    halves = [*zip(range(0, 22), range(2, 24), strict=True)]
    assert homophily_of(linked(halves, np.arange(24) % 2)) == 1
    assert homophily_of(linked(ring(), np.arange(24) % 2)) == -1


def test_too_few_edges_one_label_several_labels_or_no_split_are_taken_as_homophilous():
    y = np.arange(24) % 2
    assert homophily_of(linked(ring()[:FEWEST], y)) == -1
    assert homophily_of(linked(ring()[: FEWEST - 1], y)) == ASSUMED == 1
    assert homophily_of(linked([*ring()[: FEWEST - 1], (1, 0), (3, 3)], y)) == ASSUMED
    assert homophily_of(linked(ring(), np.zeros(24, int))) == ASSUMED
    assert homophily_of(linked(ring(), np.stack([y, 1 - y], 1))) == ASSUMED
    assert homophily_of(replace(linked(ring(), y), splits=())) == ASSUMED


def test_labels_of_nodes_that_are_not_trained_on_change_nothing():
    random = np.random.default_rng(0)
    n, y = 300, random.integers(0, 3, 300)
    roles = random.choice(["train", "val", "test", "none"], n)
    known = linked(random.integers(0, n, (2000, 2)), y, roles)
    others = np.flatnonzero(~known.splits[0].train)
    first, traits = Traits.of(known), set()
    for _ in range(5):
        labels = known.labels.copy()
        labels[others] = random.permutation(labels[others])
        traits.add(Traits.of(replace(known, y=labels)))
    assert traits == {first}
    assert first.homophily != ASSUMED
    labels = known.labels.copy()
    labels[known.splits[0].train] = random.permutation(labels[known.splits[0].train])
    assert Traits.of(replace(known, y=labels)) != first


def test_a_heterophilous_graph_of_one_s_own_keeps_half_of_its_own_features():
    alternating, halves = np.arange(24) % 2, np.arange(24) // 12
    for model in FAMILY:
        settings = make_plan(model, {}, linked(ring(), alternating)).settings
        assert (settings["alpha"], settings["decay_conv"]) == (0.5, 1e-4)
        settings = make_plan(model, {}, linked(ring(), halves)).settings
        assert (settings["alpha"], settings["decay_conv"]) == (0.1, 0.01)


def test_traits_count_the_training_nodes_of_the_first_split():
    found = Traits.of(graph(counts(), train=0.5))
    # 19 edges between training nodes
    assert found == Traits(n=40, d=80, train=20, sparse=True, multilabel=False, homophily=1)
    assert found.rho == 0.25


def test_without_splits_60_percent_of_the_labelled_nodes_count():
    y = np.array([0, 1] * 10 + [-1] * 20)
    bare = gcnii.Graph(X=counts(), edges=np.zeros((2, 0), int), y=y)
    assert Traits.of(bare).train == 12


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


@pytest.mark.parametrize("model", MEASURED_BASELINES)
def test_baselines_keep_their_own_numbers_but_for_scale_and_stopping(model):
    default = own_default(model, WORDS)
    assert default.keys() <= {"scale", "epochs", "patience", "monitor", "batches"}
    settings = make_plan(model, {}, graph(counts())).settings
    assert settings == make_plan(model, {}).settings | default | {"longest": LONGEST}


@pytest.mark.parametrize("model", sorted(set(MODELS) - {*MEASURED_BASELINES, *FAMILY, *OURS}))
def test_a_model_that_was_not_measured_keeps_its_card_s_stopping_and_batches(model):
    card, settings = make_plan(model, {}).settings, make_plan(model, {}, graph(counts())).settings
    assert settings == card | {"scale": "length"}


def test_graphsage_sees_the_full_graph_unless_it_is_large_or_sampling_is_set():
    def batches(given=(), **traits):
        return own_default("graphsage-mean", replace(WORDS, **traits), given).get("batches")

    assert batches(n=MOST_NODES) == "full"
    assert batches(n=MOST_NODES + 1) is None
    assert batches(given={"fanout": (5, 5)}) is None
    recipe = make_plan("graphsage-mean", {"fanout": (5, 5)}, graph(counts())).recipe
    assert (recipe.batches, recipe.fanout) == ("neighbours", (5, 5))


def test_only_downloaded_graphs_without_published_settings_have_the_default():
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
def test_gcnii_plus_has_gcnii_s_default_on_every_graph(name):
    plain = graph(counts(), np.repeat([0, 1], 20))
    plus = make_plan("gcnii-plus", {}, plain._with_origin("", name)).settings
    gcnii = make_plan("gcnii", {}, plain).settings
    gcnii["longest"] = 0 if name else LONGEST  # a graph of the catalog stops as it was measured
    assert {key: plus[key] for key in gcnii} == gcnii
    assert plus["input_dropout"] == gcnii["dropout"]
    assert (plus["product_first"], plus["row_norm"], plus["head"]) == (False, "none", "last")


def test_the_catalog_s_graphs_without_presets_are_planned_like_one_s_own():
    plain = graph(counts())
    own = make_plan("gcnii", {}, plain)
    assert own.recipe.longest == LONGEST
    alike = replace(own, recipe=replace(own.recipe, longest=0))
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


def test_a_directed_graph_of_your_own_is_gathered_over_both_ways():
    graph = told_by_in_links()
    how = {"seeds": range(3), "epochs": 60, "device": "cpu"}
    assert gcnii.fit(graph, "gcnii", **how).test.mean() > 0.9
    assert gcnii.fit(graph, "gcnii", direction="out", **how).test.mean() < 0.7


@pytest.mark.parametrize("model", ["gcnii", "gcn", "gat", "jknet"])
def test_only_directed_graphs_of_your_own_are_gathered_over_both_ways(model):
    graph = told_by_in_links()
    assert make_plan(model, {}, graph).recipe.direction == "both"
    assert make_plan(model, {"direction": "in"}, graph).recipe.direction == "in"
    assert make_plan(model, {}, replace(graph, directed=False)).recipe.direction == "out"
    of_catalog = graph._with_origin("squirrel", "squirrel")
    assert make_plan(model, {}, of_catalog).recipe.direction == "out"


def test_where_out_links_tell_the_class_they_alone_are_gathered_over():
    told = Traits(n=9, d=9, train=9, sparse=False, multilabel=False, homophily=0.0, links=0.9)
    graph = told_by_in_links()
    traits_module._KNOWN[graph] = told
    assert make_plan("gcnii-plus", {}, graph).recipe.direction == "out"
    assert make_plan("gcnii", {}, graph).recipe.direction == "both"
