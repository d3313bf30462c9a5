"""Cuts: how many rows of other processes each one gathers from, measured or estimated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.data.sizes import Size

Labels = NDArray[np.int64]

# What METIS is taken to leave of the halo of a random cut: on citations and goods it left 0.17 to
# 0.33 in 8 parts, and 0.31 to 0.37 in 32 (results/bench/scale-cpu.json).
LEFT = 0.35
MOST = 5_000_000  # entries of a graph that METIS cuts in seconds


@dataclass(frozen=True)
class Cut:
    """What a graph's cut over processes costs.

    nodes     of the largest part
    halo      rows of other processes' nodes that a part gathers from, at most
    crossing  share of the links that join two parts
    how       metis, blocks or random; estimated if no graph was at hand
    """

    nodes: int
    halo: int
    crossing: float
    how: str


def uncut(n: int) -> Cut:
    """One process has all nodes."""
    return Cut(n, 0, 0.0, "one process")


def measured_cut(A: sp.csr_array, labels: Labels, how: str) -> Cut:
    """What this part (n,) of each node costs."""
    parts = int(labels.max()) + 1
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    outside = labels[row] != labels[A.indices]
    # A node is in a part's halo once, however many of its nodes gather from it.
    codes = np.unique(labels[row[outside]] * A.shape[0] + A.indices[outside])
    halo = np.bincount(codes // A.shape[0], minlength=parts)
    links = int((row != A.indices).sum())
    share = float(outside.sum()) / links if links else 0.0
    return Cut(int(np.bincount(labels).max()), int(halo.max()), share, how)


def random_cut(size: Size, parts: int) -> Cut:
    """What a random cut costs on average, if all nodes have as many links.

    A node elsewhere is in a part's halo unless none of its links ends there.
    """
    here = 1 / parts
    links = max(size.degree - 1, 0)  # without the loop
    halo = (size.n - size.n * here) * (1 - (1 - here) ** links)
    return Cut(-(-size.n // parts), round(halo), 1 - here, "random")


def estimated_cut(size: Size, parts: int) -> Cut:
    """What METIS may leave of it: as much as on the worst of the graphs that were measured."""
    one = random_cut(size, parts)
    return Cut(one.nodes, round(LEFT * one.halo), LEFT * one.crossing, "estimated")
