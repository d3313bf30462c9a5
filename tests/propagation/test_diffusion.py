"""GDC: personalised PageRank or heat in place of the links, for any model."""

import numpy as np
import pytest
import scipy.linalg
import torch
from support.exact import exact_matrix

from gcnii import data
from gcnii.nn.appnp import resolvent
from gcnii.propagation import Adjacency, adjacency, diffuse
from gcnii.propagation import diffusion as diffusion_file
from gcnii.results.fit import fit


@pytest.fixture(scope="module")
def graph():
    return data.load("csbm", n=80, degree=6, signal=3.0, labels_per_class=10)


@pytest.fixture(scope="module")
def walk(graph):
    return exact_matrix(graph).to_dense().numpy()


def by_column(S):
    return S / S.sum(0)


def test_with_nothing_cut_ppr_is_the_closed_form(graph, walk):
    exact = 0.15 * np.linalg.inv(np.eye(80) - 0.85 * walk)
    S = diffuse(adjacency(graph), "ppr", teleport=0.15, top_k=0, threshold=0.0)
    np.testing.assert_allclose(S.toarray(), by_column(exact), atol=1e-9)


def test_with_nothing_cut_heat_is_the_matrix_exponential(graph, walk):
    exact = scipy.linalg.expm(-3.0 * (np.eye(80) - walk))
    S = diffuse(adjacency(graph), "heat", heat_time=3.0, top_k=0, threshold=0.0)
    np.testing.assert_allclose(S.toarray(), by_column(exact), atol=1e-9)


def test_top_k_keeps_the_k_largest_of_each_column_and_they_sum_to_1(graph, walk):
    exact = 0.05 * np.linalg.inv(np.eye(80) - 0.95 * walk)
    S = diffuse(adjacency(graph), "ppr", top_k=7).toarray()
    assert ((S > 0).sum(0) == 7).all()
    np.testing.assert_allclose(S.sum(0), 1)
    for column in range(80):
        assert set(np.flatnonzero(S[:, column])) == set(np.argsort(exact[:, column])[-7:])


def test_a_threshold_keeps_what_is_at_least_as_large(graph, walk):
    exact = scipy.linalg.expm(-5.0 * (np.eye(80) - walk))
    S = diffuse(adjacency(graph), "heat", top_k=0, threshold=0.01).toarray()
    assert ((S > 0) == (exact >= 0.01)).all()


def test_columns_are_diffused_in_blocks_to_the_same_matrix(graph, monkeypatch):
    whole = diffuse(adjacency(graph), "ppr", top_k=10)
    monkeypatch.setattr(diffusion_file, "BLOCK", 80 * 7)
    assert (diffuse(adjacency(graph), "ppr", top_k=10) != whole).nnz == 0


def test_any_model_trains_over_a_diffusion(graph):
    settings = {"width": 16, "epochs": 30, "lr": 0.02, "device": "cpu"}
    settings |= {"diffusion": "ppr", "top_k": 16}
    for model in ("gcn", "gcnii"):
        assert fit(graph, model, layers=2, **settings).test[0] > 0.75


def test_a_diffusion_replaces_the_links_and_is_normalised_like_them(graph):
    S = diffuse(adjacency(graph), "ppr", top_k=16)
    looped = S.toarray() + np.eye(80)
    scale = np.diag(looped.sum(1) ** -0.5)
    np.testing.assert_allclose(
        Adjacency.of(S).whole.to_dense().numpy(), scale @ looped @ scale, atol=1e-12
    )


def test_the_closed_form_is_made_once_and_refuses_large_graphs(graph, monkeypatch):
    P = exact_matrix(graph)
    assert resolvent(P, 0.1) is resolvent(P, 0.1)
    expected = 0.1 * torch.linalg.inv(torch.eye(80, dtype=torch.float64) - 0.9 * P.to_dense())
    torch.testing.assert_close(resolvent(P, 0.1), expected)
    monkeypatch.setattr("gcnii.nn.appnp.LARGEST", 79)
    with pytest.raises(ValueError, match="takes graphs of up to 79 nodes, got 80; use appnp"):
        resolvent(exact_matrix(graph), 0.1)
