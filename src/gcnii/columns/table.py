"""Table: the feature columns of a graph's nodes as they came, before they are encoded as X."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Cells: TypeAlias = NDArray[np.float32] | NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Table:
    """n rows, one per node.

    columns  name → (n,) numbers, NaN where missing; or text (objects), None where missing
    matrix   (n, …) CSR: wide, sparse features beside the columns, such as counts of words
    names    of the matrix's columns
    """

    n: int
    columns: Mapping[str, Cells]
    matrix: sp.csr_array | None = None
    names: tuple[str, ...] = ()

    def is_text(self, name: str) -> bool:
        """Whether a column holds text."""
        return self.columns[name].dtype == object
