"""What a process makes of its parts is what it would cut from the whole graph."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from support.together import graph_of

from gcnii.data import load_share
from gcnii.errors import DataError, InputError, UsageError
from gcnii.graph import Piece
from gcnii.results.fit import Session, fit_plans
from gcnii.train.distributed.shard import AdjacencyRows, _entries, _owners, pack
from gcnii.train.features import Scaling
from gcnii.train.plan import make_plan
from gcnii.train.recipe import Recipe
from gcnii.train.task import make_adjacency

pytestmark = pytest.mark.filterwarnings("ignore:pymetis is not installed")
KINDS = [{}, {"directed": True}, {"weighted": True}, {"weighted": True, "directed": True}]


def pieces_of(graph, path, parts, size):
    pack(graph, path, parts)
    return [load_share(path, rank, size) for rank in range(size)]


def owners_of(pieces):
    owner = np.empty(pieces[0].n, np.int64)
    for rank, piece in enumerate(pieces):
        owner[piece.rows] = rank
    return torch.from_numpy(owner)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parts", [2, 4])
def test_links_of_parts_are_those_cut_from_the_whole(kind, parts, tmp_path):
    graph = graph_of(n=60, **kind)
    pieces = pieces_of(graph, tmp_path / "graph", parts, 2)
    for direction in ("out", "in", "both") if graph.directed else ("out",):
        for loops in ("keep", "remove", "none"):
            settings = {"direction": direction, "loops": loops}
            plan = make_plan("gcnii", settings | {"drop_edge": 0.5, "drop_form": "pairs"})
            recipe, whole = plan.recipe, make_adjacency(graph, plan)
            for rank, piece in enumerate(pieces):
                found = AdjacencyRows.of_piece(piece, recipe)
                wanted = AdjacencyRows.of_whole(whole, owners_of(pieces), rank, recipe)
                for name in ("own", "row", "column", "weights", "diagonal", "numbers"):
                    assert torch.equal(getattr(found, name), getattr(wanted, name)), name
                assert torch.equal(found.pairs, wanted.pairs)
                there = torch.isin(found.halo, wanted.halo)
                assert torch.equal(found.halo[there], wanted.halo)
                assert torch.equal(found.owner[there], wanted.owner)


@pytest.mark.parametrize("edge_weights", ["median", "log", "rank", "none", "auto"])
def test_weights_of_parts_count_as_in_the_whole_graph(edge_weights, tmp_path):
    graph = graph_of(n=60, weighted=True)
    pieces = pieces_of(graph, tmp_path / "graph", 2, 2)
    for rank, piece in enumerate(pieces):
        recipe = make_plan("gcnii", {"edge_weights": edge_weights}, piece).recipe
        plan = make_plan("gcnii", {"edge_weights": edge_weights}, graph)
        assert recipe == plan.recipe
        whole = make_adjacency(graph, plan)
        wanted = AdjacencyRows.of_whole(whole, owners_of(pieces), rank, recipe)
        assert torch.equal(AdjacencyRows.of_piece(piece, recipe).weights, wanted.weights)


def test_parts_that_do_not_tell_what_edges_weigh_keep_the_raw_weights(tmp_path):
    piece, _ = pieces_of(graph_of(n=60, weighted=True), tmp_path / "graph", 2, 2)
    known = {name: one for name, one in piece.whole.known.items() if name != "weights"}
    object.__setattr__(piece, "whole", replace(piece.whole, known=known))
    with pytest.warns(UserWarning, match=r"count as they are \(raw\): pack the graph again"):
        assert make_plan("gcnii", {"edge_weights": "auto"}, piece).recipe.edge_weights == "raw"
    with pytest.raises(DataError, match="pack the graph again, or take edge_weights raw or none"):
        AdjacencyRows.of_piece(piece, Recipe(edge_weights="rank"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_cut_is_the_one_that_processes_would_make(kind, tmp_path):
    graph = graph_of(n=60, **kind)
    wanted = _owners(make_adjacency(graph, make_plan("gcnii", {})), 4)
    assert np.array_equal(owners_of(pieces_of(graph, tmp_path / "graph", 4, 4)), wanted)


def test_a_diffusion_needs_the_whole_graph(tmp_path):
    piece, _ = pieces_of(graph_of(n=60), tmp_path / "graph", 2, 2)
    recipe = make_plan("gcnii", {"diffusion": "ppr"}, piece).recipe
    with pytest.raises(InputError, match="a diffusion needs all edges of csbm, and its parts hold"):
        AdjacencyRows.of_piece(piece, recipe)


def test_a_piece_is_not_trained_without_the_others(tmp_path):
    piece, _ = pieces_of(graph_of(n=60), tmp_path / "graph", 2, 2)
    with pytest.raises(UsageError, match="a piece of csbm, and the others the rest; start them"):
        fit_plans(piece, [make_plan("gcnii", {}, piece)], Session(device="cpu"))


@pytest.mark.parametrize("parts", [2, 4])
def test_stored_values_of_sparse_features_keep_their_numbers(parts, tmp_path):
    graph = graph_of(n=60, sparse=True)
    for piece in pieces_of(graph, tmp_path / "graph", parts, 2):
        numbers = _entries(graph, piece, torch.device("cpu")).numpy()
        assert np.array_equal(graph.X.data[numbers], piece.X.data)
        assert np.array_equal(graph.X.indices[numbers], piece.X.indices)
        cut = Piece.cut(graph, piece.rows)
        assert np.array_equal(_entries(graph, cut, torch.device("cpu")), numbers)


class Together:
    """Sums and maxima over threads that each have some rows."""

    def __init__(self, size):
        self.barrier, self.held = threading.Barrier(size), {}

    def _all(self, numbers, join):
        self.held[threading.get_ident()] = numbers
        self.barrier.wait()
        found = join(np.stack([*self.held.values()]))
        self.barrier.wait()
        return found

    def added(self, sums):
        return self._all(sums, lambda each: each.sum(0))

    def most(self, numbers):
        return self._all(numbers, lambda each: each.max(0))


def learnt_together(X, cuts, scale):
    together, found = Together(len(cuts)), {}

    def learn(i, rows):
        found[i] = Scaling.learn(X[rows], scale, together)

    threads = [threading.Thread(target=learn, args=one) for one in enumerate(cuts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return [found[i] for i in range(len(cuts))]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", ["standard", "columns", "rows", "length"])
def test_scaling_is_learnt_on_the_rows_of_all_processes(scale, sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(3, 2, (90, 6)) * (rng.random((90, 6)) < 0.6)
    X[:, 0], X[:, 1] = X[:, 0] > 0, 5.0  # zeros and ones, and a column that never changes
    X[:70, 2], X[:, 3] = X[:70, 2] > 0, 0  # zeros and ones in one process alone
    X = sp.csr_array(X) if sparse else X
    cuts = [np.arange(0, 40), np.arange(40, 70), np.arange(70, 90)]
    wanted = Scaling.learn(X, scale)
    for one in learnt_together(X, cuts, scale):
        assert one.kind == scale
        for name in ("mean", "deviation"):
            whole, own = getattr(wanted, name), getattr(one, name)
            assert (whole is None) == (own is None)
            if whole is not None:
                np.testing.assert_allclose(own, whole, 1e-12, 1e-12)
