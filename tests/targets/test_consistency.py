"""The consistency loss, against the formula written out in numpy."""

import numpy as np
import pytest
import torch

from gcnii.targets import Classes, SeveralLabels


def kind(multilabel):
    return (SeveralLabels if multilabel else Classes)(4)


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def sharp(p, T, multilabel):
    powers = p ** (1 / T)
    return powers / (powers + (1 - p) ** (1 / T) if multilabel else powers.sum())


def literal(scores, T, multilabel):
    """One replica, (S, n, k), node by node."""
    S, n, _ = scores.shape
    total = 0.0
    for i in range(n):
        p = [(sigmoid if multilabel else softmax)(scores[s, i]) for s in range(S)]
        target = sharp(np.mean(p, 0), T, multilabel)
        total += sum(((one - target) ** 2).sum() for one in p)
    return total / (S * n)


@pytest.mark.parametrize("multilabel", [False, True])
@pytest.mark.parametrize("views", [1, 2, 5])
def test_it_is_the_mean_squared_distance_to_the_sharpened_mean(multilabel, views):
    scores = np.random.default_rng(0).normal(0, 2, (3, views, 7, 4))
    T = [0.5, 1.0, 0.2]
    found = kind(multilabel).disagreement(
        torch.tensor(scores), torch.tensor(T, dtype=torch.float64)
    )
    expected = [literal(one, t, multilabel) for one, t in zip(scores, T, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_views_that_agree_and_are_not_sharpened_have_no_loss():
    scores = torch.randn(2, 1, 6, 3).expand(2, 4, 6, 3)
    for multilabel in (False, True):
        assert kind(multilabel).disagreement(scores, torch.ones(2)).max() < 1e-12


@pytest.mark.parametrize("multilabel", [False, True])
def test_no_gradient_passes_through_what_the_views_agree_on(multilabel):
    scores = torch.randn(1, 3, 5, 4, dtype=torch.float64, requires_grad=True)
    T = torch.tensor([0.4], dtype=torch.float64)
    (found,) = torch.autograd.grad(kind(multilabel).disagreement(scores, T).sum(), scores)
    p = scores.sigmoid() if multilabel else scores.softmax(-1)
    mean = p.mean(1, keepdim=True).detach()
    target = torch.tensor(np.stack([sharp(row.numpy(), 0.4, multilabel) for row in mean[0, 0]]))
    (expected,) = torch.autograd.grad((p - target).square().sum(-1).mean(), scores)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("multilabel", [False, True])
def test_certain_predictions_and_hard_targets_stay_finite(multilabel):
    scores = (torch.randn(1, 2, 50, 4) * 1e4).requires_grad_()
    loss = kind(multilabel).disagreement(scores, torch.tensor([1e-6]))
    (gradient,) = torch.autograd.grad(loss.sum(), scores)
    assert loss.isfinite().all()
    assert gradient.isfinite().all()
