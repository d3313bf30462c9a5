"""How far a network looks: the share of a node's score that comes from nodes h hops away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from torch import Tensor, nn

from gcnii.analysis.filters.jacobian import linearised
from gcnii.errors import InputError
from gcnii.files import Document
from gcnii.propagation import Sparse

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Influence:
    """I_v(h): Σ |∂ s_v / ∂ x_u| over the nodes u exactly h hops from v, over the same for all u.

    s_v is v's highest score: the one that decides.

    share   (hops + 1,) the mean of I_v over the sampled nodes v; hop 0 is the node itself
    error   (hops + 1,) its standard error; 0 if all nodes were sampled
    nodes   the number of sampled nodes
    silent  the number of these that no feature influences, because every ReLU on the way is closed;
            they are left out of the mean
    """

    share: Floats
    error: Floats
    nodes: int
    silent: int

    @property
    def reach(self) -> float:
        """The mean distance that influence comes from, in hops."""
        return float(self.share @ np.arange(len(self.share)))

    def summary(self) -> Document:
        """The influence as a JSON object."""
        hops = {"share": self.share.tolist(), "error": self.error.tolist()}
        return {**hops, "nodes": self.nodes, "silent": self.silent}

    @classmethod
    def of(cls, summary: Document) -> Influence:
        """The influence that a `summary` was made from."""
        share, error = (np.array(summary[name], np.float64) for name in ("share", "error"))
        return cls(share, error, summary["nodes"], summary["silent"])


def influence(
    model: nn.Module, P: Sparse, X: Tensor | Sparse, *, nodes: int | None = 64, seed: int = 0
) -> Influence:
    """The influence of each hop, averaged over `nodes` random nodes, or over all if None.

    Each node costs one backward pass.
    """
    if nodes is not None and nodes < 2:
        raise InputError(f"an error bar needs at least 2 nodes, got {nodes}")
    A = _links(P)
    sampled = np.random.default_rng(seed).permutation(P.shape[0])[:nodes]
    found = []
    with linearised(model, P, X) as (scores, pull):
        for node in sampled:
            G = torch.zeros_like(scores)
            G[node, scores[node].argmax()] = 1
            strength = pull(G).abs().sum(1).double().cpu().numpy()
            found.append(_by_hop(dijkstra(A, unweighted=True, indices=node), strength))
    return _averaged(found, P.shape[0])


def _averaged(found: Sequence[Floats], n: int) -> Influence:
    """The mean over the sampled nodes that are influenced at all, of n nodes in the graph."""
    heard = [hops / hops.sum() for hops in found if hops.sum() > 0]
    if not heard:
        return Influence(np.zeros(1), np.zeros(1), len(found), len(found))
    shares = np.zeros((len(heard), max(map(len, heard))))
    for row, hops in zip(shares, heard, strict=True):
        row[: len(hops)] = hops
    # Sampling is without replacement: the larger the sample, the fewer nodes are left to vary.
    missing = np.sqrt((1 - len(found) / n) / max(len(heard) - 1, 1))
    return Influence(shares.mean(0), shares.std(0) * missing, len(found), len(found) - len(heard))


def _links(P: Sparse) -> sp.csr_array:
    """(n, n) a one where a node gathers from another."""
    columns, rows = (index.cpu().numpy() for index in (P.pattern.columns, P.pattern.rows))
    return sp.csr_array((np.ones(len(columns)), columns, rows), P.shape)


def _by_hop(distance: Floats, strength: Floats) -> Floats:
    """The sum of the nodes' strength at each distance, up to the last distance with any."""
    near = np.isfinite(distance)
    sums = np.bincount(distance[near].astype(int), strength[near])
    return sums[: np.flatnonzero(sums).max(initial=-1) + 1].astype(np.float64)
