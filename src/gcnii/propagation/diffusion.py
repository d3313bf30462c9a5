"""GDC (Klicpera et al. 2019): replace the links by the largest entries of a diffusion over them."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Diffusion = Literal["none", "ppr", "heat"]

BLOCK = 1 << 24  # numbers in the dense block of columns that is diffused at once (128 MiB)
# The largest heat_time: the series begins with e^-t, which is 0 in float64 from t = 746 on.
LONGEST_HEAT = 700
# The series ends when less than this share of a column's sum, which is about 1, is left.
PRECISION = 1e-10


def diffuse(
    A: sp.csr_array,
    kind: Diffusion,
    *,
    teleport: float = 0.05,
    heat_time: float = 5.0,
    top_k: int = 128,
    threshold: float = 1e-4,
) -> sp.csr_array:
    """S = Σ_k θ_k T^k over T = D̃^-1/2 (A + I) D̃^-1/2, cut, each column divided by its sum.

    ppr   θ_k = α (1-α)^k with α = `teleport`: personalised PageRank
    heat  θ_k = e^-t t^k / k! with t = `heat_time`
    top_k, threshold  of each column, keep the top_k largest entries; with top_k 0, those of at
                      least the threshold
    """
    n = A.shape[0]
    theta = list(_ppr(teleport) if kind == "ppr" else _heat(heat_time))
    T = _transition(A)
    width = max(1, BLOCK // n)
    # Block by block of columns, because S has n² entries before it is cut.
    blocks = [
        _cut(_columns(T, theta, start, width), top_k, threshold) for start in range(0, n, width)
    ]
    return sp.csr_array(sp.hstack(blocks))


def _transition(A: sp.csr_array) -> sp.csr_array:
    looped = sp.csr_array(A + sp.eye_array(A.shape[0]))
    scale = sp.diags_array(looped.sum(1) ** -0.5)
    return sp.csr_array(scale @ looped @ scale)


def _ppr(teleport: float) -> Iterator[float]:
    theta = teleport
    while theta > PRECISION * teleport:
        yield theta
        theta *= 1 - teleport


def _heat(time: float) -> Iterator[float]:
    theta, left, k = exp(-time), 1.0, 0
    while left > PRECISION:
        yield theta
        left -= theta
        k += 1
        theta *= time / k


def _columns(T: sp.csr_array, theta: list[float], start: int, width: int) -> NDArray[np.float64]:
    n = T.shape[0]
    width = min(width, n - start)
    power = np.zeros((n, width))
    power[np.arange(start, start + width), np.arange(width)] = 1
    S = theta[0] * power
    for share in theta[1:]:
        power = T @ power
        S += share * power
    return S


def _cut(S: NDArray[np.float64], top_k: int, threshold: float) -> sp.csr_array:
    if 0 < top_k < len(S):
        threshold_of = np.partition(S, -top_k, axis=0)[-top_k]
    else:
        threshold_of = np.full(S.shape[1], threshold if top_k == 0 else 0.0)
    kept = np.where((threshold_of <= S) & (S > 0), S, 0)
    return sp.csr_array(kept / np.maximum(kept.sum(0), np.finfo(float).tiny))
