"""The measured filter of a linear network is the known one, and influence follows the walk."""

import numpy as np
import pytest
import torch
from support import knobs

from gcnii.analysis.filters import (
    LOWEST,
    eigenspaces,
    gcn_filter,
    influence,
    pagerank_filter,
    random_bands,
    response,
)
from gcnii.data import generators
from gcnii.graph import Graph
from gcnii.nn import APPNP, GCN, GCNII, MLP, PPNP, SGC
from gcnii_paper.theory.spectrum import exact_matrix


def of(graph):
    """P and X of a graph, in float64."""
    return exact_matrix(graph), torch.tensor(graph.X).double()


@pytest.fixture(scope="module")
def small():
    return of(generators.csbm(n=60, degree=4, features=5))


@pytest.fixture(scope="module")
def path():
    """0 - 1 - 2 - 3 - 4, and 5 alone."""
    return of(Graph(X=np.eye(6), edges=[[0, 1, 2, 3], [1, 2, 3, 4]], y=np.zeros(6)))


def opened(model):
    """All its ReLUs open, so that near X it is linear: the biases lift every unit above 0."""
    for name, weight in model.named_parameters():
        if name.endswith("b") or name.endswith("bias"):
            torch.nn.init.constant_(weight, 1000)
        elif name.startswith("convs"):
            torch.nn.init.uniform_(weight, 0.1, 1)
    return model.double()


@pytest.mark.parametrize("probes", [None, 3])
@pytest.mark.parametrize(
    ("build", "known"),
    [
        (lambda: SGC(5, 2, layers=3), lambda f: gcn_filter(f, 3)),
        (lambda: GCN(5, 2, layers=2), lambda f: gcn_filter(f, 2)),
        (lambda: APPNP(5, 2, layers=4, alpha=0.2), lambda f: pagerank_filter(f, 0.2, layers=4)),
        (lambda: PPNP(5, 2, alpha=0.2), lambda f: pagerank_filter(f, 0.2)),
        (
            lambda: GCNII(5, 2, layers=4, width=8, alpha=0.2, lam=0.0),
            lambda f: pagerank_filter(f, 0.2, layers=4),
        ),
        (lambda: MLP(5, 2), np.ones_like),
    ],
    ids=["SGC", "GCN", "APPNP", "PPNP", "GCNII without weights", "MLP"],
)
def test_a_linear_network_shows_its_own_filter(build, known, probes, small):
    torch.manual_seed(0)
    # With this many bands hardly one holds two frequencies; within a band g is averaged.
    found = response(opened(build()), *small, probes=probes, bands=4000)
    np.testing.assert_allclose(
        found.gain, found.beside(known(found.frequency)), atol=1e-9 if probes is None else 2e-3
    )
    np.testing.assert_allclose(found.purity, 1, atol=1e-9 if probes is None else 2e-2)
    np.testing.assert_allclose(found.error, 0, atol=1e-9 if probes is None else 2e-3)


def test_a_response_whose_squares_float32_cannot_hold_is_as_pure_as_any(small):
    P, X = small
    model = opened(SGC(5, 2, layers=3)).float()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1e-26)
    np.testing.assert_allclose(
        response(model, P.to("cpu", torch.float32), X.float(), bands=4000).purity, 1, atol=2e-2
    )


def test_an_odd_power_turns_high_frequencies_around(small):
    found = response(SGC(5, 2, layers=3).double(), *small, probes=None)
    assert found.gain[0] == pytest.approx(1)
    assert found.gain[found.frequency > 1].max() < 0


def test_relus_send_a_signal_to_other_frequencies(small):
    torch.manual_seed(0)
    found = response(GCNII(5, 2, layers=4, width=8).double(), *small, probes=None)
    assert 0 < found.purity.max() < 0.9


def test_more_probes_are_closer_and_their_error_bars_contain_the_truth(small):
    torch.manual_seed(0)
    model = GCNII(5, 2, layers=4, width=8).double()
    exact = response(model, *small, probes=None)
    place = np.minimum((exact.frequency / exact.frequency[-1] * 5).astype(int), 4)
    truth = np.array(
        [np.average(exact.gain[place == i], weights=exact.share[place == i]) for i in range(5)]
    )
    few, many = (response(model, *small, bands=5, probes=probes) for probes in (16, 256))
    assert many.error.mean() < few.error.mean() / 2
    # The two scales differ by one factor.
    factor = (many.gain @ truth) / (truth @ truth)
    assert (abs(many.gain - factor * truth) < 4 * many.error + 0.02).all()


