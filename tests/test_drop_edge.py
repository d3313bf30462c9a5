"""DropEdge: a property of the propagation, drawn again each epoch, for any model."""

import numpy as np
import pytest
import torch
from support.each_kind import of_each_kind
from support.exact import exact_matrix
from support.fitting import fitting

from gcnii import data
from gcnii.dropout import drop_edges, epoch_key, kept_of, keyed
from gcnii.graph import Graph
from gcnii.propagation import Adjacency, adjacency
from gcnii.results.fit import fit

SMALL = {"layers": 3, "width": 16, "dropout": 0.0, "epochs": 8}
SMALL |= {"device": "cpu", "precision": "float64"}


@pytest.fixture(scope="module")
def graph():
    return data.load("csbm", n=120, degree=6, signal=3.0, labels_per_class=10)


@pytest.fixture(scope="module")
def small():
    return data.load("csbm", n=60, degree=6, signal=3.0, labels_per_class=10)


def drop(links, rate, form="entries", epoch=0, seed=0):
    with keyed(epoch_key(torch.tensor([seed]), epoch)[0]):
        return drop_edges(links, kept_of(rate), form)


def literal(A):
    A = A + np.eye(len(A))
    scale = np.diag(A.sum(1) ** -0.5)
    return scale @ A @ scale


def left_over(links, P):
    """A without the entries that P lost."""
    A = np.zeros(links.pattern.shape)
    kept = (P.values != 0) & (links.weights != 0)
    A[links.pattern.row_of[kept], links.pattern.columns[kept].long()] = 1
    return A


@pytest.mark.parametrize("form", ["entries", "pairs"])
def test_the_links_left_are_normalised_again_and_self_loops_stay(graph, form):
    links = Adjacency.of(adjacency(graph))
    P = drop(links, 0.6, form)
    A = left_over(links, P)
    assert 0.3 < A.sum() / links.weights.sum() < 0.5
    np.testing.assert_allclose(P.to_dense().numpy(), literal(A), atol=1e-12)


def test_in_the_authors_form_a_link_may_be_lost_in_one_direction_only(graph):
    links = Adjacency.of(adjacency(graph))
    entries, pairs = (left_over(links, drop(links, 0.5, form)) for form in ("entries", "pairs"))
    assert (entries != entries.T).any()
    assert (pairs == pairs.T).all()


def test_each_epoch_and_seed_loses_links_of_its_own_and_the_same_ones_again(graph):
    links = Adjacency.of(adjacency(graph))
    first, again, later, other = (
        drop(links, 0.5, epoch=e, seed=s) for e, s in ((0, 0), (0, 0), (1, 0), (0, 1))
    )
    assert torch.equal(first.values, again.values)
    assert not torch.equal(first.values, later.values)
    assert not torch.equal(first.values, other.values)


def test_at_rate_0_nothing_changes(graph):
    plain, dropped = (fit(graph, "gcnii", **SMALL, **extra) for extra in ({}, {"drop_edge": 0.0}))
    assert plain.runs[0].curve == dropped.runs[0].curve
    links = Adjacency.of(adjacency(graph))
    assert torch.equal(drop(links, 0.0).values, exact_matrix(graph).values)


@pytest.mark.parametrize("form", ["entries", "pairs"])
def test_each_seed_loses_the_same_links_alone_and_batched(graph, form):
    settings = SMALL | {"drop_edge": 0.5, "drop_form": form}
    together, alone = (
        fit(graph, "gcnii", seeds=range(3), batch=batch, **settings) for batch in (3, 1)
    )
    curves = [np.array([run.curve for run in result.runs]) for result in (together, alone)]
    np.testing.assert_allclose(*curves, rtol=1e-10)
    assert curves[0][0, 0, 0] != curves[0][1, 0, 0]


@of_each_kind("model")
def test_every_model_trains_on_the_links_that_are_left(model, small):
    wanted = {"layers": 2, "width": 8, "dropout": 0.0, "epochs": 3}
    wanted |= {"device": "cpu", "precision": "float64", "batches": "full"}
    settings = fitting(model, wanted)
    whole, dropped, batched = (
        fit(small, model, seeds=range(2), batch=batch, drop_edge=rate, **settings)
        for rate, batch in ((0.0, 1), (0.5, 1), (0.5, 2))
    )
    np.testing.assert_allclose(
        *([run.curve for run in one.runs] for one in (dropped, batched)), rtol=1e-8
    )
    # an MLP does not use links
    assert (whole.runs[0].curve != dropped.runs[0].curve) == (model != "mlp")


def test_evaluation_sees_every_link(graph):
    result = fit(graph, "gcnii", **SMALL | {"drop_edge": 0.9})
    test = graph.splits[0].test
    right = (result.predict(graph, "cpu") == graph.y)[test]
    assert right.mean() == pytest.approx(result.runs[0].test)


def test_a_node_without_neighbours_stays_finite():
    A = adjacency(Graph(X=np.eye(3), edges=[[0], [1]]))
    assert drop(Adjacency.of(A), 0.99).to_dense()[2].tolist() == [0, 0, 1]
    for norm in ("walk", "symmetric+I", "first-order", "mean", "enhanced"):
        assert Adjacency.of(A, norm).whole.values.isfinite().all()


@pytest.mark.parametrize(
    ("rate", "sentence"), [(1.0, "in [0, 1), got 1.0"), (-0.1, "in [0, 1), got -0.1")]
)
def test_a_rate_outside_0_to_1_is_refused(graph, rate, sentence):
    with pytest.raises(ValueError) as error:
        fit(graph, drop_edge=rate)
    assert str(error.value) == f"drop_edge must be a number {sentence}"
