"""New nodes answered from their neighbourhood are answered as in the whole graph."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.run_pages import a_graph, trained

from gcnii.data.converters.frames import open_frames
from gcnii.errors import InputError
from gcnii.graph import Graph
from gcnii.inference.neighbourhood import Neighbourhoods, Surroundings
from gcnii.inference.new_nodes import OldNodes
from gcnii.inference.predict import SetRule, answered
from gcnii.members.linear import Linear
from gcnii.members.propagation import CorrectAndSmooth, LabelPropagation
from gcnii.members.trees import Trees
from gcnii.results.ensemble import (
    Blend,
    Boosted,
    Ensemble,
    Networks,
    Propagated,
    Regressed,
    Smoothed,
)
from gcnii.results.fit import fit
from gcnii.targets import SeveralLabels

GRAPH = a_graph(names=("a",))
NODES = pd.DataFrame(
    {"id": ["new", "other"], **{f"a {j}": [0.5 * j, -1.0] for j in range(GRAPH.d)}}
)
LINKS = pd.DataFrame({"source": ["new", "new", "other"], "target": ["a 3", "a 70", "new"]})


def arriving(graph, nodes=NODES, links=LINKS):
    old = OldNodes(graph)
    return old.read(*old.as_numbers(open_frames(nodes, links, old.reading)))


def near_and_exact(result, graph, radius, links=LINKS):
    arrivals = arriving(graph, links=links)
    there = Neighbourhoods(result, graph, radius)
    P, _ = there.probabilities(there.said_of(arrivals))
    joined = arrivals.joined(graph)
    exact, _ = answered(result, joined, graph, "cpu", ensemble=True)
    return P, exact, there.exact


@pytest.mark.parametrize(
    ("model", "radius", "settings"),
    [
        ("gcnii", 2, {"layers": 3}),
        ("gcnii-star", 1, {}),
        ("gcnii-plus", 1, {"direction": "in"}),
        ("appnp", 3, {"layers": 4}),
        ("gcn", 1, {}),
        ("sgc", 1, {"width": None}),
        ("graphsage-mean", 0, {}),
        ("gat", 0, {}),
        ("mlp", 0, {}),
    ],
)
def test_with_all_that_the_layers_reach_an_answer_is_exact(model, radius, settings):
    if settings.pop("width", 0) is None:
        result = fit(GRAPH, model, layers=2, epochs=5, device="cpu", seeds=[0, 1])
    else:
        result = trained(GRAPH, model, seeds=(0, 1), **settings | {"epochs": 5})
    near, exact, said = near_and_exact(result, GRAPH, radius)
    np.testing.assert_allclose(near, exact, atol=2e-6)
    assert said


def test_with_less_it_is_near_and_says_that_it_is_not_exact():
    result = trained(GRAPH, layers=6)
    errors = []
    for radius in (0, 1, 2):
        near, exact, said = near_and_exact(result, GRAPH, radius)
        assert not said
        errors.append(np.abs(near - exact).max())
    assert errors[2] < errors[1] < errors[0] < 0.2
    assert errors[2] < 0.01


@pytest.fixture(scope="module")
def members():
    """An ensemble of all kinds of members, of equal weight."""
    result = trained(GRAPH, "gcn")
    networks, runs = Networks("networks", result), result.runs
    trees = Boosted("trees", runs, (Trees.fit(GRAPH, GRAPH.splits[0]),))
    spread = Propagated("label propagation", runs, (LabelPropagation(0.9),))
    smoothed = Smoothed("correct and smooth", runs, (CorrectAndSmooth(scale=None),), base=networks)
    return Ensemble(
        origin=result.origin,
        runs=(replace(runs[0], temperature=1.5),),
        device="cpu",
        members=(networks, trees, spread, smoothed),
        blends=(Blend((0,), (0.25,) * 4),),
        shared=result.recipe,
        folds=0,
        losses=(0.0,) * 4,
    )


@pytest.mark.parametrize("kind", ["trees", "label propagation", "correct and smooth", "networks"])
def test_every_kind_of_member_answers_as_in_the_whole_graph(members, kind):
    near, exact, _ = near_and_exact(members.member(kind), GRAPH, 6)
    # Correct & Smooth has the answers of its base for old nodes as they were.
    atol = 0.03 if kind == "correct and smooth" else 1e-5
    np.testing.assert_allclose(near, exact, atol=atol)


def test_linear_regression_answers_new_nodes_by_their_own_columns():
    y = np.asarray(GRAPH.X[:, :1], np.float64)
    graph = replace(GRAPH, y=y, classes=None, targets=("amount",))
    result = trained(graph, "mlp", epochs=3)
    linear = Regressed("linear", result.runs, (Linear.fit(graph, graph.splits[0]),))
    alone = Ensemble(
        origin=result.origin,
        runs=result.runs,
        device="cpu",
        members=(linear,),
        blends=(Blend((0,), (1.0,)),),
        shared=result.recipe,
        folds=0,
        losses=(0.0,),
    )
    near, exact, said = near_and_exact(alone, graph, 0)
    np.testing.assert_allclose(near, exact, rtol=1e-9)
    assert said


def test_an_ensemble_blends_what_its_members_say(members):
    near, exact, said = near_and_exact(members, GRAPH, 6)
    np.testing.assert_allclose(near, exact, atol=0.01)
    assert not said


def test_directed_and_weighted_edges_count_as_in_the_whole_graph():
    random = np.random.default_rng(1)
    weights = random.uniform(0.5, 2, GRAPH.edges.shape[1])
    named = {"nodes": GRAPH.nodes, "features": GRAPH.features, "splits": GRAPH.splits}
    graph = Graph(X=GRAPH.X, edges=GRAPH.edges, y=GRAPH.y, directed=True, weights=weights, **named)
    result = trained(graph, "gcn", direction="in", norm="walk", edge_weights="raw")
    links = pd.DataFrame({"source": ["a 3", "new", "new"], "target": ["new", "a 70", "other"]})
    near, exact, said = near_and_exact(result, graph, 1, links.assign(weight=[1.0, 2.0, 0.5]))
    np.testing.assert_allclose(near, exact, atol=2e-6)
    assert not said  # edge weights can be ranked among all others


def test_the_rows_that_a_ball_computes_do_not_grow_with_the_graph():
    n = 500
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    graph = Graph(X=np.ones((n, GRAPH.d)), edges=ring, y=np.arange(n) % 2, features=GRAPH.features)
    links = pd.DataFrame({"source": ["new", "other"], "target": ["9", "9"]})
    ball = Surroundings(graph).ball(arriving(graph, links=links), 2)
    assert ball.old[ball.old_rows].tolist() == [8, 9, 10]
    assert ball.old[ball.rim].tolist() == [7, 11]


def test_sets_of_new_nodes_are_those_of_the_whole_graph():
    result = trained(GRAPH, "gcn", epochs=30)
    rule = SetRule.of(result, GRAPH, 0.9, "cpu")
    there = Neighbourhoods(result, GRAPH, 1, rule.calibrated)
    arrivals = arriving(GRAPH)
    P, _ = there.probabilities(there.said_of(arrivals), rule.calibrated)
    whole = result.predict_new(NODES, LINKS, GRAPH, "cpu", coverage=0.9)
    assert SeveralLabels(4, GRAPH.classes).shown(rule(P)) == whole["set"].tolist()


def test_a_node_without_links_is_answered_by_its_features():
    result = trained(GRAPH, "gcn")
    there = Neighbourhoods(result, GRAPH)
    P, basis = there.probabilities(there.said_of(arriving(GRAPH, links=LINKS[:2])))
    with pytest.warns(UserWarning, match="by the features alone"):
        whole = result.predict_new(NODES, LINKS[:2], GRAPH, "cpu")
    assert basis == whole["basis"].tolist() == ["model", "features"]
    np.testing.assert_allclose(P, whole.filter(like="p(").to_numpy(), atol=2e-6)


def test_what_looks_at_the_whole_graph_is_refused():
    result = trained(GRAPH, structure="degree")
    with pytest.raises(InputError, match="gcnii looks at the whole graph by its settings"):
        Neighbourhoods(result, GRAPH)
