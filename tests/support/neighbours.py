"""A graph of one's own whose labels are told by features and by neighbours, without a split."""

import numpy as np
import scipy.sparse as sp

import gcnii


def neighbours(n: int = 160, seed: int = 0, **options) -> gcnii.Graph:
    """Two classes; four of five edges join nodes of one class."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(n) % 2)
    X = random.normal(size=(n, 4)) + 0.7 * y[:, None]
    rows = np.repeat(np.arange(n), 3)
    same = random.random(len(rows)) < 0.8
    columns = [random.choice(np.flatnonzero((y == y[i]) == own)) for i, own in zip(rows, same)]  # noqa: B905
    A = sp.coo_array((np.ones(len(rows)), (rows, columns)), (n, n)).tocsr()
    A = ((A + A.T) > 0).astype(float)
    A.setdiag(0)
    return gcnii.from_scipy(sp.csr_array(A), X, y, **options)
