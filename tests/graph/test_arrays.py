"""Features are normalised by row, and the caller's matrix is left alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from gcnii.graph.arrays import row_normalised

PARTS = ("data", "indices", "indptr")


def with_stored_zeros(dtype=np.float64):
    """[[2, 2, 0], [0, 0, 0], [0, 0, 5]], of whose zeros two are stored."""
    data, indices, indptr = np.array([2, 0, 2, 0, 5], dtype), [0, 2, 1, 0, 2], [0, 3, 4, 5]
    return sp.csr_array((data, np.array(indices), np.array(indptr)), shape=(3, 3))


@pytest.mark.parametrize("convert", [np.asarray, sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_rows_sum_to_one_and_rows_of_zeros_stay(convert):
    X = row_normalised(convert(with_stored_zeros().toarray()))
    assert (X.format, X.dtype) == ("csr", np.float32)
    assert X.toarray().tolist() == [[0.5, 0.5, 0], [0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_callers_matrix_with_stored_zeros_is_unchanged(dtype):
    X = with_stored_zeros(dtype)
    before = [getattr(X, part).copy() for part in PARTS]
    assert row_normalised(X).nnz == 3
    for part, array in zip(PARTS, before, strict=True):
        np.testing.assert_array_equal(getattr(X, part), array)


def test_a_frozen_matrix_can_be_normalised():
    X = with_stored_zeros()
    for part in PARTS:
        getattr(X, part).flags.writeable = False
    assert row_normalised(X).toarray()[0].tolist() == [0.5, 0.5, 0]
