"""Theorem 1: the limit, the gap, the bounds, and which nodes converge first."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import brentq
from support.theory_graphs import (
    SEEDS,
    complete,
    cycle,
    graph_of,
    path,
    random_graphs,
    signal,
    star,
)

from gcnii_paper.theory.spectrum import (
    LazyWalk,
    convergence_by_degree,
    distances,
    exact_gap,
    lanczos_gap,
)
from gcnii_paper.theory.study import Study, karate_club

some = settings(max_examples=60, deadline=None)


@some
@given(random_graphs())
def test_eigenvalues_of_p_lie_above_minus_one_and_reach_one(graph):
    eigenvalues = np.linalg.eigvalsh(LazyWalk.on(graph).P.toarray())
    assert eigenvalues[0] > -1 + 1e-3  # with so few nodes, -1 is far off
    assert eigenvalues[-1] == pytest.approx(1)


@some
@given(random_graphs(), SEEDS)
def test_the_walk_ends_at_the_limit_of_each_component(graph, seed):
    walk, x = LazyWalk.on(graph), signal(graph.n, seed)
    lazy = (np.eye(graph.n) + walk.P.toarray()) / 2
    np.testing.assert_allclose(np.linalg.matrix_power(lazy, 2**14) @ x, walk.limit(x), atol=1e-9)


@some
@given(random_graphs(), SEEDS)
def test_the_corrected_and_the_spectral_bound_hold_for_every_x(graph, seed):
    for found in distances(LazyWalk.on(graph), signal(graph.n, seed), range(40)):
        assert found.distance <= found.corrected + 1e-12
        assert found.distance <= found.spectral + 1e-12


@some
@given(random_graphs(), SEEDS)
def test_the_printed_bound_holds_where_no_x_is_negative(graph, seed):
    for found in distances(LazyWalk.on(graph), np.abs(signal(graph.n, seed)), range(40)):
        assert found.distance <= found.printed + 1e-12


@some
@given(random_graphs(), SEEDS)
def test_the_spectral_rate_is_never_slower_than_the_printed_one_because_the_gap_is_at_most_one(
    graph, seed
):
    walk = LazyWalk.on(graph)
    assert 0 < walk.gap <= 1 + 1e-12
    spectral, printed = walk.depths_to(1e-3)
    assert spectral <= printed


def test_the_printed_bound_fails_for_signed_x_on_most_graphs():
    broken = 0
    for seed in range(20):
        graph = graph_of(np.random.default_rng(seed).integers(0, 8, (14, 2)), 8)
        broken += any(
            row.distance > row.printed
            for row in distances(LazyWalk.on(graph), signal(8, seed), range(40))
        )
    assert broken > 10


@pytest.mark.parametrize("n", [2, 3, 8])
def test_on_a_complete_graph_the_distance_halves_with_every_layer(n):
    walk, x = LazyWalk.on(complete(n)), signal(n, 0)
    assert walk.gap == pytest.approx(1)
    np.testing.assert_allclose(walk.limit(x), x.mean())
    found = [row.distance for row in distances(walk, x, range(6))]
    np.testing.assert_allclose(found, np.abs(x - x.mean()).max() * 0.5 ** np.arange(6))


@pytest.mark.parametrize("n", [3, 6, 25])
def test_the_gap_of_a_cycle_is_two_thirds_of_one_minus_its_cosine(n):
    assert LazyWalk.on(cycle(n)).gap == pytest.approx(2 / 3 * (1 - np.cos(2 * np.pi / n)))


@pytest.mark.parametrize("leaves", [2, 3, 10])
def test_the_gap_of_a_star_is_a_half_and_its_least_eigenvalue_is_the_hub_s_share_less_a_half(
    leaves,
):
    walk = LazyWalk.on(star(leaves))
    assert walk.gap == pytest.approx(1 / 2)
    assert walk.least == pytest.approx(1 / (leaves + 1) - 1 / 2)


@pytest.mark.parametrize("n", [4, 9, 30])
def test_the_gap_of_a_path_is_that_of_the_longest_odd_wave_that_fits_its_ends(n):
    # f_j = sin θ(j - c) about the middle c, with eigenvalue μ = (1 + 2 cos θ) / 3; an end has 2
    # neighbours with itself and not 3, which comes to f_{-1} = μ f_0.
    c = (n - 1) / 2
    theta = brentq(
        lambda t: np.sin(t * (c + 1)) - (1 + 2 * np.cos(t)) / 3 * np.sin(t * c),
        0.5 / n,
        1.2 * np.pi / n,
    )
    assert LazyWalk.on(path(n)).gap == pytest.approx(2 / 3 * (1 - np.cos(theta)))


def test_the_limit_of_a_star_is_in_proportion_to_the_root_of_the_degree():
    x = np.array([[1.0, 0], [0, 3], [0, 0], [0, 0]])
    root = np.sqrt([4, 2, 2, 2])
    expected = np.stack([2 / 10 * root, 3 * np.sqrt(2) / 10 * root], 1)  # 2m + n = 10
    np.testing.assert_allclose(LazyWalk.on(star(3)).limit(x), expected)


def test_components_keep_to_themselves_and_the_slowest_has_the_gap():
    graph = graph_of([(0, 1), (1, 2), (2, 3), (4, 5)], 7)  # a path of 4, a pair, a node alone
    walk, x = LazyWalk.on(graph), signal(7, 0)
    assert [list(nodes) for nodes in walk.components] == [[0, 1, 2, 3], [4, 5], [6]]
    assert walk.gap == LazyWalk.on(path(4)).gap
    np.testing.assert_allclose(walk.limit(x)[:4], LazyWalk.on(path(4)).limit(x[:4]))
    np.testing.assert_allclose(walk.limit(x)[4:], [x[4:6].mean(), x[4:6].mean(), x[6]])


def test_where_nothing_is_joined_every_x_is_its_own_limit():
    walk, x = LazyWalk.on(graph_of([], 3)), signal(3, 0)
    assert walk.gap == 1
    assert [row.distance for row in distances(walk, x, (0, 5))] == [0, 0]


def test_self_loops_of_a_graph_and_directions_do_not_count():
    looped = graph_of([(0, 1), (1, 0), (1, 1), (1, 2)], 3)
    directed = type(looped)(X=looped.X, edges=looped.edges, directed=True)
    for graph in (looped, directed):
        np.testing.assert_allclose(LazyWalk.on(graph).P.toarray(), LazyWalk.on(path(3)).P.toarray())


@pytest.mark.parametrize(
    "graph",
    [cycle(80), star(60), complete(30), karate_club()],
    ids=["cycle", "star", "complete", "karate"],
)
def test_lanczos_finds_the_gap_that_all_eigenvalues_give(graph):
    P = LazyWalk.on(graph).P
    assert lanczos_gap(P) == pytest.approx(exact_gap(P), abs=1e-7)


def test_tones_of_a_small_graph_are_eigenvectors_from_the_lowest_frequency_to_the_highest():
    for graph in (karate_club(), graph_of([(0, 1), (2, 3), (3, 4)], 5)):
        walk = LazyWalk.on(graph)
        values, vectors = walk.tones(6)
        np.testing.assert_allclose(vectors - walk.P @ vectors, values * vectors, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1)
        assert values[0] == pytest.approx(0, abs=1e-12)
        assert values[-1] == pytest.approx(1 - walk.least)


def test_tones_of_a_large_graph_have_hardly_any_other_frequency():
    walk = LazyWalk.on(cycle(1000))
    values, vectors = walk.tones(9)
    np.testing.assert_allclose(values, np.linspace(0, 4 / 3, 9), atol=0.02)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1)
    assert np.linalg.norm(vectors - walk.P @ vectors - values * vectors, axis=0).max() < 0.03


def test_relative_errors_by_degree_equal_those_computed_node_by_node():
    graph = karate_club()
    walk = LazyWalk.on(graph)
    found = convergence_by_degree(graph, walk, (8, 2))
    assert [(group.low, group.nodes) for group in found.groups] == [
        (1, 1),
        (2, 17),
        (4, 11),
        (8, 3),
        (16, 2),
    ]
    x = np.random.default_rng(0).random((34, 20))
    limit, lazy = walk.limit(x), (np.eye(34) + walk.P.toarray()) / 2
    for depth, error in zip(found.depths, found.groups[-1].errors, strict=True):
        each = np.abs(np.linalg.matrix_power(lazy, depth) @ x - limit) / limit
        assert error == pytest.approx(each[[0, 33]].mean())  # the two hubs
    assert found.depths == (2, 8)


def test_with_equal_degrees_or_after_convergence_there_is_no_exponent():
    assert convergence_by_degree(cycle(8), LazyWalk.on(cycle(8)), (2,)).exponents == (None,)
    assert convergence_by_degree(star(4), LazyWalk.on(star(4)), (2, 500)).exponents[1] is None


def test_the_largest_component_alone_is_graded_by_degree():
    graph = graph_of([(0, 1), (1, 2), (2, 3), (4, 5)], 7)
    assert [
        (g.low, g.nodes) for g in convergence_by_degree(graph, LazyWalk.on(graph), (2,)).groups
    ] == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("name", "gap", "least", "spectral", "printed"),
    [("cora", 0.003621, -0.483, 3813, 1.05e6), ("citeseer", 0.001256, -0.502, 10995, 8.8e6)],
)
def test_on_citation_graphs_the_printed_bound_is_empty(
    real_data, name, gap, least, spectral, printed
):
    walk = LazyWalk.on(real_data(name))
    assert walk.gap == pytest.approx(gap, abs=5e-7)
    assert walk.least == pytest.approx(least, abs=1e-3)
    assert walk.depths_to(1e-3) == (spectral, pytest.approx(printed, rel=0.01))
    assert (1 - walk.gap**2 / 2) ** 64 > 0.999


def test_on_cora_hubs_converge_first_but_less_clearly_after_64_layers(real_data):
    graph = real_data("cora")
    found = convergence_by_degree(graph, LazyWalk.on(graph), (2, 64))
    assert [group.nodes for group in found.groups] == [354, 1070, 859, 155, 35, 8, 3, 1]
    assert found.groups[0].errors[1] == pytest.approx(0.043, abs=0.004)
    assert found.groups[5].errors[1] == pytest.approx(0.013, abs=0.002)
    assert found.exponents[0] < -0.5 < found.exponents[1] < 0


def test_the_theorems_are_about_edges_without_weights():
    plain = star(4)
    graph = replace(plain, weights=[9.0] * plain.m)
    assert LazyWalk.on(graph).gap == LazyWalk.on(plain).gap
    with pytest.warns(UserWarning, match="the theorems are about edges without weights; those of"):
        study = Study(graph)
    np.testing.assert_array_equal(study.matrix.to_dense(), Study(plain).matrix.to_dense())
