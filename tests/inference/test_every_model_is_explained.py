"""What holds for every model in the registry: its shares, its links, and their removal."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.each_kind import of_each_kind
from support.fitting import fitting
from support.small_models import web

from gcnii import fit
from gcnii.graph import Split
from gcnii.inference.attribution import (
    BestRun,
    ExplainedScore,
    near,
    why_unranked,
)

EXACT = {"float32": 1e-5, "float64": 1e-10}  # of the node's largest score
# A softmax, a sigmoid or tanh, an ELU, or a division by a length or a deviation.
CURVED = {
    *("gat", "gat-ppi", "gaan", "geniepath", "geniepath-lazy", "jknet-lstm"),
    *("graphsage-mean", "graphsage-pool", "graphsage-lstm"),
    *("vr-gcn-cv", "vr-gcn-cvd", "cluster-gcn"),
}
UNRANKED = {
    *("mlp", "gat", "gat-ppi", "gaan", "geniepath", "geniepath-lazy"),
    *("graphsage-pool", "graphsage-lstm", "cluster-gcn"),
}
NODE = 3


def small_graph():
    graph = web(n=24, sparse=True)
    order = np.random.default_rng(0).permutation(graph.n)
    roles = np.array(["train"] * 12 + ["val"] * 6 + ["test"] * 6, object)[np.argsort(order)]
    return replace(graph, splits=(Split.of_roles(roles),))


GRAPH = small_graph()


def trained(name, precision="float64"):
    """Two epochs: biases that start at zero are no longer zero."""
    settings = {"layers": 3, "width": 6, "epochs": 2, "precision": precision, "scale": "none"}
    settings |= {"row_norm": "none"}  # of GCNII+, which is piecewise linear without it
    return fit(GRAPH, name, seeds=[0], device="cpu", **fitting(name, settings))


@pytest.fixture(scope="module")
def networks():
    """A trained network of each model, made when it is asked for, each once."""
    made = {}

    def network(name, precision="float64"):
        if (name, precision) not in made:
            result = trained(name, precision)
            made[name, precision] = result, BestRun.of(result, GRAPH, "cpu")
        return made[name, precision]

    return network


@of_each_kind("name")
@pytest.mark.parametrize("precision", EXACT)
def test_the_shares_add_up_where_the_model_is_piecewise_linear(name, precision, networks):
    _, network = networks(name, precision)
    for node in range(5):
        found = network.shares(ExplainedScore(node, 1))
        score = network.scores()[node, 1].item()
        assert found.score == pytest.approx(score, rel=1e-5)
        assert found.nodes.sum() == pytest.approx(found.features.sum(), rel=1e-9, abs=1e-12)
        if name not in CURVED:
            assert abs(found.residual) <= EXACT[precision] * found.largest


def test_the_shares_of_64_layers_add_up_in_float32():
    result = fit(GRAPH, layers=64, width=16, epochs=2, seeds=[0], device="cpu")
    network = BestRun.of(result, GRAPH, "cpu")
    for node in range(GRAPH.n):
        found = network.shares(ExplainedScore(node, 2))
        assert abs(found.residual) <= 1e-5 * found.largest


@of_each_kind("name")
def test_a_piecewise_linear_model_is_homogeneous_in_features_and_biases(name, networks):
    """Independent of gradients: twice the features and biases give twice the scores."""
    _, network = networks(name)
    X = network.task.X
    before = network.scores().detach()
    doubled = X.with_values(2 * X.values)
    for bias in network.biases:
        bias.data *= 2
    after = network.scores(X=doubled).detach()
    for bias in network.biases:
        bias.data /= 2
    assert torch.allclose(after, 2 * before, rtol=1e-10, atol=1e-12) == (name not in CURVED)


@of_each_kind("name")
def test_a_nodes_share_is_the_gradient_times_its_features(name, networks):
    """By differences: the score with the features of one node a little larger and smaller."""
    _, network = networks(name)
    X, question = network.task.X, ExplainedScore(NODE, 0)
    added, step = network.shares(question).nodes, 1e-5
    for node in np.argsort(-np.abs(added))[:2]:
        own = (X.pattern.row_of == int(node)).double()
        up, down = (
            network.scores(X=X.with_values(X.values * (1 + sign * own)))[NODE, 0].item()
            for sign in (step, -step)
        )
        assert added[node] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-9)


@of_each_kind("name")
def test_links_are_ranked_by_the_derivative_or_it_is_said_why_not(name, networks):
    _, network = networks(name)
    links, question = network.links, ExplainedScore(NODE, 0)
    why = why_unranked(network.plan)
    assert bool(why) == (name in UNRANKED)
    if why:
        assert why.startswith(f"{name} looks at ")
        return
    found, step, base = network.effects(question), 1e-5, network.halfway(NODE)
    assert found.any()
    for link in np.argsort(-np.abs(found))[:3]:
        there = torch.zeros(links.total, dtype=torch.float64)
        there[links.entries[links.link == int(link)]] = 1
        up, down = (
            network.log_probability(question, base + sign * there).item() for sign in (step, -step)
        )
        assert found[link] == pytest.approx((up - down) / (2 * step), rel=1e-4, abs=1e-8)


@of_each_kind("name")
def test_dropping_links_is_running_on_the_graph_without_them(name, networks):
    result, network = networks(name)
    if network.plan.recipe.geometry != "none":
        pytest.skip("the plane would be another one")
    links = network.links
    dropped = near(links.ends, network.paths(NODE)[0])[:2]
    gone = {tuple(links.ends[:, i]) for i in dropped}
    kept = [edge not in gone for edge in zip(*GRAPH.edges.tolist(), strict=True)]
    smaller = replace(GRAPH, edges=GRAPH.edges[:, kept])
    expected = result.predict_proba(smaller, "cpu", ensemble=False)
    found = network.predict_proba(links.without(dropped))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@of_each_kind("name")
def test_every_model_gives_a_document_and_says_what_is_left_over(name, networks):
    result, _ = networks(name)
    found = result.explain(GRAPH, NODE, top=4, device="cpu")
    document = found.document()
    assert document["node"] == NODE
    assert (document["unranked"] is not None) == (name in UNRANKED)
    assert document["links"] or name in UNRANKED
    whole = sum(hop["share"] for hop in document["shares"]["hops"])
    assert document["score"] == pytest.approx(whole + found.bias + found.residual)
    assert document["exact"] or name in CURVED
