"""Row-normalised features: X_ij / Σ_j X_ij."""

from typing import Any

import numpy as np
import scipy.sparse as sp


def row_normalised(X: Any) -> sp.csr_array:
    """X (n, d) with every row divided by its sum, as float32 CSR; a row of zeros stays so."""
    X = sp.csr_array(X, dtype=np.float64)
    X.eliminate_zeros()
    sums = X.sum(1)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums != 0)
    return sp.csr_array(sp.diags_array(scale) @ X, dtype=np.float32)
