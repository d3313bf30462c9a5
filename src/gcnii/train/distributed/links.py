"""Links: the rows of an adjacency that one process has, by their numbers in the whole graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.errors import InputError
from gcnii.graph import Piece, Places
from gcnii.graph.piece import Numbers
from gcnii.graph.weights import EdgeWeights, weighed
from gcnii.propagation import (
    Direction,
    GraphAdjacency,
    Loops,
    of_edges,
    oriented,
    refuse_loops,
    with_diagonal,
)
from gcnii.train.recipe import Recipe


@dataclass(frozen=True, eq=False)
class Links:
    """The entries of some rows of Ã = A + I, row by row.

    own       (rows,) the numbers of these rows, sorted
    row       (entries,) of each entry, counted from the first of these rows
    column    (entries,) by its number in the whole graph
    weights   (entries,) A's values, in float64
    diagonal  (entries,) whether an entry is on the diagonal
    numbers   (entries,) among all entries of the whole graph
    pairs     gives (entries,) numbers that (u, v) and (v, u) share
    halo      (halo,) nodes that are not among the rows, sorted; all other columns are among them
    owner     (halo,) the process of each
    """

    own: Tensor
    row: Tensor
    column: Tensor
    weights: Tensor
    diagonal: Tensor
    numbers: Tensor
    pairs: Callable[[], Tensor]
    halo: Tensor
    owner: Tensor

    @classmethod
    def of_whole(
        cls, links: GraphAdjacency, owner: Tensor, rank: int, again: Callable[[], GraphAdjacency]
    ) -> Links:
        """Those of process `rank`, of a graph that is here as a whole.

        again  makes its links once more, if pairs are asked for: they are not kept
        """
        pattern = links.pattern
        own = torch.nonzero(owner == rank)[:, 0]
        entries = torch.nonzero(owner[pattern.row_of] == rank)[:, 0]
        column = pattern.columns[entries].long()
        halo = torch.unique(column[owner[column] != rank])
        return cls(
            own,
            torch.searchsorted(own, pattern.row_of[entries]),
            column,
            links.weights[entries],
            links.diagonal[entries],
            entries,
            lambda: again().pairs[entries],
            halo,
            owner[halo],
        )

    @classmethod
    def of_piece(cls, piece: Piece, recipe: Recipe) -> Links:
        """Those of a piece, which has all edges that touch its nodes."""
        refuse_loops(recipe.norm, recipe.loops)
        if recipe.diffusion != "none":
            raise InputError(
                f"a diffusion needs all links of {piece.name}, and its parts hold some each; train "
                "on the graph in one file, or without a diffusion"
            )
        assert piece.places is not None
        return _Neighbourhood(piece, piece.places, recipe.edge_weights).links(recipe)


class _Neighbourhood:
    """A piece with its halo: small numbers for nodes that may have large ones.

    nodes  their numbers in the whole graph, sorted, so that links keep their order
    at     (rows,) which of them are the piece's own
    """

    def __init__(self, piece: Piece, places: Places, edge_weights: EdgeWeights = "raw"):
        self.piece, self.places = piece, places
        self.nodes = np.sort(np.concatenate([piece.rows, places.halo]))
        self.at = np.searchsorted(self.nodes, piece.rows)
        edges = np.searchsorted(self.nodes, piece.edges)
        self.A = of_edges(edges, piece.weights, len(self.nodes))
        if piece.weights is not None and edge_weights != "raw":
            self.A.data = weighed(self.A.data, edge_weights, piece.typical_weights)

    def rows(self, direction: Direction, loops: Loops) -> tuple[sp.csr_array, NDArray[np.bool_]]:
        """The piece's rows of A on the entries of Ã, and which of these are on the diagonal."""
        A = oriented(self.A, direction, loops)
        return with_diagonal(sp.csr_array(A[self.at]), self.at)

    def links(self, recipe: Recipe) -> Links:
        """As the recipe wants them."""
        places, direction = self.places, recipe.direction if self.piece.directed else "both"
        whole, diagonal = self.rows(direction, recipe.loops)
        row = _row_of(whole)
        first = places.first[direction] - whole.indptr[:-1]
        return Links(
            torch.tensor(self.piece.rows),
            torch.from_numpy(row),
            torch.from_numpy(self.nodes[whole.indices]),
            torch.from_numpy(whole.data),
            torch.from_numpy(diagonal).double(),
            torch.from_numpy(first[row] + np.arange(len(row))),
            partial(_pairs, self.piece, self.places, recipe),
            torch.tensor(places.halo),
            torch.tensor(places.owner),
        )


def _pairs(piece: Piece, places: Places, recipe: Recipe) -> Tensor:
    """Those of both directions are in the file; one-way links have some of them.

    All is made again, because few trainings ask, and what is kept takes memory in all others.
    """
    here = _Neighbourhood(piece, places)
    both, _ = here.rows("both", "keep")
    own, _ = here.rows(recipe.direction if piece.directed else "both", recipe.loops)
    codes = [_row_of(one) * len(here.nodes) + one.indices for one in (both, own)]
    return torch.from_numpy(places.pairs[np.searchsorted(*codes)])


def _row_of(matrix: sp.csr_array) -> Numbers:
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return np.asarray(rows, np.int64)