def test_windows_on_a_large_graph_show_the_same_filter(small, monkeypatch):
    monkeypatch.setattr(knobs.SMALL_GRAPH, 10)
    torch.manual_seed(0)
    found = response(opened(APPNP(5, 2, layers=10, alpha=0.2)), *small, probes=4, bands=12)
    known = found.beside(pagerank_filter(found.frequency, 0.2, layers=10))
    np.testing.assert_allclose(found.gain, known, atol=0.03)
    with pytest.raises(ValueError, match="up to 10 nodes, got 60; use probes"):
        response(opened(APPNP(5, 2)), *small, probes=None)


def test_windows_hold_the_share_of_the_spectrum_that_lies_in_them(small, monkeypatch):
    P, _ = small
    exact = eigenspaces(P)
    monkeypatch.setattr(knobs.SMALL_GRAPH, 10)
    near = random_bands(P, 4, 50)
    lowest, windows = near[:LOWEST], near[LOWEST:]
    np.testing.assert_allclose(
        [b.frequency for b in lowest], [b.frequency for b in exact[:LOWEST]], atol=1e-6
    )
    within = [
        np.abs([b.frequency for b in exact[LOWEST:]] - np.array(w.frequency)).min() for w in windows
    ]
    assert max(within) < 0.1
    assert sum(w.share for w in windows) == pytest.approx(1, abs=0.15)


def test_a_window_leaves_out_the_eigenvectors_that_are_bands_of_their_own(small, monkeypatch):
    monkeypatch.setattr(knobs.SMALL_GRAPH, 10)
    first, *_, last = random_bands(small[0], 4, 3)
    torch.testing.assert_close(
        first.signals[:, 0] @ last.signals, torch.zeros(3).double(), atol=1e-4, rtol=0
    )


def test_an_eigenspace_is_as_large_as_the_graph_has_parts(path):
    P, _ = path
    first, *others = eigenspaces(P)
    assert first.frequency == pytest.approx(0, abs=1e-12)
    assert first.signals.shape[1] == 2  # the path, and the node that is alone
    assert sum(band.signals.shape[1] for band in others) == 4


def test_a_directed_graph_has_no_frequencies():
    graph = Graph(X=np.eye(3), edges=[[0, 1], [1, 2]], y=np.zeros(3), directed=True)
    with pytest.raises(ValueError, match="P̃ is not symmetric"):
        response(SGC(3, 1).double(), *of(graph))


def test_one_probe_has_no_error_bar(small):
    with pytest.raises(ValueError, match="at least 2 probes in at least 1 band, got 1 in 24"):
        response(SGC(5, 2).double(), *small, probes=1)


def test_the_model_is_left_as_it_was(small):
    model = GCNII(5, 2, layers=2, width=4).double().train()
    model.drop.eval()
    response(model, *small, bands=2, probes=2)
    assert (model.training, model.drop.training, model.convs.training) == (True, False, True)
    assert all(weight.grad is None for weight in model.parameters())


def test_influence_is_the_walks_share_at_each_distance(path):
    P, X = path
    found = influence(SGC(6, 1, layers=3).double(), P, X, nodes=None)
    walk = P.to_dense().matrix_power(3).numpy()
    distance = abs(np.subtract.outer(np.arange(6), np.arange(6)))
    walk[5, 5] = 1  # an isolated node hears only itself
    shares = [(walk * (distance == hop)).sum(1) / walk.sum(1) for hop in range(4)]
    np.testing.assert_allclose(found.share, np.mean(shares, 1), atol=1e-12)
    assert (found.nodes, found.silent, found.error.max()) == (6, 0, 0)


def test_without_propagation_a_node_hears_itself_alone(small):
    torch.manual_seed(0)
    found = influence(MLP(5, 2).double(), *small, nodes=8)
    assert found.share.tolist() == [1]
    assert found.reach == 0


def test_every_layer_lets_a_node_hear_one_hop_further(path):
    assert [
        len(influence(SGC(6, 1, layers=layers).double(), *path, nodes=None).share)
        for layers in (1, 2, 9)
    ] == [
        2,
        3,
        5,
    ]


def test_a_larger_alpha_keeps_influence_near(small):
    near, far = (
        influence(opened(APPNP(5, 2, layers=10, alpha=alpha)), *small, nodes=None).reach
        for alpha in (0.5, 0.1)
    )
    assert near < far / 2


def test_the_error_bar_of_a_sample_contains_the_truth_and_shrinks(small):
    torch.manual_seed(0)
    model = opened(APPNP(5, 2, layers=6))
    truth = influence(model, *small, nodes=None).share
    few, many = (influence(model, *small, nodes=nodes) for nodes in (10, 40))
    assert many.error.sum() < few.error.sum() / 2
    assert (abs(many.share - truth[: len(many.share)]) < 4 * many.error + 1e-3).all()


def test_shut_relus_are_counted_and_not_averaged(small):
    model = APPNP(5, 2).double()
    torch.nn.init.constant_(model.dense["encode"].bias, -1000)
    found = influence(model, *small, nodes=4)
    assert (found.silent, found.share.sum()) == (4, 0)
