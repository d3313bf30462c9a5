"""P̃ made a block of rows at a time has the bits of P̃ made at once."""

from itertools import product
from typing import get_args

import numpy as np
import pytest
import torch

from gcnii.graph import Graph
from gcnii.propagation import Adjacency, Direction, Loops, Norm, adjacency, by_rows
from gcnii.propagation.by_rows import block_height, can_be_fixed, fixed_matrix, row_blocks

CPU = torch.device("cpu")
FORMS = product(*map(get_args, (Direction, Loops, Norm)))
FIXED = [form for form in FORMS if can_be_fixed(*form[1:])]


def graph_of(directed, weighted):
    """41 nodes, one without links, some with loops; edges are repeated unless they have weights."""
    random = np.random.default_rng(0)
    edges = random.integers(0, 40, (2, 150))
    weights = None
    if weighted:
        edges = np.unique(edges if directed else np.sort(edges, 0), axis=1)
        weights = random.random(edges.shape[1]) + 0.1
    return Graph(X=np.ones((41, 2)), edges=edges, directed=directed, weights=weights)


@pytest.fixture(autouse=True)
def _few_entries(monkeypatch):
    monkeypatch.setattr(by_rows, "ENTRIES", 10)  # fewer than some rows have


@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_every_form_of_p_has_the_same_entries_and_bits(directed, weighted, dtype):
    graph = graph_of(directed, weighted)
    for direction, loops, norm in FIXED:
        A = adjacency(graph, direction, loops)
        P = Adjacency.of(A, norm, loops).to(CPU, dtype).whole
        found = fixed_matrix(graph, direction, loops, norm, dtype)
        assert torch.equal(found.pattern.rows, P.pattern.rows)
        assert torch.equal(found.pattern.columns, P.pattern.columns)
        assert torch.equal(found.values, P.values), (direction, loops, norm)


@pytest.mark.parametrize("kind", ["median", "log", "rank", "none", "auto"])
def test_weights_count_the_same_as_in_training(kind):
    graph = graph_of(directed=True, weighted=True)
    P = Adjacency.of(adjacency(graph, "both", "keep", kind)).whole
    found = fixed_matrix(graph, "both", "keep", "symmetric", torch.float64, kind)
    assert torch.equal(found.values, P.values)


@pytest.mark.parametrize(("n", "height"), [(1, 1), (10, 10), (11, 6), (25, 9)])
def test_blocks_have_about_one_height(n, height, monkeypatch):
    monkeypatch.setattr(by_rows, "NUMBERS", 40)
    assert block_height(n, 4) == height


def test_degrees_of_columns_cannot_be_had_by_rows():
    assert not can_be_fixed("none", "symmetric")
    assert can_be_fixed("none", "walk")


def test_blocks_of_rows_multiply_as_the_whole_does():
    graph, H = graph_of(True, True), torch.randn(41, 5)
    P = fixed_matrix(graph, "out", "keep", "walk", torch.float32)
    blocks = list(row_blocks(P, 7))
    assert [rows.start for rows, _ in blocks] == [0, 7, 14, 21, 28, 35]
    assert torch.equal(torch.cat([block @ H for _, block in blocks]), P @ H)
    owners = {block.values.untyped_storage().data_ptr() for _, block in blocks}
    assert owners == {P.values.data_ptr()}
