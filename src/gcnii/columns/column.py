"""Columns: what each column of a table is taken for, and X encoded from the table by that.

They are learnt once, when a graph is made of a table, and stored in a bundle as JSON; another table
is encoded by the same Columns, found by their names in any order.

    numeric      as it is; a missing cell is the median, and 1 in a column of its own
    binary       two numbers, 0 and 1: as numeric, but never scaled
    date         days since 1970-01-01, as numeric
    categorical  a column of zeros and ones for each value; rare and unseen values share one
    words        one column for each word: TF-IDF
    matrix       the columns of a sparse matrix, as they are
    ignored      not part of X
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp

from gcnii.columns.cells import day_numbers, numbers_of, texts_of
from gcnii.columns.table import Numbers, Table, Texts, refuse_other_columns
from gcnii.columns.words import tf_idf
from gcnii.errors import DataError
from gcnii.files import Document, Maybe, check

Kind = Literal["numeric", "binary", "date", "categorical", "words", "matrix", "ignored"]
Block: TypeAlias = Numbers | sp.csr_array
Encoded: TypeAlias = tuple[Block, tuple[str, ...]]  # values (n, width) and the names of the columns

SHAPE = {
    "name": str,
    "kind": set(get_args(Kind)),
    "median": Maybe(float),
    "missing": Maybe(bool),
    "values": Maybe([str]),
    "weights": Maybe([float]),
    "other": Maybe(bool),
    "reason": Maybe(str),
}
SPARSE_ABOVE, SPARSE_BELOW = 100, 0.1  # number of columns, share of nonzero entries


@dataclass(frozen=True)
class Column:
    """What one column is taken for.

    median   of a numeric column or a date: stands in for a missing cell
    missing  whether cells were missing, which then has a feature of its own
    values   the categories, the words, or the matrix's columns that are used
    weights  the inverse document frequencies of the words
    other    whether there were rare categories, which then share a feature
    reason   why a column is ignored
    """

    name: str
    kind: Kind
    median: float = 0.0
    missing: bool = False
    values: tuple[str, ...] = ()
    weights: tuple[float, ...] = field(default=(), repr=False)
    other: bool = False
    reason: str = ""

    @property
    def width(self) -> int:
        """The number of features made of it."""
        if self.kind in ("numeric", "binary", "date"):
            return 1 + self.missing
        of_categories = (self.other + self.missing) if self.kind == "categorical" else 0
        return len(self.values) + of_categories

    @property
    def about(self) -> str:
        """What there is to say about it, in a few words."""
        match self.kind:
            case "ignored":
                return self.reason
            case "categorical":
                shown, more = self.values[:4], len(self.values) - 4
                rest = [f"{more} more"] * (more > 0) + ["others"] * self.other
                return ", ".join([*shown, *rest])
            case "words" | "matrix":
                return f"{len(self.values)} columns"
        return f"median {self.median:g}" + ", some missing" * self.missing

    def encode(self, table: Table) -> Encoded:
        """The features made of this column."""
        match self.kind:
            case "numeric" | "binary":
                return self._numbers(numbers_of(table, self.name))
            case "date":
                return self._numbers(day_numbers(table, self.name))
            case "categorical":
                return self._one_hot(texts_of(table, self.name))
            case "words":
                return tf_idf(texts_of(table, self.name), self.values, self.weights), tuple(
                    f"{self.name}: {word}" for word in self.values
                )
            case "matrix":
                return self._part(table), self.values
            case "ignored":
                return np.zeros((table.n, 0), np.float32), ()

    def _numbers(self, cells: Numbers) -> Encoded:
        lacks = np.isnan(cells)
        if not lacks.any() and not self.missing:
            return cells[:, None], (self.name,)
        filled = np.where(lacks, np.float32(self.median), cells)
        if not self.missing:
            return filled[:, None], (self.name,)
        both = np.stack([filled, lacks.astype(np.float32)], 1)
        return both, (self.name, f"{self.name} (missing)")

    def _one_hot(self, cells: Texts) -> Encoded:
        names = [f"{self.name}={value}" for value in self.values]
        place = {value: j for j, value in enumerate(self.values)}
        if self.other:
            names.append(f"{self.name} (other)")
        if self.missing:
            place[""] = len(names)
            names.append(f"{self.name} (missing)")
        rest = len(self.values) if self.other else -1  # an unseen value is none of them
        lost = place.get("", -1)
        found = np.array([lost if cell is None else place.get(cell, rest) for cell in cells], int)
        rows = np.flatnonzero(found >= 0)
        entries = (np.ones(len(rows), np.float32), (rows, found[rows]))
        return sp.csr_array(entries, (len(cells), len(names))), tuple(names)

    def _part(self, table: Table) -> sp.csr_array:
        if table.matrix is None or set(self.values) - set(table.names):
            raise DataError(
                f"the matrix of features lacks columns that {self.name} had in training"
            )
        place = {name: j for j, name in enumerate(table.names)}
        wanted = [place[name] for name in self.values]
        if wanted == list(range(len(table.names))):
            return table.matrix
        return sp.csr_array(table.matrix[:, wanted])

    def document(self) -> Document:
        """As JSON: what differs from the defaults."""
        plain = asdict(Column(self.name, self.kind))
        own = {key: value for key, value in asdict(self).items() if value != plain[key]}
        return {"name": self.name, "kind": self.kind} | own


@dataclass(frozen=True)
class Columns:
    """The columns of a table, in its order."""

    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def used(self) -> tuple[Column, ...]:
        """Those that X is made of."""
        return tuple(column for column in self.columns if column.kind != "ignored")

    @property
    def as_text(self) -> set[str]:
        """The columns whose cells are read as they are written."""
        return {one.name for one in self.columns if one.kind in ("categorical", "date", "words")}

    def encode(self, table: Table, who: str = "the table") -> Encoded:
        """X (n, d) and the names of its columns; DataError if a column is missing or unknown."""
        wanted = [column.name for column in self.used if column.kind != "matrix"]
        refuse_other_columns(who, table.columns, wanted, (one.name for one in self.columns))
        blocks, names = zip(*(column.encode(table) for column in self.used), strict=True)
        return _beside(blocks), tuple(name for block in names for name in block)

    def sharing(self, table: Table, X: Block) -> Table:
        """The table with the columns of X for its own, where they are equal: it saves memory."""
        if isinstance(X, sp.csr_array):
            return table
        cells, start = dict(table.columns), 0
        for column in self.used:
            if column.kind in ("numeric", "binary") and not column.missing:
                own = numbers_of(table, column.name)
                cells[column.name] = own if np.isnan(own).any() else X[:, start]
            start += column.width
        return replace(table, columns=cells)

    def document(self) -> list[Document]:
        """As JSON."""
        return [column.document() for column in self.columns]

    @classmethod
    def of_document(cls, document: Sequence[Document]) -> Columns:
        """From JSON, which is checked."""
        check(document, [SHAPE], "columns")
        made = ({**one, "values": tuple(one.get("values", ()))} for one in document)
        weighed = ({**one, "weights": tuple(one.get("weights", ()))} for one in made)
        return cls(tuple(Column(**one) for one in weighed))


def _beside(blocks: Sequence[Block]) -> Block:
    """The blocks side by side: CSR if wide and mostly zeros, else dense."""
    width = sum(block.shape[1] for block in blocks)
    if width > SPARSE_ABOVE and _nonzeros(blocks) < SPARSE_BELOW * width * blocks[0].shape[0]:
        return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks], "csr", np.float32))
    dense = [_dense(block) for block in blocks]
    return dense[0] if len(dense) == 1 else np.concatenate(dense, 1)


def _dense(block: Block) -> Numbers:
    return block.toarray() if isinstance(block, sp.csr_array) else block


def _nonzeros(blocks: Sequence[Block]) -> int:
    return sum(
        block.nnz if isinstance(block, sp.csr_array) else int(np.count_nonzero(block))
        for block in blocks
    )
