"""Products and layers over a halo are those of the whole matrix, with the masks of its rows."""

import pytest
import torch
from support.exact import exact_features, exact_matrix
from support.small_models import build, web
from support.to_itself import alone, halved, numbered
from torch.func import functional_call, vmap

from gcnii.dropout import epoch_key, keyed
from gcnii.nn import MODELS
from gcnii.nn.engine import skeleton

ABLE = [name for name, model in MODELS.items() if model.can_be_cut]
NODES = torch.arange(30).flip(0) * 7 + 3  # what the rows are called in the whole graph
STRANGERS = [0, 4, 5, 11, 29]


def step(model, P, X, seeds):
    """Scores and gradients of a training step, all seeds in one vmap."""
    own = dict(model.named_parameters())
    weights = {
        name: torch.stack([W.detach() * 1.1**s for s in seeds]).requires_grad_()
        for name, W in own.items()
    }

    def one(weights, key):
        with keyed(key, rows=P.row_numbers):
            return functional_call(model, weights, (P, X))

    keys = epoch_key(torch.tensor(seeds), 3)
    if len(seeds) == 1:
        scores = one({name: W[0] for name, W in weights.items()}, keys[0])[None]
    else:
        scores = vmap(one)(weights, keys)
    scores.square().mean().backward()
    return scores.detach(), [W.grad for W in weights.values() if W.grad is not None]


@pytest.mark.parametrize("name", ABLE)
@pytest.mark.parametrize("width", [8, 7])
@pytest.mark.parametrize("seeds", [[0], [0, 1, 2]])
def test_a_step_over_a_halo_is_that_of_the_whole_matrix(name, width, seeds, monkeypatch):
    model = build(name, web(), width=width, dropout=0.4).train()
    P, X = numbered(exact_matrix(web()), NODES), exact_features(web())
    with alone() as world:
        found = step(model, halved(P, world, STRANGERS), X, seeds)
        model.recomputes = model.can_recompute
        again = step(model, halved(P, world, STRANGERS), X, seeds)
    model.recomputes = False
    monkeypatch.setattr(skeleton, "_alike", lambda convs: False)
    expected = step(model, P, X, seeds)
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(again, expected, rtol=1e-11, atol=1e-12)
    assert len(expected[1]) > 1


def test_layers_over_a_halo_are_fused(monkeypatch):
    calls, fused = [], skeleton.fused_layers
    monkeypatch.setattr(
        skeleton, "fused_layers", lambda *given: calls.append(given[0]) or fused(*given)
    )
    with alone() as world:
        P = halved(exact_matrix(web()), world, STRANGERS)
        step(build("gcnii", web()).train(), P, exact_features(web()), [0])
    assert calls == [P]


def test_what_arrives_is_added_to_the_rows_that_it_is_for():
    with alone() as world:
        P = halved(exact_matrix(web()), world, STRANGERS)
    whole = exact_matrix(web()).to_dense()
    forward, backward = P.places, P.places.transposed[0]
    assert torch.equal(forward.arriving.rows.diff() > 0, (whole[:, STRANGERS] != 0).any(1))
    assert (backward.arriving.rows.diff() > 0).nonzero()[:, 0].tolist() == STRANGERS
