"""Arrays in one form: edges without repetitions, features by row."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def merged(edges: NDArray[np.integer[Any]], *, directed: bool = False) -> NDArray[np.int64]:
    """The (2, m) edges without repetitions, sorted; self-loops stay.

    Of an undirected edge one direction is kept, from the smaller id to the larger.
    """
    u, v = edges.astype(np.int64)
    if not directed:
        u, v = np.minimum(u, v), np.maximum(u, v)
    size = int(edges.max(initial=0)) + 1
    codes = np.sort(u * size + v)  # np.unique takes ten times as long
    return np.stack(np.divmod(codes[np.diff(codes, prepend=-1) > 0], size))


def row_normalised(X: Any) -> sp.csr_array:
    """X (n, d) with every row divided by its sum, as float32 CSR; a row of zeros stays so."""
    X = sp.csr_array(X, dtype=np.float64)
    X.eliminate_zeros()
    sums = X.sum(1)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums != 0)
    return sp.csr_array(sp.diags_array(scale) @ X, dtype=np.float32)
