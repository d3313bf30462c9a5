"""What is searched are the settings whose annotations have a range, where they matter."""

from dataclasses import replace

import numpy as np
import pytest

from gcnii.nn import MODELS
from gcnii.nn.settings import Choice, Range, setting_of
from gcnii.train.plan import model_hints
from gcnii.train.recipe import recipe_hints
from gcnii.tuning.question import (
    OF_VIEWS,
    Question,
    first_points,
    loops_of,
    parameter,
    parameters_of,
    settings_of,
    space_of,
)

SOMETIMES = {"direction", "edge_types", "edge_weights", "loops", "class_weight", "focal", *OF_VIEWS}
ALPHA, WIDTH, LR = Range(0.0, 0.9, 0.05), Choice((64, 128, 256)), Range(1e-3, 3e-2)


@pytest.mark.parametrize("model", [name for name in MODELS if MODELS[name].card.uses_graph])
def test_a_space_is_every_annotation_with_a_range(model, graph):
    hints = recipe_hints() | model_hints(model)
    declared = {name: setting_of(hint)[1].search for name, hint in hints.items()}
    wanted = {name: one for name, one in declared.items() if one and name not in SOMETIMES}
    found = space_of(model, graph, "auto", {}, numeric=True)
    assert {name: one for name, one in found.items() if name != "loops"} == wanted
    assert {"lr", "decay_dense", "scale"} <= set(wanted)


def test_the_direction_is_searched_in_directed_graphs_alone(graph):
    directed = replace(graph, directed=True)
    assert "direction" not in space_of("gcnii", graph, "auto", {})
    assert space_of("gcnii", directed, "auto", {})["direction"].values == ("out", "in", "both")


def test_what_weights_count_is_searched_in_weighted_graphs_alone(graph):
    weighted = replace(graph, weights=np.ones(graph.edges.shape[1]))
    assert "edge_weights" not in space_of("gcnii", graph, "auto", {})
    found = space_of("gcnii", weighted, "auto", {})["edge_weights"]
    assert found.values == ("median", "log", "rank", "none")


def test_ranks_and_structure_are_searched_where_features_are_numbers(graph):
    words = replace(graph, X=(np.arange(graph.n * 40) % 7 == 0).reshape(graph.n, 40).astype("f4"))
    table, citations = (Question.of(one, ["gcnii"]) for one in (graph, words))
    assert table.space("gcnii")["scale"].values[-1] == "quantile"
    assert table.space("gcnii")["structure"].values == ("none", "degree", "walk")
    assert "structure" not in table.space("mlp")
    assert "quantile" not in citations.space("gcnii")["scale"].values
    assert "structure" not in citations.space("gcnii")
    tried = [
        settings_of(one["model"], table.space("gcnii"), one)
        for one in first_points(table)
        if one["model"] == "gcnii"
    ]
    assert {"none", "walk"} == {one["structure"] for one in tried}
    assert "quantile" in {one["scale"] for one in tried}


def test_the_graph_s_own_loops_are_searched_where_it_has_some(graph):
    looped = replace(graph, edges=np.append(graph.edges, [[0], [0]], axis=1))
    assert space_of("gcnii", graph, "auto", {})["loops"].values == ("keep", "none")
    assert space_of("gcnii", looped, "auto", {})["loops"].values == ("keep", "remove", "none")


@pytest.mark.parametrize(
    ("model", "fixed"),
    [
        ("geom-gcn-i", {}),
        ("gcnii", {"diffusion": "ppr"}),
        ("gcnii", {"norm": "first-order"}),
        ("gcnii", {"geometry": "isomap"}),
    ],
)
def test_no_trial_lacks_self_loops_where_that_would_be_refused(model, fixed, graph):
    assert loops_of(model, graph, fixed) == ("keep",)
    assert "loops" not in space_of(model, graph, "auto", fixed)


@pytest.mark.parametrize(("train", "searched"), [(2, True), (10, False)])
def test_consistency_is_searched_where_labels_are_few(train, searched, graph):
    split = graph.splits[0]
    few = np.zeros(graph.n, bool)
    few[np.flatnonzero(split.train)[:train]] = True
    space = space_of("gcn", replace(graph, splits=(replace(split, train=few),)), "auto", {})
    assert set(OF_VIEWS) & set(space) == (set(OF_VIEWS) if searched else set())


@pytest.mark.parametrize("metric", ["auto", "accuracy", "f1", "auc", "ap"])
def test_classes_are_weighed_where_the_metric_cares_for_rare_ones(metric, graph):
    space = space_of("gcn", graph, metric, {})
    assert ("class_weight" in space) == (metric in ("f1", "auc", "ap"))


def test_nothing_of_the_graph_is_searched_for_an_mlp(graph):
    looped = replace(graph, edges=np.append(graph.edges, [[0], [0]], axis=1), directed=True)
    found = space_of("mlp", looped, "auto", {})
    assert not set(found) & {"direction", "loops", "norm", "decay_conv"}
    assert {"width", "dropout", "lr", "decay_dense", "scale"} <= set(found)


def test_what_is_given_is_not_searched(graph):
    space = space_of("gcnii", graph, "auto", {})
    fewer = space_of("gcnii", graph, "auto", {"alpha": 0.2, "lr": 0.01})
    assert set(space) - set(fewer) == {"alpha", "lr"}


def test_a_setting_of_a_model_is_its_own_and_one_of_training_is_everyones():
    assert parameter("gcn", "width") == "gcn.width"
    assert parameter("gcnii", "width") == "gcnii.width"
    assert parameter("gcnii", "lr") == "lr"


def test_numbers_are_rounded_to_what_can_matter():
    space = {"lr": LR, "alpha": ALPHA, "width": WIDTH}
    drawn = {"lr": 0.0123456, "gcnii.alpha": 0.15000000000000002, "gcnii.width": 128}
    found = settings_of("gcnii", space, drawn)
    assert found == {"lr": 0.012, "alpha": 0.15, "width": 128}
    assert isinstance(found["width"], int)


@pytest.mark.parametrize(
    ("search", "value", "nearest"),
    [
        (ALPHA, 0.1, 0.1),
        (ALPHA, 0.12, 0.1),
        (ALPHA, 0.97, 0.9),
        (LR, 0.5, 3e-2),
        (LR, 0.0, 1e-3),
        (LR, 0.0123, 0.0123),
        (WIDTH, 128, 128),
        (WIDTH, 16, 64),
        (Choice((2, 4, 8, 16, 32)), 64, 32),
        (Choice((False, True)), True, True),
        (Choice(("none", "standard")), "rows", "none"),
    ],
)
def test_a_value_that_is_not_tried_becomes_the_nearest(search, value, nearest):
    found = parameters_of("gcnii", {"lr": search}, {"lr": value})
    assert found == {"lr": pytest.approx(nearest)}
