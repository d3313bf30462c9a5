"""Weights of an ensemble's members: greedy forward selection with replacement (Caruana, 2004).

The ensemble is the weighted arithmetic mean of its members' probabilities.  Members are added one
at a time, each time the one with which the log loss on validation nodes is lowest; a member's
weight is how often it was added.  Few nodes would be overfitted: so the selection is repeated on
random halves of the nodes, and the weights are the mean of all (bagging).
"""

from __future__ import annotations

import numpy as np

from gcnii.targets.target import Floats, Ints, Target

# On 24 graphs, 25 steps or 20 halves were no better.
STEPS, BAGS = 10, 10
TINY = 1e-12  # 0 has no logarithm


def greedy(
    P: Floats, y: Ints, target: Target, *, steps: int = STEPS, bags: int = BAGS, seed: int = 0
) -> Floats:
    """(m,) weights, summing to 1, of members with calibrated probabilities P (m, nodes, k).

    y     the labels of these nodes, all known
    bags  halves of the nodes on which members are selected
    seed  of the halves
    """
    q, nodes = likelihoods(P, y, target), len(y)
    random, counts = np.random.default_rng(seed), np.zeros(len(P))
    for _ in range(bags):
        half = random.choice(nodes, (nodes + 1) // 2, replace=False)
        counts += selected(q[:, half].reshape(len(P), -1), steps)
    return np.asarray(counts / counts.sum())


def likelihoods(P: Floats, y: Ints, target: Target) -> Floats:
    """(m, nodes, 1 or k) what each member gives to what is true, of each class or each label."""
    true = target.indicators(y)
    given = (P * true).sum(2, keepdims=True) if target.exclusive else np.where(true, P, 1 - P)
    return np.asarray(np.maximum(given, TINY))


def selected(q: Floats, steps: int) -> Floats:
    """(m,) how often each member is added, each time the one that lowers -Σ_i log Σ_j w_j q_ji."""
    counts, total = np.zeros(len(q)), np.zeros(q.shape[1])
    for _ in range(steps):
        best = int(np.log(total + q).sum(1).argmax())
        counts[best] += 1
        total += q[best]
    return counts
