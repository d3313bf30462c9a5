"""Geom-GCN: node by node, division by division."""

import numpy as np

from support.literal.activations import relu


def geom_gcn(w, P, X, layers, width, dropout):
    """For each node and division the sum over the neighbours in it, concatenated or averaged."""
    P, division = P
    H = X
    for l in range(layers):
        W = np.split(w(f"convs.{l}.W"), 9, axis=1)
        nodes = []
        for v in range(len(P)):
            sums = [np.zeros(W[0].shape[1]) for _ in range(9)]
            for u in np.flatnonzero(P[v]):
                sums[division[v, u]] += P[v, u] * (H[u] @ W[division[v, u]])
            nodes.append(relu(np.concatenate(sums)) if l < layers - 1 else np.mean(sums, 0))
        H = np.stack(nodes)
    return H


GEOMETRY = {
    "geom-gcn-i": geom_gcn,
    "geom-gcn-p": geom_gcn,
    "geom-gcn-s": geom_gcn,
}
