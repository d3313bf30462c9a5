"""Pickles of arrays, sparse matrices and neighbour lists, read without running foreign code.

A pickle names functions and calls them.  Only those listed here are allowed, and they do no more
than build a value; any other name is refused before it is looked up.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gcnii.errors import DataError


class _Csr:
    """Stands in for scipy's csr_matrix: a pickle fills a bare object and runs no scipy code."""

    def matrix(self) -> sp.csr_array:
        """The sparse matrix the pickle described."""
        state = vars(self)
        parts = state["data"], state["indices"], state["indptr"]
        return sp.csr_array(parts, shape=state.get("_shape", state.get("shape")))


def _latin1(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes into an old pickle; no other encoding is needed, or allowed."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


# These two have moved between numpy releases; asking an array and a number works with all of them.
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_SCALAR = np.float64(0).__reduce__()[0]

_ALLOWED: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _latin1,
    ("collections", "defaultdict"): defaultdict,
    **{(module, "list"): list for module in ("__builtin__", "builtins")},
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _RECONSTRUCT for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _SCALAR for core in ("core", "_core")},
    **{(f"scipy.sparse.{module}", "csr_matrix"): _Csr for module in ("csr", "_csr")},
}


class _RefusedError(Exception):
    """The pickle names something that is not allowed."""


class _Unpickler(pickle.Unpickler):
    """Knows the names in `_ALLOWED` and no others."""

    def find_class(self, module: str, name: str) -> object:
        """The class or function module.name, if the list allows it."""
        if (module, name) not in _ALLOWED:
            raise _RefusedError(f"{module}.{name}")
        return _ALLOWED[module, name]


def unpickle(path: Path) -> Any:
    """The array, CSR matrix or dict in a pickle written by Python 2 or 3."""
    try:
        with path.open("rb") as stream:
            value = _Unpickler(stream, encoding="latin1").load()
        return value.matrix() if isinstance(value, _Csr) else value
    except _RefusedError as refused:
        raise DataError(
            f"{path.name} asks for {refused}, which no data file needs; "
            "it was not run, fetch another copy"
        ) from None
    except Exception as error:  # a broken pickle can raise anything
        raise DataError(
            f"{path.name} is not a pickle of arrays ({error}); fetch it again"
        ) from error
