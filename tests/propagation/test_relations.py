"""Links in nine divisions: normalised together, gathered over separately."""

import numpy as np
import pytest
import torch
from torch.func import vmap

from gcnii.data import Neighbourhood
from gcnii.dropout import drop_edges, epoch_key, kept_of, keyed
from gcnii.propagation import RelationalAdjacency, RelationalMatrix
from gcnii.propagation.relations import DIVISIONS

N = 12


def random_neighbourhood(seed=0):
    random = np.random.default_rng(seed)
    edges = np.stack(np.divmod(random.permutation(N * N)[:50], N))
    edges = edges[:, edges[0] != edges[1]]
    return Neighbourhood(edges, random.integers(0, 8, edges.shape[1]))


@pytest.fixture
def near():
    return random_neighbourhood()


@pytest.fixture
def relations(near):
    return RelationalAdjacency.of_neighbours(near, N)


def literal(near, kept=None):
    """(9, n, n): the weights of each division by the equation, edge by edge."""
    edges = [
        (u, v, r) for (u, v), r in zip(near.edges.T.tolist(), near.relation.tolist(), strict=True)
    ]
    edges = [edge for i, edge in enumerate(edges) if kept is None or kept[i]] + [
        (v, v, 8) for v in range(N)
    ]
    degree = np.bincount([v for _, v, _ in edges], minlength=N)
    P = np.zeros((9, N, N))
    for u, v, r in edges:
        P[r, v, u] = degree[v] ** -0.5 * degree[u] ** -0.5
    return P


def divisions(P):
    """(9, n, n) from P's two forms, which must agree."""
    apart = P.apart.to_dense().reshape(N, DIVISIONS, N, DIVISIONS)
    assert all(
        (apart[:, r, :, s] == 0).all() for r in range(DIVISIONS) for s in range(DIVISIONS) if r != s
    )
    apart = torch.stack([apart[:, r, :, r] for r in range(DIVISIONS)])
    merged = P.merged.to_dense().reshape(N, N, DIVISIONS).permute(2, 0, 1)
    assert torch.equal(apart, merged)
    return apart


def test_a_node_gathers_by_the_degrees_of_both_ends_over_all_divisions(near, relations):
    np.testing.assert_allclose(divisions(relations.whole), literal(near), atol=1e-15)


def test_as_a_matrix_it_is_the_sum_of_its_divisions(near, relations):
    assert relations.whole.shape == (N, N)
    np.testing.assert_allclose(relations.whole.to_dense(), literal(near).sum(0), atol=1e-15)


def test_the_order_of_the_pairs_does_not_matter(near, relations):
    order = np.random.default_rng(1).permutation(len(near.relation))
    other = RelationalAdjacency.of_neighbours(
        Neighbourhood(near.edges[:, order], near.relation[order]), N
    )
    assert torch.equal(divisions(other.whole), divisions(relations.whole))


def test_dropped_links_do_not_count_in_degrees(near, relations):
    kept = torch.tensor(np.random.default_rng(2).random(len(relations.weights)) < 0.5)
    pattern = relations.pattern
    left = {
        (int(u), int(v)) for u, v, k in zip(pattern.columns, pattern.row_of, kept, strict=True) if k
    }
    expected = literal(near, [tuple(edge) in left for edge in near.edges.T.tolist()])
    np.testing.assert_allclose(divisions(relations.matrix(kept)), expected, atol=1e-15)


@pytest.mark.parametrize("form", ["entries", "pairs"])
def test_dropedge_drops_different_links_for_each_replica(relations, form):
    relations = relations.to("cpu", torch.float64)
    keys = epoch_key(torch.arange(3), 1)
    M = torch.randn(N * DIVISIONS, 2, dtype=torch.float64)

    def gather(key):
        with keyed(key):
            P = drop_edges(relations, kept_of(0.5), form)
            assert isinstance(P, RelationalMatrix)
            return P.apart @ M, P.merged @ M

    for together, alone in zip(
        vmap(gather)(keys), zip(*map(gather, keys), strict=True), strict=True
    ):
        torch.testing.assert_close(together, torch.stack(alone))
        assert not torch.equal(together[0], together[1])


def test_the_layout_of_the_divisions_is_made_once(relations):
    one, other = relations.matrix(), relations.matrix(torch.ones(len(relations.weights)))
    assert one.layout is other.layout
    assert one.apart is one.apart


def test_some_of_the_nodes_keep_the_relations_among_them(near, relations):
    nodes = np.array([7, 2, 11, 0, 5])
    place = {node: i for i, node in enumerate(nodes)}
    inside = np.isin(near.edges, nodes).all(0)
    edges = (
        np.vectorize(place.get)(near.edges[:, inside]) if inside.any() else np.zeros((2, 0), int)
    )
    expected = RelationalAdjacency.of_neighbours(
        Neighbourhood(edges, near.relation[inside]), len(nodes)
    )
    induced = relations.induced(torch.tensor(nodes))
    torch.testing.assert_close(induced.whole.to_dense(), expected.whole.to_dense())
    torch.testing.assert_close(induced.whole.merged.to_dense(), expected.whole.merged.to_dense())


def test_it_is_the_same_in_another_precision(relations):
    single = relations.to("cpu", torch.float32)
    torch.testing.assert_close(divisions(single.whole), divisions(relations.whole).float())
