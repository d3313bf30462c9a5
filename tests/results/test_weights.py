"""Members are weighed by what they say of validation nodes, and few nodes are not overfitted."""

import numpy as np
import pytest

from gcnii.results.ensemble import greedy
from gcnii.targets import Classes, SeveralLabels

THREE = Classes(3)


def member(y, right, seed, k=3):
    """Calibrated probabilities of a member that is right on this share of the nodes."""
    random = np.random.default_rng(seed)
    guess = np.where(random.random(len(y)) < right, y, (y + random.integers(1, k, len(y))) % k)
    P = np.full((len(y), k), (1 - right) / (k - 1))
    P[np.arange(len(y)), guess] = right
    return P


def labels(nodes, seed=0):
    return np.random.default_rng(seed).integers(0, 3, nodes)


def test_weights_are_shares():
    y = labels(100)
    weights = greedy(np.stack([member(y, 0.6, i) for i in range(5)]), y, THREE)
    assert weights.shape == (5,)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)


def test_a_member_that_is_noise_gets_little_weight():
    y = labels(300)
    P = np.stack([member(y, 0.8, 1), member(y, 0.8, 2), member(labels(300, 9), 0.8, 3)])
    assert greedy(P, y, THREE)[2] < 0.05


def test_equal_members_share_the_weight_of_one():
    y = labels(300)
    one, other = member(y, 0.8, 1), member(y, 0.7, 2)
    alone = greedy(np.stack([one, other]), y, THREE)
    twice = greedy(np.stack([one, one, other]), y, THREE)
    assert twice[:2].sum() == pytest.approx(alone[0])


def test_few_nodes_give_none_of_several_good_members_all_the_weight():
    y = labels(20)
    good = [member(y, 0.75, seed) for seed in range(40)]
    alike = [P for P in good if (P.argmax(1) == y).sum() == 15][:3]
    weights = greedy(np.stack([*alike, member(labels(20, 9), 0.75, 50)]), y, THREE)
    assert weights[:3].min() > 0.05
    assert weights.max() < 0.6
    assert weights[3] < 0.1


def test_the_weights_are_the_same_each_time():
    y = labels(60)
    P = np.stack([member(y, 0.6, i) for i in range(6)])
    assert (greedy(P, y, THREE, seed=3) == greedy(P, y, THREE, seed=3)).all()


def test_a_label_of_a_node_counts_by_itself():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, (200, 4))
    good, noise = np.where(y == 1, 0.8, 0.2), random.random(y.shape)
    weights = greedy(np.stack([noise, good]), y, SeveralLabels(4))
    assert weights[1] > 0.95


def test_a_probability_of_zero_for_the_truth_is_survived():
    y = labels(50)
    sure, wrong = np.eye(3)[y], np.eye(3)[(y + 1) % 3]
    assert greedy(np.stack([wrong, sure]), y, THREE)[1] > 0.95


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_few_nodes_are_enough(nodes):
    y = labels(nodes)
    assert greedy(np.stack([member(y, 0.6, i) for i in range(4)]), y, THREE).sum() == (
        pytest.approx(1)
    )
