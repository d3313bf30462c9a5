"""The metrics against their formulas written out, and on graphs whose answer is known."""

from math import isnan, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcnii.analysis.smoothing import (
    NARROW,
    PAIRS,
    SOURCES,
    TARGETS,
    SingularValues,
    SmoothnessMeter,
)
from gcnii.graph import Graph
from gcnii.propagation import propagation_matrix
from gcnii_paper.theory.spectrum import exact_matrix

PATH = np.array([range(11), range(1, 12)])  # 12 nodes in a row
NONE = np.zeros((2, 0), int)


def complete(n):
    return np.stack(np.triu_indices(n, 1))


def random_graph(seed, n=20, m=40):
    return np.random.default_rng(seed).integers(0, n, (2, m))


def random_state(seed, n=20, width=5):
    return torch.tensor(np.random.default_rng(seed + 1).standard_normal((n, width)))


def matrix(edges, n):
    """P̃, without the graph's own self-loops."""
    return exact_matrix(Graph(X=np.eye(n), edges=edges), loops="remove").to_dense()


@given(seed=st.integers(0, 1000))
def test_energy_is_the_trace_of_the_laplacian_and_roughness_its_share(seed):
    edges, H = random_graph(seed), random_state(seed)
    state = SmoothnessMeter(edges, 20).measure(H)
    trace = float((H * (H - matrix(edges, 20) @ H)).sum())
    assert state.energy.value == pytest.approx(trace / 20)
    assert state.roughness.value == pytest.approx(trace / float(H.square().sum()))
    assert state.energy.error == state.roughness.error == 0


def test_an_edge_counts_once_however_often_and_in_whichever_direction_it_is_listed():
    H = random_state(0)
    edges = random_graph(0)
    loops = np.stack([np.arange(20)] * 2)
    again = np.concatenate([edges, edges[::-1], loops], 1)
    assert SmoothnessMeter(again, 20).measure(H) == SmoothnessMeter(edges, 20).measure(H)


@given(seed=st.integers(0, 1000))
def test_the_distance_is_that_to_where_p_tilde_leads(seed):
    edges, H = random_graph(seed, m=15), random_state(seed)  # so few edges leave several components
    values, vectors = torch.linalg.eigh(matrix(edges, 20))
    top = vectors[:, values > 1 - 1e-9]
    limit = top @ (top.T @ H)  # the lazy walk's limit: what belongs to the eigenvalue 1
    expected = float((H - limit).norm() / H.norm())
    assert SmoothnessMeter(edges, 20).measure(H).distance == pytest.approx(expected, abs=1e-7)


def test_mad_is_the_mean_cosine_distance_of_all_pairs():
    H = random_state(3)
    U = H / H.norm(dim=1, keepdim=True)
    distances = (1 - U @ U.T)[~torch.eye(20, dtype=bool)]
    mad = SmoothnessMeter(random_graph(3), 20).measure(H).mad
    assert mad.value == pytest.approx(float(distances.mean()))
    assert mad.error == 0


def test_two_zero_rows_are_alike_and_one_is_unlike_any_other():
    H = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    assert SmoothnessMeter(complete(3), 3).measure(H).mad.value == pytest.approx(2 / 3)


def test_mad_gap_is_mad_at_8_or_more_hops_less_mad_within_3():
    H = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    U = H / H.norm(dim=1, keepdim=True)
    D = 1 - U @ U.T
    hops = (torch.arange(12)[:, None] - torch.arange(12)).abs()

    def mean(mask):
        rows = mask.any(1)
        return float(((D * mask).sum(1)[rows] / mask.sum(1)[rows]).mean())

    gap = SmoothnessMeter(PATH, 12).measure(H).mad_gap
    assert gap.value == pytest.approx(mean(hops >= 8) - mean((hops >= 1) & (hops <= 3)))


def test_without_far_nodes_there_is_no_gap():
    gap = SmoothnessMeter(complete(200), 200).measure(random_state(0, 200)).mad_gap
    assert isnan(gap.value)
    assert gap.error == 0


def test_one_step_over_a_complete_graph_makes_all_nodes_alike():
    state = SmoothnessMeter(complete(9), 9).measure(matrix(complete(9), 9) @ random_state(0, 9))
    assert (state.rank, state.effective_rank.value) == (1, pytest.approx(1))
    assert max(state.distance, state.mad.value, state.roughness.value) < 1e-7


