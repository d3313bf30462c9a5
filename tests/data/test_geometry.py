"""Geom-GCN's neighbourhoods: the published files, and a computed isomap for all other graphs."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from gcnii.data import CATALOG, fetch, geometry, load, neighbourhood
from gcnii.data.benchmarks import read_neighbourhood
from gcnii.data.catalog import File
from gcnii.data.download import fetch_neighbourhood
from gcnii.errors import DataError
from gcnii.graph import Graph
from gcnii.train.hardware import tuned_cpu

GEOMETRIES = ("isomap", "poincare", "struc2vec")

# set: lines of the three files, and the number of them that replace an earlier one
PUBLISHED = {
    "cora-full": ((20237, 20122, 16358), (742, 17, 40)),
    "citeseer-full": ((13505, 16683, 12749), (466, 8, 6)),
    "pubmed-full": ((163123, 94888, 163102), (302, 0, 6)),
    "chameleon": ((123706, 62996, 119100), (10614, 3, 1082)),
    "cornell": ((1010, 1073, 964), (8, 9, 4)),
    "texas": ((1054, 1098, 970), (2, 9, 6)),
    "wisconsin": ((1660, 1403, 1590), (6, 13, 10)),
}
every_file = pytest.mark.parametrize(
    ("name", "geometry", "lines", "replaced"),
    [
        (name, *row)
        for name, counts in PUBLISHED.items()
        for row in zip(GEOMETRIES, *counts, strict=True)
    ],
)


def graph_of(edges, n):
    return Graph(X=np.ones((n, 1)), edges=edges)


def table(near, n):
    """(n, n) relations, -1 for none; rows are the nodes that gather."""
    relations = np.full((n, n), -1)
    relations[near.edges[1], near.edges[0]] = near.relation
    return relations


def test_seven_sets_have_neighbourhoods_in_three_geometries():
    assert {
        name: tuple(entry.neighbourhoods) for name, entry in CATALOG.items() if entry.neighbourhoods
    } == (dict.fromkeys(PUBLISHED, GEOMETRIES))
    assert (
        CATALOG["cora-full"]
        .neighbourhoods["isomap"]
        .url.endswith("/structural_neighborhood/outf_nodes_space_relation_cora_MDS.txt")
    )


@every_file
def test_a_file_has_as_many_lines_as_published_and_later_ones_replace_earlier(
    real_data, name, geometry, lines, replaced
):
    graph = real_data(name)
    assert read_neighbourhood(fetch_neighbourhood(name, geometry, offline=True)).shape == (4, lines)
    near = neighbourhood(graph, geometry)
    assert near.edges.shape == (2, lines - replaced)
    assert near.relation.shape == (lines - replaced,)
    assert (near.edges[0] != near.edges[1]).all()


@every_file
def test_eight_relations_occur_but_in_the_poincare_disk_of_chameleon(
    real_data, name, geometry, lines, replaced
):
    found = np.unique(neighbourhood(real_data(name), geometry).relation).tolist()
    assert found == (
        [0, 1, 2, 3, 5, 7] if (name, geometry) == ("chameleon", "poincare") else list(range(8))
    )


def test_a_line_says_neighbour_node_space_and_quadrant(tmp_path, real_data):
    lines = ["node1,node2\tspace\trelation_type", "21,36\tgraph\t3", "128,24\tlatent_space\t0"]
    (tmp_path / "file.txt").write_text("\n".join(lines) + "\n")
    assert read_neighbourhood(tmp_path / "file.txt").T.tolist() == [[21, 36, 0, 3], [128, 24, 1, 0]]
    near = table(neighbourhood(real_data("texas"), "poincare"), 183)
    # the second one gathers from the first
    assert (near[36, 21], near[24, 128], near[128, 24]) == (3, 4, -1)


@every_file
def test_a_published_file_lists_all_links_of_its_graph(real_data, name, geometry, lines, replaced):
    graph = real_data(name)
    pairs = read_neighbourhood(fetch_neighbourhood(name, geometry, offline=True))
    listed = {(int(u), int(v)) for u, v, space, _ in pairs.T if space == 0}
    assert listed == {(u, v) for u, v in both_ways(graph.edges).T.tolist() if u != v}


def test_a_graph_that_was_changed_after_loading_gets_a_computed_isomap(real_data):
    graph = real_data("texas")
    changed = replace(graph, edges=graph.edges[:, 1:])
    with pytest.raises(DataError, match="no poincare neighbourhood was published for texas"):
        neighbourhood(changed, "poincare")
    published, computed = (neighbourhood(one, "isomap") for one in (graph, changed))
    assert len(computed.relation) > 0
    assert computed.edges.shape != published.edges.shape


@pytest.mark.parametrize("geometry", ["poincare", "struc2vec"])
def test_without_a_file_the_error_says_which_model_to_take(geometry):
    with pytest.raises(DataError) as error:
        neighbourhood(graph_of([[0], [1]], 2), geometry)
    assert str(error.value) == (
        f"no {geometry} neighbourhood was published for graph; "
        "use geom-gcn-i (geometry isomap), which is computed for any graph"
    )


def test_loading_does_not_need_them_and_fetching_brings_them(toy, server, cache, monkeypatch):
    server.files["/toy/near.txt"] = content = b"neighbours"
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    near = File("toy/near.txt", f"{server.address}/toy/near.txt", digest)
    monkeypatch.setitem(CATALOG, "toy", replace(toy, neighbourhoods={"isomap": near}))
    load("toy")
    assert [path for path, _ in server.requests] == ["/toy/file.bin"]
    with pytest.raises(
        DataError, match=r"no good copy of toy/near\.txt for 'toy' .*run `gcnii data fetch toy`"
    ):
        fetch_neighbourhood("toy", "isomap", offline=True)
    assert fetch("toy") == [cache / "toy/file.bin", cache / "toy/near.txt"]
    assert fetch_neighbourhood("toy", "isomap", offline=True) == cache / "toy/near.txt"
    assert (
        fetch_neighbourhood("toy", "poincare") is fetch_neighbourhood("my/folder", "isomap") is None
    )


def lollipop():
    """A triangle 0, 1, 2 with a tail 2-3-4-5."""
    return np.array([[0, 0, 1, 2, 3, 4], [1, 2, 2, 3, 4, 5]])


def both_ways(edges):
    return np.concatenate([edges, edges[::-1]], 1)


def test_a_path_is_laid_out_on_a_line():
    Z, component = geometry.isomap(both_ways(np.array([[0, 1, 2], [1, 2, 3]])), 4)
    np.testing.assert_allclose(np.abs(np.diff(Z[:, 0])), 1)
    np.testing.assert_allclose(Z[:, 1], 0, atol=1e-7)
    assert component.tolist() == [0, 0, 0, 0]


def test_isomap_is_classical_scaling_of_the_hops_as_in_scikit_learn():
    from sklearn.manifold import Isomap

    D = np.array([[0, 1, 1, 2, 3, 4], [1, 0, 1, 2, 3, 4], [1, 1, 0, 1, 2, 3]])
    D = np.concatenate([D, [[2, 2, 1, 0, 1, 2], [3, 3, 2, 1, 0, 1], [4, 4, 3, 2, 1, 0]]])
    Z, _ = geometry.isomap(both_ways(lollipop()), 6)
    theirs = Isomap(n_neighbors=5, metric="precomputed").fit_transform(D)
    np.testing.assert_allclose(np.abs(Z), np.abs(theirs), atol=1e-7)


@pytest.mark.parametrize("n", [2, 50, 300])
def test_a_star_has_a_plane_too(n):
    edges = np.stack([np.zeros(n - 1, int), np.arange(1, n)])
    Z, _ = geometry.isomap(both_ways(edges), n)
    assert np.isfinite(Z).all()
    # The leaves are all alike, so that which of them are apart depends on the solver.
    assert np.ptp(Z[:, 0]) > 0.1


@pytest.mark.parametrize("seed", range(5))
def test_permuting_the_nodes_permutes_the_neighbourhood(seed):
    random = np.random.default_rng(seed)
    edges, order = random.integers(0, 40, (2, 120)), random.permutation(40)
    one = table(neighbourhood(graph_of(edges, 40), "isomap"), 40)
    other = table(neighbourhood(graph_of(np.argsort(order)[edges], 40), "isomap"), 40)
    np.testing.assert_array_equal(one[np.ix_(order, order)], other)


def test_every_link_is_kept_and_as_many_pairs_are_added_at_most():
    graph = graph_of(np.random.default_rng(0).integers(0, 200, (2, 500)), 200)
    near = neighbourhood(graph, "isomap")
    pairs = set(zip(*near.edges.tolist(), strict=True))
    links = {(int(u), int(v)) for u, v in both_ways(graph.edges).T if u != v}
    assert links <= pairs
    latent = (near.relation >= 4).sum()
    assert 0.9 * 2 * graph.m <= latent <= 2 * graph.m


def test_the_quadrant_is_that_of_the_neighbour_seen_from_the_node():
    Z = np.array([[0.0, 0.0], [2.0, 1.0], [-1.0, 3.0], [0.0, -1.0]])
    edges = np.array([[1, 2, 3, 0, 0], [0, 0, 0, 1, 0]])
    assert geometry.quadrant(Z, edges).tolist() == [3, 2, 1, 0, 3]


def test_components_are_laid_out_apart_and_are_never_neighbours():
    far = lollipop() + 6
    edges = np.concatenate([lollipop(), far], 1)  # and node 12 alone
    alone, _ = geometry.isomap(both_ways(lollipop()), 6)
    Z, component = geometry.isomap(both_ways(edges), 13)
    np.testing.assert_allclose(Z[:6], alone, atol=1e-12)
    np.testing.assert_allclose(Z[6:12], alone, atol=1e-12)
    near = neighbourhood(graph_of(edges, 13), "isomap")
    assert (near.relation >= 4).any()
    assert (component[near.edges[0]] == component[near.edges[1]]).all()


def test_the_leaves_of_a_hub_are_not_neighbours_of_each_other():
    leaves = np.stack([np.zeros(20, int), np.arange(1, 21)])
    tails = np.array(
        [[0, 21, 22, 23, 0, 25, 26, 0, 28, 29], [21, 22, 23, 24, 25, 26, 27, 28, 29, 30]]
    )
    near = neighbourhood(graph_of(np.concatenate([leaves, tails], 1), 31), "isomap")
    latent = near.edges[:, near.relation >= 4]
    assert latent.size
    assert not ((latent >= 1) & (latent <= 20)).all(0).any()


def test_a_graph_without_links_has_no_neighbours():
    near = neighbourhood(graph_of(np.zeros((2, 0)), 3), "isomap")
    assert near.edges.shape == (2, 0)


def test_a_component_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(geometry, "LARGEST", 3)
    neighbourhood(graph_of([[0, 1, 3], [1, 2, 4]], 5), "isomap")
    with pytest.raises(
        DataError, match="graph has 4 connected nodes, but an isomap is computed for at most 3, "
    ):
        neighbourhood(graph_of([[0, 1, 2], [1, 2, 3]], 5), "isomap")


def test_on_cora_our_isomap_finds_half_of_the_published_pairs(real_data):
    # The published ones were computed on all components at once, with a ρ that is a little smaller.
    graph = real_data("cora-full")
    published, ours = (neighbourhood(one, "isomap") for one in (graph, replace(graph)))
    pairs = [
        set((near.edges[0] * graph.n + near.edges[1])[near.relation >= 4])
        for near in (published, ours)
    ]
    assert len(pairs[0] & pairs[1]) / len(pairs[0]) == pytest.approx(0.525, abs=0.02)


def test_an_isomap_survives_denormal_numbers_that_count_as_zero():
    edges = np.random.default_rng(0).integers(0, 100, (2, 200))
    with tuned_cpu():  # SciPy's tree would crash where coordinates are zero
        assert len(neighbourhood(graph_of(edges, 300), "isomap").relation) > 0
