"""Table: the feature columns of a graph's nodes as they came, before they are encoded as X."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.errors import DataError, some_of

Numbers: TypeAlias = NDArray[np.float32]  # NaN where missing
Texts: TypeAlias = NDArray[np.object_]  # str; None where missing
Cells: TypeAlias = Numbers | Texts


@dataclass(frozen=True, eq=False)
class Table:
    """n rows, one per node.

    columns  name → (n,) numbers or text
    matrix   (n, …) CSR: wide, sparse features beside the columns, such as counts of words
    names    of the matrix's columns
    """

    n: int
    columns: Mapping[str, Cells]
    matrix: sp.csr_array | None = None
    names: tuple[str, ...] = ()


def is_text(cells: Cells) -> TypeGuard[Texts]:
    """Whether the cells of a column are text, not numbers."""
    return cells.dtype == object


def refuse_other_columns(
    who: str, own: Iterable[str], wanted: Sequence[str], allowed: Iterable[str] = ()
) -> None:
    """Raise DataError if a wanted column is missing, or one is there that is not allowed either."""
    own = dict.fromkeys(own)
    known = {*wanted, *allowed}
    lacks = [name for name in wanted if name not in own]
    has = [name for name in own if name not in known]
    wrong = [f"{verb} {some_of(x)}" for verb, x in (("lacks", lacks), ("has", has)) if x]
    if wrong:
        raise DataError(
            f"{who} {' and '.join(wrong)} among its feature columns; "
            "a model takes the columns that it was trained on, in any order"
        )
