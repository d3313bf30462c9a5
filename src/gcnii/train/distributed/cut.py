"""Cuts: which process has which nodes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.errors import notice
from gcnii.train.batches.clusters import metis

Labels = NDArray[np.int64]


def cut(A: sp.csr_array, parts: int) -> Labels:
    """(n,) the part of each node: few links between parts of about equal size, by METIS.

    Without METIS, or where it leaves a part empty: blocks of nodes in the order given.
    """
    labels = metis(A, parts)
    if labels is None:
        labels = blocks(A.shape[0], parts)
        share = f"{100 * crossing(A, labels):.0f}%"
        notice(
            f"pymetis is not installed, so the graph is cut into {parts} blocks of nodes in the "
            f"order given, and {share} of its links join two of them: every layer "
            "sends the rows at their ends. Install it with: pip install 'gcnii[metis]'"
        )
    if len(np.unique(labels)) < parts:
        return blocks(A.shape[0], parts)
    return labels


def blocks(n: int, parts: int) -> Labels:
    """Nodes in the order given, in parts of equal size."""
    return np.arange(n) * parts // n


def crossing(A: sp.csr_array, labels: Labels) -> float:
    """The share of links that join two parts."""
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    links = row != A.indices
    return float((labels[row] != labels[A.indices])[links].mean()) if links.any() else 0.0