def test_without_edges_there_is_no_energy_and_every_state_is_its_own_limit():
    state = SmoothnessMeter(NONE, 6).measure(random_state(0, 6))
    assert (state.energy.value, state.distance) == (0, 0)
    assert state.mad.value > 0.5


def test_a_state_that_is_zero_has_no_rank_and_only_dead_units():
    state = SmoothnessMeter(PATH, 12).measure(torch.zeros(12, 4))
    assert (state.rank, state.effective_rank.value, state.dead, state.norm) == (0, 0, 1, 0)
    assert (state.roughness.value, state.mad.value, state.distance) == (0, 0, 0)


def test_a_unit_is_dead_if_it_is_zero_on_all_nodes():
    H = torch.ones(12, 4)
    H[:, 0], H[0, 1] = 0, 0
    assert SmoothnessMeter(PATH, 12).measure(H).dead == 0.25


def test_of_equal_singular_values_the_effective_rank_is_their_number():
    Q = torch.linalg.qr(random_state(0, 20, 6))[0]
    spectrum = SingularValues.of(Q @ Q.T[:, :9])
    assert spectrum.effective_rank.value < spectrum.rank == 6
    assert SingularValues.of(Q).effective_rank.value == pytest.approx(6)


def test_the_error_bar_of_a_wide_state_s_sketch_contains_the_truth():
    generator = torch.Generator().manual_seed(1)
    decay = 0.99 ** torch.arange(NARROW + 88, dtype=torch.float64)
    H = torch.randn(NARROW + 188, NARROW + 88, dtype=torch.float64, generator=generator) * decay
    shares = torch.linalg.svdvals(H)
    shares /= shares.sum()
    truth = float(torch.special.entr(shares).sum().exp())
    seen = SingularValues.of(H).effective_rank
    assert seen.error < 0.2 * truth
    assert abs(seen.value - truth) < seen.error


def test_a_wide_state_of_few_directions_is_measured_exactly():
    H = random_state(0, 700, 3) @ random_state(1, 3, 600)
    shares = torch.linalg.svdvals(H)[:3]
    shares /= shares.sum()
    spectrum = SingularValues.of(H)
    assert spectrum.rank == 3
    assert spectrum.effective_rank.value == pytest.approx(
        float(torch.special.entr(shares).sum().exp()), rel=1e-6
    )


def test_the_error_bar_of_a_sample_contains_the_truth():
    n, m = 30_000, PAIRS + 50_000
    edges = np.random.default_rng(0).integers(0, n, (2, m))
    H = torch.randn(n, 4, generator=torch.Generator().manual_seed(0))
    meter = SmoothnessMeter(edges, n)
    state = meter.measure(H)
    degree = np.bincount(edges[:, edges[0] != edges[1]].ravel(), minlength=n) + 1.0
    u, v = (torch.tensor(end) for end in edges[:, edges[0] != edges[1]])
    root = torch.tensor(degree).sqrt()[:, None]
    energy = float((H[u] / root[u] - H[v] / root[v]).square().sum()) / n  # few edges occur twice
    assert 0 < state.energy.error < 0.01 * energy
    assert abs(state.energy.value - energy) < 4 * state.energy.error
    U = H / H.norm(dim=1, keepdim=True)
    mad = 1 - float(U.mean(0).square().sum())
    assert 0 < state.mad.error < 1 / sqrt(SOURCES * TARGETS)
    assert abs(state.mad.value - mad) < 4 * state.mad.error


def test_a_state_of_another_graph_is_refused():
    with pytest.raises(ValueError, match="one row for each of the graph's 12 nodes, got 5"):
        SmoothnessMeter(PATH, 12).measure(torch.zeros(5, 2))


@given(seed=st.integers(0, 1000))
def test_on_a_weighted_graph_energy_and_limit_are_those_of_its_own_p(seed):
    rng = np.random.default_rng(seed)
    edges, H = np.sort(random_graph(seed, m=25), 0), random_state(seed)
    graph = Graph(X=np.eye(20), edges=edges, weights=5 * rng.random(25))
    P = propagation_matrix(graph, loops="remove", dtype=torch.float64).to_dense()
    values, vectors = torch.linalg.eigh(P)
    top = vectors[:, values > 1 - 1e-9]
    state = SmoothnessMeter.of(graph).measure(H)
    assert state.energy.value == pytest.approx(float((H * (H - P @ H)).sum()) / 20)
    distance = float((H - top @ (top.T @ H)).norm() / H.norm())
    assert state.distance == pytest.approx(distance, abs=1e-7)
