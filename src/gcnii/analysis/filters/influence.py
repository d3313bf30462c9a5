"""How far a network looks: which share of what decides a node's class comes from nodes so many hops
away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from torch import Tensor, nn

from gcnii.analysis.filters.jacobian import linearised
from gcnii.errors import InputError
from gcnii.propagation import Sparse

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Influence:
    """Of node v, I_v(h) = Σ |∂ s_v / ∂ x_u| over the nodes u at a distance of exactly h hops, over
    the same for all h.

    s_v is v's highest score: the one that decides.

    share  (hops + 1,) the mean of I_v over the nodes asked; hop 0 is the node itself
    error  (hops + 1,) its standard error; 0 where all nodes were asked
    nodes  how many were asked
    silent how many of them no feature can move, because every ReLU on the way is shut; they have no
    share
    """

    share: Floats
    error: Floats
    nodes: int
    silent: int

    @property
    def reach(self) -> float:
        """The mean distance that it comes from."""
        return float(self.share @ np.arange(len(self.share)))

    def summary(self) -> dict[str, Any]:
        """As JSON has it."""
        hops = {"share": self.share.tolist(), "error": self.error.tolist()}
        return {**hops, "nodes": self.nodes, "silent": self.silent}

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> Influence:
        """What `summary` gave."""
        share, error = (np.array(summary[name], np.float64) for name in ("share", "error"))
        return cls(share, error, summary["nodes"], summary["silent"])


def influence(
    model: nn.Module, P: Sparse, X: Tensor | Sparse, *, nodes: int | None = 64, seed: int = 0
) -> Influence:
    """The influence of each hop, from so many random nodes; None: all of them.  A node costs one
    backward pass.
    """
    if nodes is not None and nodes < 2:
        raise InputError(f"an error bar needs at least 2 nodes, got {nodes}")
    n, A = P.shape[0], _links(P)
    asked = np.random.default_rng(seed).permutation(n)[:nodes]
    found = []
    with linearised(model, P, X) as (scores, pull):
        for node in asked:
            G = torch.zeros_like(scores)
            G[node, scores[node].argmax()] = 1
            strength = pull(G).abs().sum(1).double().cpu().numpy()
            found.append(_by_hop(dijkstra(A, unweighted=True, indices=node), strength))
    heard = [hops / hops.sum() for hops in found if hops.sum() > 0]
    if not heard:
        return Influence(np.zeros(1), np.zeros(1), len(asked), len(asked))
    shares = np.zeros((len(heard), max(map(len, heard))))
    for row, hops in zip(shares, heard, strict=True):
        row[: len(hops)] = hops
    # Drawn without replacement: the more of all nodes were asked, the less there is to err about.
    missing = np.sqrt((1 - len(asked) / n) / max(len(heard) - 1, 1))
    return Influence(shares.mean(0), shares.std(0) * missing, len(asked), len(asked) - len(heard))


def _links(P: Sparse) -> sp.csr_array:
    """Who gathers from whom."""
    columns, rows = (index.cpu().numpy() for index in (P.pattern.columns, P.pattern.rows))
    return sp.csr_array((np.ones(len(columns)), columns, rows), P.shape)


def _by_hop(distance: Floats, strength: Floats) -> Floats:
    """Sums of the nodes' strength by their distance, up to the last that has any; who cannot be
    reached has none.
    """
    near = np.isfinite(distance)
    sums = np.bincount(distance[near].astype(int), strength[near])
    return sums[: np.flatnonzero(sums).max(initial=-1) + 1].astype(np.float64)
