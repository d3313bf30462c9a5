"""Sets hold the true class as often as is promised, whatever the probabilities are worth."""

from math import inf

import numpy as np
import pytest
from scipy.special import softmax

from gcnii.errors import InputError
from gcnii.targets.target import conformal_sets, largest_misfit, misfit, refuse_coverage


def drawn(rng, n, k=6, sureness=3):
    """Probabilities, and classes drawn from others: the model is wrong about how sure it is."""
    scores = 2 * rng.standard_normal((n, k))
    P = softmax(scores, axis=1)
    return softmax(sureness * scores, axis=1), (rng.random((n, 1)) > P.cumsum(1)).sum(1)


@pytest.mark.parametrize("kind", ["lac", "aps"])
@pytest.mark.parametrize("coverage", [0.8, 0.95])
def test_coverage_is_as_promised(kind, coverage):
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        P, y = drawn(rng, 400)
        held, rest = slice(0, 100), slice(100, None)
        sets = conformal_sets(P[rest], P[held], y[held], coverage, kind, seed)
        found.append(sets[np.arange(300), y[rest]].mean())
    error = np.std(found) / np.sqrt(200)
    # At least the promise, and at most 1 / (held-out nodes + 1) above it.
    assert coverage - 3 * error < np.mean(found) < coverage + 1 / 101 + 3 * error


def test_lac_sets_are_the_smaller_if_the_probabilities_are_right():
    P, y = drawn(np.random.default_rng(0), 4000, sureness=1)
    sizes = {
        kind: conformal_sets(P[2000:], P[:2000], y[:2000], 0.9, kind).sum() / 2000
        for kind in ("lac", "aps")
    }
    assert sizes["lac"] < sizes["aps"]


def test_the_bound_is_an_order_statistic():
    values = np.arange(1, 100) / 100  # 99 nodes
    assert largest_misfit(values, 0.9) == 0.9
    assert largest_misfit(values, 0.901) == 0.91
    assert largest_misfit(values[:8], 0.9) == inf
    assert largest_misfit(values[:9], 0.9) == 0.09


def test_aps_counts_the_likelier_classes_and_a_part_of_its_own():
    P = np.array([[0.5, 0.2, 0.3]])
    part = np.random.default_rng(0).random((1, 1))[0, 0]
    wanted = np.array([[0.5 * (1 - part), 0.8 + 0.2 * (1 - part), 0.5 + 0.3 * (1 - part)]])
    np.testing.assert_allclose(misfit(P, "aps"), wanted)
    np.testing.assert_allclose(misfit(P, "lac"), 1 - P)


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, "0.9", None])
def test_a_coverage_that_cannot_be_is_refused(coverage):
    with pytest.raises(InputError, match=r"between 0 and 1, such as 0\.9, got"):
        refuse_coverage(coverage, "lac")


def test_a_kind_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="kind must be lac or aps, got 'raps'"):
        refuse_coverage(0.9, "raps")
