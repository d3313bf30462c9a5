"""What holds for every model in the registry; a new model is tested by being listed."""

import numpy as np
import pytest
import torch
from support.each_kind import of_each_kind
from support.literal import LITERAL
from support.small_models import build, dense, inputs, plan, web

from gcnii.dropout import epoch_key, keyed
from gcnii.graph import Graph
from gcnii.nn import MODELS
from gcnii.nn.engine.skeleton import GCNIISkeleton
from gcnii.train.plan import make_plan

every_model = pytest.mark.parametrize("name", MODELS)
# Where signals grow, a softmax selects one neighbour and a gate closes: gradients of exactly zero.
GENTLE = {"gat", "gat-ppi", "graphsage-lstm"}
every_skeleton = pytest.mark.parametrize(
    "name", [name for name, model in MODELS.items() if issubclass(model, GCNIISkeleton)]
)


@every_model
@pytest.mark.parametrize("sparse", [False, True])
def test_scores_are_those_of_the_equation(name, sparse):
    graph = web(sparse=sparse)
    model = build(name, graph)
    P, X = inputs(graph, name)
    weights = {key: value.detach().numpy() for key, value in model.state_dict().items()}
    dense_X = graph.X.toarray() if sparse else graph.X
    expected = LITERAL[name](weights.__getitem__, dense(P), dense_X, **plan(name).model_settings)
    np.testing.assert_allclose(model(P, X).detach().numpy(), expected, rtol=1e-11, atol=1e-12)


@of_each_kind("name")
def test_permuting_the_nodes_permutes_the_scores(name):
    graph, order = web(), np.random.default_rng(1).permutation(30)
    place = np.argsort(order)
    shuffled = Graph(
        X=graph.X[order], edges=place[graph.edges], y=graph.labels[order], directed=True
    )
    model = build(name, graph)
    torch.testing.assert_close(model(*inputs(graph, name))[order], model(*inputs(shuffled, name)))


@of_each_kind("name")
def test_every_weight_has_a_finite_gradient_that_is_not_zero_at_64_layers(name):
    graph = web()
    # A gain of 2 in ReLU layers keeps a plain GCN's signal alive; without it, its gradient
    # underflows at this depth.
    model = build(
        name, graph, layers=64, width=32, **({"dropout": 0.3} if name in GENTLE else {})
    ).train()
    gain = 1 if name in GENTLE else 2
    for key, parameter in model.named_parameters():
        parameter.data *= gain if key.startswith("convs.") else 1
    with keyed(epoch_key(torch.tensor([0]), 0)[0]):
        model(*inputs(graph, name)).square().mean().backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), key
        assert parameter.grad.abs().max() > 0, key


@every_model
def test_every_weight_is_in_one_of_the_two_decay_groups(name):
    names = [key for key, _ in build(name, web()).named_parameters()]
    assert {key.split(".")[0] for key in names} <= {"convs", "dense"}


@every_skeleton
def test_convolutions_start_uniform_within_one_over_the_root_of_the_width(name):
    model = build(name, web(), layers=8, width=64)
    if not len(model.convs):
        pytest.skip("has no convolution")
    W = torch.cat([parameter.detach().flatten() for parameter in model.convs.parameters()])
    assert W.abs().max() <= 1 / 8
    assert W.std() == pytest.approx(1 / 8 / 3**0.5, rel=0.02)


@every_model
def test_the_seed_decides_the_weights_and_leaves_torchs_own_stream_alone(name):
    graph = web()
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, same, other = (plan(name).build(graph.d, graph.k, seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(one[key], same[key]) for key in one)
    # biases may start at zero
    assert not any(torch.equal(one[key], other[key]) for key in one if one[key].ndim > 1)


@every_skeleton
def test_scores_are_read_from_the_embedding(name):
    graph = web()
    model = build(name, graph)
    P, X = inputs(graph)
    torch.testing.assert_close(model.dense["decode"](model.embed(P, X)), model(P, X))


@every_model
def test_every_model_has_a_card_of_its_own(name):
    card = vars(MODELS[name])["card"]
    assert card.paper
    assert card.equation
    recipe = make_plan(name, card.recipe).recipe
    assert all(getattr(recipe, key) == value for key, value in card.recipe.items())
