"""Section 3: iterative shrinkage-thresholding is a network of GCNII*'s layers, or of GCNII's."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso as Reference
from support.theory_graphs import SEEDS, graph_of

from gcnii.nn import MODELS
from gcnii_paper.theory.lasso import (
    Lasso,
    ista_network,
    iterates,
    plain_network,
    soft_threshold,
    sparse_coding,
)
from gcnii_paper.theory.spectrum import exact_matrix


def alone(problem):
    """P̃ without edges, and the features of the network."""
    return exact_matrix(graph_of([], len(problem.Y))), torch.tensor(problem.Y)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(1, 12), st.floats(0, 1), st.floats(0.05, 0.9))
def test_the_scores_after_each_layer_are_ista_s_iterates(seed, steps, penalty, alpha):
    problem = sparse_coding(3, 5, 7, 2, seed)
    problem = Lasso(problem.B, problem.Y, penalty)
    with torch.no_grad():
        found = ista_network(problem, steps, alpha=alpha)(*alone(problem))
    np.testing.assert_allclose(found, problem.ista(steps), atol=1e-12)


def test_the_hidden_states_of_one_network_are_the_iterates_by_sign():
    problem = sparse_coding()
    model, (P, Y) = ista_network(problem, 9), alone(problem)
    assert type(model) is MODELS["gcnii-star"]
    H0 = model.dense["encode"](Y).relu()
    for steps in range(1, 10):
        H = model.convs[:steps](P, H0, H0, model.drop).detach().numpy()
        X = problem.ista(steps)
        np.testing.assert_allclose(
            H[:, :-1], np.hstack([X.clip(min=0), (-X).clip(min=0)]), atol=1e-12
        )


def test_plain_gcnii_of_twice_the_width_runs_ista_to_1e_14():
    problem = sparse_coding()
    star, plain = ista_network(problem, 256), plain_network(problem, 256)
    assert type(plain) is MODELS["gcnii"]
    widths = [model.dense["encode"].out_features for model in (star, plain)]
    assert widths == [49, 98]
    with torch.no_grad():
        np.testing.assert_allclose(plain(*alone(problem)), problem.ista(256), rtol=0, atol=3e-14)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(0, 12), st.floats(0, 1), st.floats(0.05, 0.9))
def test_the_scores_of_plain_gcnii_are_ista_s_iterates(seed, steps, penalty, alpha):
    problem = sparse_coding(3, 5, 7, 2, seed)
    problem = Lasso(problem.B, problem.Y, penalty)
    with torch.no_grad():
        found = plain_network(problem, steps, alpha=alpha)(*alone(problem))
    np.testing.assert_allclose(found, problem.ista(steps), atol=1e-12)


def test_the_objective_never_rises_and_codes_become_sparse():
    found = iterates(sparse_coding(), (1, 4, 16, 64, 256))
    objectives, shares = [row.objective for row in found], [row.nonzero for row in found]
    assert objectives == sorted(objectives, reverse=True)
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.9
    assert shares[-1] < 0.2
    assert max(max(row.difference, row.plain_difference) for row in found) < 1e-12


def test_the_objective_of_the_documented_problem_falls_from_24_to_4():
    first, last = iterates(sparse_coding(), (1, 256))
    assert (first.objective, last.objective) == pytest.approx((24.3356, 4.5385), abs=1e-4)


def test_it_ends_where_another_solver_of_the_lasso_does():
    problem = sparse_coding()
    m = len(problem.B)
    solver = Reference(alpha=problem.penalty / m, fit_intercept=False, tol=1e-12, max_iter=100_000)
    expected = np.stack([solver.fit(problem.B, y).coef_ for y in problem.Y])
    np.testing.assert_allclose(problem.ista(20_000), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("z", "shrunk"), [(3.0, 2.0), (0.5, 0.0), (-0.5, 0.0), (-3.0, -2.0), (1.0, 0.0)]
)
def test_soft_thresholding_draws_to_zero_by_the_threshold(z, shrunk):
    assert soft_threshold(np.array([z]), 1.0).tolist() == [shrunk]
