"""Rows: which rows of the whole are at hand, where several processes share the nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Rows:
    """The numbers of a process's rows, and of the stored values of its X, in the whole graph.

    Dropout needs them: an element's mask is a hash of its number in the whole matrix, so that many
    processes draw the masks of one.

    nodes    (rows,) int64
    entries  (entries,) int64, where X is sparse
    """

    nodes: Tensor
    entries: Tensor | None = None

    def starts(self, shape: tuple[int, ...]) -> tuple[Tensor, int]:
        """The first element of each row in the whole, and the number of elements a row.

        A vector holds the stored values of X.
        """
        if len(shape) == 2:
            return self.nodes * shape[1], shape[1]
        assert self.entries is not None
        return self.entries, 1
