"""All layers in one autograd function: the numbers of one layer after the other, only faster."""

import pytest
import torch
from support.each_kind import of_each_kind
from support.exact import exact_features
from support.small_models import build, inputs, web
from torch.func import functional_call, vmap

from gcnii.dropout import drop_edges, epoch_key, kept_of, keyed
from gcnii.nn import MODELS
from gcnii.nn.engine import skeleton
from gcnii.nn.engine.fused import dense_product
from gcnii.nn.engine.skeleton import Convs
from gcnii.nn.gcnii import GCNIIConv
from gcnii.propagation import Adjacency, Sparse, adjacency
from gcnii.train.hardware import suited_threads

FUSED = ["gcnii", "gcnii-plus", "gcnii-star", "gcnii-star-printed", "gcnii-ppi", "gcnii-star-ppi"]


@pytest.fixture
def calls(monkeypatch):
    """The number of layers that each call fused."""
    counts, fused = [], skeleton.fused_layers

    def count(P, H, H0, mappings, drop):
        counts.append(len(mappings.M1))
        return fused(P, H, H0, mappings, drop)

    monkeypatch.setattr(skeleton, "fused_layers", count)
    return counts


def one_by_one(monkeypatch):
    monkeypatch.setattr(skeleton, "_alike", lambda convs: False)


def train(model, seeds, drop_edge):
    """Scores and gradients of a training step where P̃ is not symmetric; all seeds in one vmap."""
    graph = web()
    links, X = Adjacency.of(adjacency(graph)), exact_features(graph)
    own = {name: weight.detach() for name, weight in model.named_parameters()}
    weights = {
        name: torch.stack([W * 1.1**s for s in seeds]).requires_grad_() for name, W in own.items()
    }

    def one(weights, key):
        with keyed(key):
            return functional_call(
                model, weights, (drop_edges(links, kept_of(drop_edge), "entries"), X)
            )

    keys = epoch_key(torch.tensor(seeds), 3)
    if len(seeds) == 1:
        scores = one({name: weight[0] for name, weight in weights.items()}, keys[0])[None]
    else:
        scores = vmap(one)(weights, keys)
    scores.square().mean().backward()
    return scores.detach(), {name: weight.grad for name, weight in weights.items()}


@of_each_kind("name", FUSED, pytest.mark.long)
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("drop_edge", [0.0, 0.3])
@pytest.mark.parametrize("seeds", [[0], [0, 1, 2]])
@pytest.mark.parametrize("recomputes", [False, True])
def test_scores_and_gradients_are_those_of_one_layer_after_the_other(
    name, dropout, drop_edge, seeds, recomputes, monkeypatch, calls
):
    model = build(name, web(), layers=7, width=8, alpha=0.2, dropout=dropout).train()
    model.recomputes = recomputes
    scores, gradients = train(model, seeds, drop_edge)
    # each segment once more, the last one first
    assert calls == ([2, 2, 2, 1, 1, 2, 2, 2] if recomputes else [7])
    one_by_one(monkeypatch)
    expected, wanted = train(model, seeds, drop_edge)
    torch.testing.assert_close(scores, expected, rtol=1e-12, atol=1e-12)
    for key, gradient in gradients.items():
        assert gradient.abs().max() > 1e-8, key
        torch.testing.assert_close(gradient, wanted[key], rtol=1e-10, atol=1e-12, msg=key)


@pytest.mark.parametrize("name", FUSED)
def test_scores_without_gradients_are_the_same(name, calls):
    model, given = build(name, web()), inputs(web())
    with torch.no_grad():
        scores = model(*given)
    assert torch.equal(scores, model(*given))
    assert calls == [5, 5]


@pytest.mark.parametrize("name", sorted(MODELS.keys() - FUSED))
def test_no_other_model_is_fused(name, calls):
    model = build(name, web())
    model(*inputs(web(), name))
    assert calls == []


def test_replicas_of_replicas_are_replicas(calls):
    model, (P, X) = build("gcnii", web()), inputs(web())
    W = torch.stack([model.convs[0].W.detach() * scale for scale in (1, 2, 3, 4)]).view(2, 2, 8, 8)

    def one(W):
        return functional_call(model, {"convs.0.W": W}, (P, X))

    torch.testing.assert_close(
        vmap(vmap(one))(W), torch.stack([torch.stack([one(W) for W in row]) for row in W])
    )


def test_a_gradient_of_the_links_is_left_to_autograd(calls):
    model, (P, X) = build("gcnii", web()), inputs(web())
    values = P.values.clone().requires_grad_()
    model(Sparse(P.pattern, values), X).square().sum().backward()
    assert values.grad.abs().max() > 0
    assert calls == []


def test_a_layer_with_a_hook_is_called(calls):
    model, seen = build("gcnii", web()), []
    model.convs[2].register_forward_hook(lambda conv, given, output: seen.append(output.shape))
    model(*inputs(web()))
    assert seen == [(30, 8)]
    assert calls == []


def test_a_layer_that_overrides_forward_is_not_fused_as_its_base_class(calls):
    class Doubled(GCNIIConv):
        def forward(self, P, H, H0):
            return 2 * super().forward(P, H, H0)

    P, _ = inputs(web())
    H, layer = torch.rand(30, 8, dtype=torch.float64), Doubled(8, 0.1, 0.5).double()
    drop = build("gcnii", web()).drop
    torch.testing.assert_close(
        Convs([layer])(P, H, H, drop), 2 * GCNIIConv.forward(layer, P, H, H).relu()
    )
    assert calls == []


def test_a_second_derivative_is_refused():
    model = build("gcnii", web())
    W = model.convs[0].W
    gradient = torch.autograd.grad(model(*inputs(web())).square().sum(), W, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_backward_can_run_twice():
    model = build("gcnii", web(), dropout=0.5).train()
    loss = model(*inputs(web())).square().sum()
    first, second = (
        torch.autograd.grad(loss, list(model.parameters()), retain_graph=True) for _ in range(2)
    )
    assert all(torch.equal(*both) for both in zip(first, second, strict=True))


@pytest.mark.parametrize("h", [33, 64])
def test_a_product_s_rows_depend_neither_on_other_rows_nor_on_replicas_and_threads(h):
    S, M = torch.randn(2, 3000, h), torch.randn(2, h, h)
    with suited_threads(1):
        one = dense_product(S, M)
    torch.testing.assert_close(one, torch.bmm(S.double(), M.double()).float())
    assert torch.equal(dense_product(S, M), one)
    assert torch.equal(dense_product(S[1:], M[1:]), one[1:])
    assert torch.equal(dense_product(S[:, 500:], M), one[:, 500:])
