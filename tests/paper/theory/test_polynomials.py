"""Theorem 2: a real GCNII whose scores are a polynomial filter's."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.theory_graphs import SEEDS, cycle, random_graphs, signal, star

from gcnii.nn import MODELS
from gcnii_paper.theory.filters import (
    BAND_PASS,
    FILTERS,
    apply_filter,
    change_basis,
    coefficients,
    four_channels,
    gain,
    gammas,
    horner,
    one_channel,
    own_alphas,
    realise,
    recurrence_as_printed,
    substitute,
    two_channels,
    without_zeros,
)
from gcnii_paper.theory.spectrum import LazyWalk, exact_matrix
from gcnii_paper.theory.study import karate_club

some = settings(max_examples=40, deadline=None)
THETAS = st.lists(st.floats(-1, 1), min_size=1, max_size=16)
# with many partial sums of 0
HALVES = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5, 1.0]), min_size=1, max_size=16)
GOOD = st.lists(st.floats(0.1, 1), min_size=1, max_size=16)


def inputs(graph, seed=0, columns=2):
    return exact_matrix(graph, loops="remove"), torch.tensor(signal(graph.n, seed, columns))


def scores(model, P, X):
    with torch.no_grad():
        return model(P, X)


def in_powers(P, c, X):
    dense = P.to_dense()
    return sum(one * torch.linalg.matrix_power(dense, l) @ X for l, one in enumerate(c))


@some
@given(random_graphs(), THETAS, SEEDS)
def test_two_channels_give_the_filter_where_no_partial_sum_is_nearly_zero(graph, theta, seed):
    assume(min(map(abs, change_basis(theta))) > 1e-3)
    P, X = inputs(graph, seed)
    torch.testing.assert_close(
        scores(two_channels(theta, 2), P, X), apply_filter(P, theta, X), rtol=0, atol=1e-9
    )


@some
@given(random_graphs(), THETAS | HALVES, SEEDS)
def test_four_channels_give_every_filter(graph, theta, seed):
    P, X = inputs(graph, seed)
    torch.testing.assert_close(
        scores(four_channels(theta, 2), P, X), apply_filter(P, theta, X), rtol=0, atol=1e-9
    )


@some
@given(random_graphs(), THETAS | HALVES, SEEDS)
def test_gcnii_star_gives_every_filter_by_horner_s_rule(graph, theta, seed):
    P, X = inputs(graph, seed)
    torch.testing.assert_close(
        scores(horner(theta, 2), P, X), apply_filter(P, theta, X), rtol=0, atol=1e-9
    )


@some
@given(random_graphs(), GOOD, SEEDS)
def test_one_channel_is_enough_where_neither_x_nor_a_partial_sum_is_negative(graph, c, seed):
    P, X = inputs(graph, seed)
    found = scores(one_channel(change_basis(c), 2), P, X.abs())
    torch.testing.assert_close(found, in_powers(P, c, X.abs()), rtol=0, atol=1e-9)


@given(THETAS)
def test_the_change_of_basis_is_its_own_inverse(theta):
    np.testing.assert_allclose(change_basis(change_basis(theta)), theta, atol=1e-7)


@some
@given(random_graphs(), THETAS, SEEDS)
def test_the_filter_in_powers_of_l_is_that_in_powers_of_p(graph, theta, seed):
    P, X = inputs(graph, seed)
    torch.testing.assert_close(
        apply_filter(P, theta, X), in_powers(P, change_basis(theta), X), rtol=0, atol=1e-9
    )


@given(GOOD)
def test_gammas_from_zero_give_back_the_coefficients(c):
    np.testing.assert_allclose(coefficients(gammas(c), start=0.0), [*c, 0], rtol=1e-12)


def test_with_an_alpha_for_each_layer_five_of_them_give_a_filter_of_order_five():
    P, X = inputs(karate_club())
    theta = change_basis((0.7, 0.3, 0.0, 2.0, 5.0, 1.0))  # unequal top coefficients, and a zero
    model = own_alphas(theta, 2)
    assert (type(model), len(model.convs)) == (MODELS["gcnii"], 5)
    assert all(0 <= conv.alpha <= 1 for conv in model.convs)
    torch.testing.assert_close(scores(model, P, X), apply_filter(P, theta, X), rtol=0, atol=1e-13)


@some
@given(random_graphs(), THETAS | HALVES, SEEDS)
def test_with_an_alpha_for_each_layer_every_filter_is_exact(graph, theta, seed):
    P, X = inputs(graph, seed)
    torch.testing.assert_close(
        scores(own_alphas(theta, 2), P, X), apply_filter(P, theta, X), rtol=0, atol=1e-9
    )


@given(st.floats(0, 1), st.floats(-10, 10), st.floats(0, 1), st.floats(-10, 10))
def test_from_x_the_two_highest_coefficients_never_have_opposite_signs(a, g, later, gamma):
    """One layer, and one more: γ ((1-α) P̃ h + α x)."""
    c = [g * a, g * (1 - a)]
    assert c[1] * c[0] >= 0
    c = [gamma * later, *(gamma * (1 - later) * one for one in c)]
    assert c[2] * c[1] >= 0


def test_top_coefficients_of_opposite_signs_take_one_layer_more():
    assert [len(own_alphas(change_basis(c)).convs) for c in [(1, 2), (1, -2), (1, 2, 3)]] == [
        1,
        2,
        2,
    ]


def test_from_x_the_two_highest_coefficients_are_equal_with_the_proof_s_alpha():
    assert coefficients((2, 3, 5), start=1.0) == [5, 15, 30, 30]


@pytest.mark.parametrize(
    ("build", "name", "layers", "width"),
    [
        (one_channel, "gcnii", 4, 2),
        (two_channels, "gcnii", 4, 4),
        (four_channels, "gcnii", 4, 8),
        (horner, "gcnii-star", 2, 4),
    ],
)
def test_it_is_the_registry_s_network_with_k_plus_1_layers_or_k_minus_1(build, name, layers, width):
    model = build((1.0, 2.0, 3.0), 2)
    assert type(model) is MODELS[name]
    assert (len(model.convs), model.dense["encode"].out_features) == (layers, width)
    assert {conv.alpha for conv in model.convs} == {0.5}
    assert model.convs[0].beta == pytest.approx(np.log(1.5))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float64}


def test_h0_is_x_by_sign_and_the_first_layer_maps_every_state_to_zero():
    P, X = inputs(star(3), columns=1)
    theta = (0.5, 1.0, -0.25)
    model, gamma = two_channels(theta), gammas(change_basis(theta))
    seen = []
    for conv in model.convs:
        conv.register_forward_hook(
            lambda conv, given, out: seen.append((given[1].clone(), given[2].clone(), out.clone()))
        )
    scores(model, P, X)
    both = torch.cat([X.relu(), (-X).relu()], 1)
    first, second = seen[0], seen[1]
    assert torch.equal(first[0], both)
    torch.testing.assert_close(first[2], torch.zeros(4, 2).double(), rtol=0, atol=1e-15)
    assert torch.equal(second[1], both)
    h = second[2].relu()
    torch.testing.assert_close(h[:, :1] - h[:, 1:], gamma[0] * X)  # γ_0 (P̃ 0 + x)


def test_each_layer_s_identity_mapping_is_two_gamma():
    theta = (0.5, 1.0, 0.25)
    model = one_channel(theta, 3)
    for conv, gamma in zip(model.convs, [0.0, *gammas(change_basis(theta))], strict=True):
        mapping = (1 - conv.beta) * torch.eye(3) + conv.beta * conv.W
        torch.testing.assert_close(mapping, 2 * gamma * torch.eye(3).double())


def test_the_error_of_epsilon_is_epsilon_times_the_powers_it_stands_for():
    P, X = inputs(karate_club(), columns=1)
    theta = change_basis((1.0, 0.0, 1.0))
    for epsilon in (1e-2, 1e-4):
        error = scores(two_channels(theta, epsilon=epsilon), P, X) - apply_filter(P, theta, X)
        torch.testing.assert_close(error, epsilon * (P @ X), rtol=1e-6, atol=0)


def test_four_channels_need_no_epsilon_however_small_the_filter():
    P, X = inputs(star(3))
    theta = [1e-12 * one for one in change_basis((1.0, 0.0, 1.0))]
    error = scores(four_channels(theta, 2), P, X) - apply_filter(P, theta, X)
    assert error.abs().max() < 1e-15  # as (1-β) I + β W is rounded


def test_only_zeros_before_a_coefficient_are_replaced():
    assert without_zeros((0, 2, 0, -1e-9, 3, 0, 0), 1e-3) == [1e-3, 2, 1e-3, -1e-3, 3, 0, 0]
    assert gammas((2, 0, 0)) == [0, 0, 2]
    assert gammas((0, 0)) == [0, 0]


def test_smaller_epsilons_are_better_until_rounding_takes_over_and_in_float32_sooner():
    P, X = inputs(karate_club(), columns=1)
    found = [substitute(P, BAND_PASS, X, epsilon) for epsilon in (1e-2, 1e-4, 1e-8)]
    assert found[0].float64 > found[1].float64 > found[2].float64
    assert found[2].float64 < 1e-6
    assert found[1].float32 < found[0].float32 < found[2].float32
    assert [row.largest for row in found] == pytest.approx([2e2, 2e4, 2e8])


def test_personalised_pagerank_has_gammas_of_one_minus_alpha_and_last_alpha():
    found = gammas([0.1 * 0.9**l for l in range(16)])
    np.testing.assert_allclose(found, [0.9] * 15 + [0.1])


def test_the_proof_s_recurrence_is_another_polynomial_without_a_constant():
    P, X = inputs(cycle(6))
    printed = recurrence_as_printed(P, (2.0,), X)  # K = 1: c_0 x is wanted
    torch.testing.assert_close(printed, 4 * (P @ X))
    assert (printed - apply_filter(P, (2.0,), X)).abs().max() > 0.1


def test_named_filters_are_realised_to_1e_9_and_one_channel_and_the_proof_miss_the_signed_ones():
    P, X = inputs(karate_club(), columns=1)
    for name, theta in FILTERS.items():
        found = realise(P, name, theta, X.abs())
        assert max(found.four_channels, found.horner, found.own_alphas) < 1e-9, name
        assert found.as_printed > 0.05, name
        assert (found.one_channel > 0.05) == (min(change_basis(theta)) < 0), name
        assert found.two_channels < (1e-6 if name.startswith("band") else 1e-9), name


def test_an_eigenvector_is_multiplied_by_the_filter_at_its_eigenvalue():
    graph = karate_club()
    values, vectors = LazyWalk.on(graph).tones(7)
    found = gain(exact_matrix(graph), horner(BAND_PASS, 7), torch.tensor(vectors))
    np.testing.assert_allclose(found, values**2 * (2 - values) ** 2, atol=1e-12)


@pytest.mark.parametrize("theta", [(), (1.0, float("nan"))])
def test_a_filter_without_finite_coefficients_is_refused(theta):
    with pytest.raises(ValueError, match="at least one coefficient, and all of them finite"):
        two_channels(theta)
