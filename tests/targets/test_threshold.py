"""Of two classes, the rarer one is predicted above a threshold; a focal loss lets it count more."""

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score
from torch.nn.functional import cross_entropy

from gcnii.errors import InputError
from gcnii.targets import Classes, SeveralLabels
from gcnii.targets.target import BELOW_ONE, HALF, best_cut
from gcnii.train.recipe import price_of

TWO = Classes(2, ("fraud", "usual"))


def drawn(n=400, share=0.1):
    """Probabilities (n, 2) that are right on average, of which some are equal; and the classes."""
    random = np.random.default_rng(0)
    p = (random.beta(1, 1 / share - 1, n) * 50).round() / 50
    return np.stack([p, 1 - p], 1), (random.random(n) >= p).astype(int)


@pytest.mark.parametrize("positive", [0, 1])
def test_the_threshold_has_the_highest_f1_of_the_positive_class(positive):
    P, y = drawn()
    P, y = (P, y) if positive == 0 else (P[:, ::-1], 1 - y)
    guess, p = TWO.decided(P, TWO.best_threshold(P, y, positive)), P[:, positive]
    every = [f1_score(y == positive, p > cut) for cut in np.linspace(0, 0.99, 100)]
    assert f1_score(y == positive, guess == positive) == max(every)


def test_a_cut_is_never_within_a_tie_and_the_highest_of_equally_good_ones():
    p, truth = np.array([0.9, 0.5, 0.5, 0.2]), np.array([True, True, False, False])
    assert best_cut(p, truth) == pytest.approx(0.35)  # both of 0.5, F1 0.8
    assert best_cut(np.array([0.9, 0.7]), np.array([True, True])) == pytest.approx(0.35)
    assert best_cut(p, truth & False) == HALF


def test_the_dearer_a_miss_the_lower_the_threshold():
    P, y = drawn()
    cuts = [best_cut(P[:, 0], y == 0, cost) for cost in (0.01, 1, 10, 1000)]
    # Where whoever is called costs more than is won, nobody is.
    assert best_cut(np.array([0.9, 0.5]), np.array([False, True]), 0.5) == BELOW_ONE
    assert cuts == sorted(cuts, reverse=True)
    own = [cost_of(P, y, cut, 10) for cut in (cuts[2], 0.0, *P[:, 0])]
    assert own[0] == min(own)


def cost_of(P, y, cut, price):
    called = P[:, 0] > cut
    return price * (~called & (y == 0)).sum() + (called & (y == 1)).sum()


def test_one_half_is_the_most_probable_class_and_of_a_tie_the_first():
    P = np.array([[0.5, 0.5], [0.4, 0.6]])
    assert TWO.decided(P, HALF).tolist() == TWO.decided(P).tolist() == [0, 1]
    assert Classes(3).best_threshold(np.ones((2, 3)) / 3, np.array([0, 1]), 1) == HALF


@pytest.mark.parametrize("cost", ["10", "10:0", "-1:2", "a:b", "1:2:3", "inf:1"])
def test_a_cost_is_two_numbers(cost):
    with pytest.raises(InputError, match=r"two numbers above 0 such as 10:1, got '"):
        price_of(cost)
    assert (price_of("10:1"), price_of("1 : 4"), price_of(".5:1")) == (10, 0.25, 0.5)


def test_the_focal_loss_is_that_of_the_paper_and_weighs_as_the_loss_does():
    scores, y = torch.randn(3, 20, 2, generator=torch.Generator().manual_seed(0)), torch.arange(20)
    y, weights = y % 2, torch.tensor([[1.0, 3.0]] * 3)
    p = scores.softmax(-1).gather(2, y.expand(3, -1)[..., None])[..., 0]
    expected = -((1 - p) ** 2) * p.log() * weights[:, y]
    torch.testing.assert_close(TWO.losses(scores, y, weights, 2.0), expected)
    plain = cross_entropy(scores[0], y, reduction="none")
    torch.testing.assert_close(TWO.losses(scores[:1], y, None)[0], plain, rtol=0, atol=0)
    labels = SeveralLabels(2).losses(scores, torch.stack([y, 1 - y], 1), None, 2.0)
    q = torch.where(torch.stack([y, 1 - y], 1) == 1, scores, -scores).sigmoid()
    torch.testing.assert_close(labels, (-((1 - q) ** 2) * q.log()).mean(-1))


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_a_focal_loss_has_a_slope_where_a_node_is_certain(gamma):
    scores = torch.tensor([[[60.0, -60.0]]], requires_grad=True)
    TWO.losses(scores, torch.tensor([0]), None, gamma).sum().backward()
    assert torch.isfinite(scores.grad).all()
