"""Rows: a table of nodes or edges, wherever it comes from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gcnii.columns.table import Cells, Texts

# Names of nodes as text, None where missing; or as whole numbers, where a table has such.
Names: TypeAlias = Texts | NDArray[np.int64]


class Rows(Protocol):
    """A table with named columns."""

    @property
    def name(self) -> str:
        """What messages call it: "nodes.csv"."""

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns."""

    def __len__(self) -> int:
        """Number of rows."""

    def place(self, i: int) -> str:
        """Where row i is, for a message: "row 7 of nodes.csv"."""

    def texts(self, column: str) -> Texts:
        """The cells of one column, as they are written; None where one is empty or missing."""

    def cells(self, columns: Sequence[str], as_text: Collection[str]) -> dict[str, Cells]:
        """Columns as numbers (float32; NaN where missing) if all their cells are, else as text.

        as_text  the names of those that are text even if all their cells are numbers
        """

    def blocks(self, columns: Sequence[str]) -> Iterator[Sequence[Names]]:
        """The names in some columns, some rows at a time, from the first row on."""

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The cells of one column as numbers; NaN where a cell is none."""
