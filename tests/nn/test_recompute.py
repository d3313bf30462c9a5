"""Rematerialisation: the same numbers, without the activations."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.func import vmap

from gcnii.dropout import Dropout, epoch_key, keyed
from gcnii.nn.engine.recompute import recompute

drop = Dropout(0.4)


def chain(key, X, scale, *weights):
    with keyed(key):
        for W in weights:
            X = scale * drop(torch.relu(X @ W))
    return X


def tensors(*shape, replicas=()):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(*replicas, *shape, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(5)
    ]


def gradients(output, inputs):
    return torch.autograd.grad(output.square().sum(), inputs)


@pytest.fixture
def keys():
    return epoch_key(torch.arange(3), 7)


def test_scores_and_gradients_are_the_same_to_the_last_bit(keys):
    X, *weights = tensors(6, 6)
    scale = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    kept, again = chain(keys[0], X, scale, *weights), recompute(chain, keys[0], X, scale, *weights)
    assert torch.equal(kept, again)
    assert (kept == 0).any()
    for one, other in zip(
        *(gradients(output, [X, scale, *weights]) for output in (kept, again)), strict=True
    ):
        assert torch.equal(one, other)


def test_many_replicas_at_once_give_the_same(keys):
    X, *weights = tensors(6, 6, replicas=[3])
    # shared by all replicas
    scale = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)

    def both(key, X, *weights):
        return chain(key, X, scale, *weights), recompute(chain, key, X, scale, *weights)

    kept, again = vmap(both)(keys, X, *weights)
    assert torch.equal(kept, again)
    for one, other in zip(
        *(gradients(output, [X, scale, *weights]) for output in (kept, again)), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_a_replica_is_the_same_alone_and_batched(keys):
    X, *weights = tensors(6, 6, replicas=[3])
    scale = torch.tensor(1.5, dtype=torch.float64)
    together = vmap(lambda key, *inputs: recompute(chain, key, inputs[0], scale, *inputs[1:]))(
        keys, X, *weights
    )
    alone = [recompute(chain, keys[i], X[i], scale, *(W[i] for W in weights)) for i in range(3)]
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-12, atol=1e-12)


def test_an_input_that_needs_no_gradient_or_is_not_used_gets_none(keys):
    X, unused, W, *_ = tensors(6, 6)
    output = recompute(
        lambda key, X, unused, W: chain(key, X, 1.0, W), keys[0], X.detach(), unused, W
    )
    gradient, nothing = torch.autograd.grad(output.sum(), [W, unused], allow_unused=True)
    assert gradient.abs().max() > 0
    assert nothing is None


@pytest.mark.parametrize("batched", [False, True])
def test_backward_keeps_the_inputs_and_nothing_else(keys, batched):
    X, *weights = tensors(6, 6, replicas=[3] if batched else [])
    scale = torch.tensor(1.5, dtype=torch.float64)
    kept = []

    def forget(key, *inputs):
        return recompute(chain, key, inputs[0], scale, *inputs[1:])

    with saved_tensors_hooks(
        lambda tensor: kept.append(tensor.data_ptr()) or tensor, lambda tensor: tensor
    ):
        vmap(forget)(keys, X, *weights) if batched else forget(keys[0], X, *weights)
    assert {tensor.data_ptr() for tensor in (X, scale, *weights)} <= set(kept)
    assert len(kept) == 3 + len(weights)


def test_a_second_derivative_is_refused(keys):
    X, W, *_ = tensors(6, 6)
    output = recompute(lambda key, X, W: chain(key, X, 1.0, W), keys[0], X, W)
    gradient = torch.autograd.grad(output.square().sum(), W, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
