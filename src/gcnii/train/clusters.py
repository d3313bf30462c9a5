"""Cluster-GCN's batches: groups of nodes of about equal size with few links between them.

METIS (Karypis & Kumar 1998) cuts the graph where `pymetis` is installed.  Otherwise it is cut here
in the same way: merge nodes in pairs until few are left, cut those, undo the merging step by step
and move nodes to where most of their links go.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Labels = NDArray[np.int64]
Weights = NDArray[np.float64]

COARSEST = 10  # nodes for each cluster where joining ends
SLACK = 1.1  # how much larger than the mean a cluster may be
PASSES = 20  # over all nodes, in each undone step


def cluster(A: sp.csr_array, count: int) -> Labels:
    """The cluster (n,) of each node, 0 … count - 1; the same for the same links."""
    links = _undirected(A)
    count = min(count, links.shape[0])
    if count == 1:
        return np.zeros(links.shape[0], np.int64)
    labels = metis(links, count)
    return cut(links, np.ones(links.shape[0]), count) if labels is None else labels


def metis(A: sp.csr_array, count: int) -> Labels | None:
    """The part (n,) of each node, by METIS; None where it is not installed."""
    try:
        import pymetis
    except ImportError:
        return None
    links = _undirected(A)
    _, labels = pymetis.part_graph(count, pymetis.CSRAdjacency(links.indptr, links.indices))
    return np.asarray(labels, np.int64)


def cutter() -> str:
    """Which program cuts graphs here: another gives other clusters, and so other numbers."""
    try:
        return f"pymetis {version('pymetis')}"
    except PackageNotFoundError:
        return "gcnii"


def _undirected(A: sp.csr_array) -> sp.csr_array:
    links = sp.csr_array(abs(A) + abs(A).T)
    links.setdiag(0)
    links.eliminate_zeros()
    links.data[:] = 1
    return links


def cut(links: sp.csr_array, weight: Weights, count: int) -> Labels:
    """The clusters of a weighted graph: links (n, n) symmetric without a diagonal, weight (n,) of
    the nodes.
    """
    n = links.shape[0]
    labels = None
    if n > COARSEST * count:
        parent = _join_pairs(links, weight, weight.sum() / count / 4)
        joined = int(parent.max()) + 1
        if joined < 0.95 * n:
            S = sp.csr_array((np.ones(n), (parent, np.arange(n))), (joined, n))
            coarse = sp.csr_array(S @ links @ S.T)
            coarse.setdiag(0)
            coarse.eliminate_zeros()
            labels = cut(coarse, S @ weight, count)[parent]
    return _refine(links, weight, _grow(links, weight, count) if labels is None else labels, count)


def _join_pairs(links: sp.csr_array, weight: Weights, heaviest: float) -> Labels:
    """The number (n,) of the pair, or of the single node, in which each node ends."""
    n = links.shape[0]
    row, column = np.repeat(np.arange(n), np.diff(links.indptr)), links.indices
    low, high = np.minimum(row, column), np.maximum(row, column)
    # Both ends must rate a link alike, or they wait for others in circles; so a hash of the pair
    # breaks ties.
    tie = 1 + 1e-6 * np.sin(low * 12.9898 + high * 78.233)
    rating = links.data / (weight[row] * weight[column]) * tie
    rating[weight[row] + weight[column] > heaviest] = -1
    mate = np.full(n, -1)
    for _ in range(6):
        favourite = _best(row, column, np.where(mate[column] < 0, rating, -1), n)
        free = np.flatnonzero((mate < 0) & (favourite >= 0))
        mutual = free[favourite[favourite[free]] == free]
        mate[mutual] = favourite[mutual]
    _join_leaves(mate, _best(row, column, links.data, n), weight, heaviest)
    own = np.arange(n)
    pairs = np.where(mate < 0, own, np.minimum(own, mate))
    return np.asarray(np.unique(pairs, return_inverse=True)[1])


def _join_leaves(mate: Labels, favourite: Labels, weight: Weights, heaviest: float) -> None:
    """The leaves of a hub have no free neighbour left: pair them, and nodes without links."""
    left = np.flatnonzero((mate < 0) & (2 * weight <= heaviest))
    favourite = favourite[left]
    order = np.argsort(favourite, kind="stable")
    left, favourite = left[order], favourite[order]
    turn = np.arange(len(left)) - np.searchsorted(favourite, favourite)
    first = np.flatnonzero((turn % 2 == 0)[:-1] & (favourite[:-1] == favourite[1:]))
    one, other = left[first], left[first + 1]
    fits = weight[one] + weight[other] <= heaviest
    mate[one[fits]], mate[other[fits]] = other[fits], one[fits]


def _best(row: Labels, column: Labels, rating: Weights, n: int) -> Labels:
    """The column (n,) with the highest rating in each row, -1 where none is above zero."""
    kept = np.flatnonzero(rating > 0)
    kept = kept[np.lexsort((rating[kept], row[kept]))]
    best = np.full(n, -1)
    best[row[kept]] = column[kept]  # of several the last stays, which is the highest
    return best


def _grow(links: sp.csr_array, weight: Weights, count: int) -> Labels:
    """Grow clusters one by one, by the node with the most links into it, up to an equal share."""
    n = links.shape[0]
    labels = np.full(n, -1)
    for label in range(count):
        share = weight[labels < 0].sum() / (count - label)
        pull, size = np.zeros(n), 0.0
        while (labels < 0).any() and (size < share or label == count - 1):
            # A cluster begins, and goes on where its links end, at the node with the fewest links
            # to the rest.
            wanted = pull if pull.max() > 0 else -(links @ (labels < 0).astype(float))
            node = int(np.where(labels < 0, wanted, -np.inf).argmax())
            if size and size + weight[node] / 2 > share and label < count - 1:
                break
            labels[node] = label
            size += weight[node]
            ends = slice(links.indptr[node], links.indptr[node + 1])
            pull[links.indices[ends]] += links.data[ends]
            pull[labels >= 0] = 0
    return labels


def _refine(links: sp.csr_array, weight: Weights, labels: Labels, count: int) -> Labels:
    """Move nodes to the cluster that most of their links go to, as long as clusters keep their
    size; the best pass.
    """
    n, mean = len(labels), weight.sum() / count
    best, least = labels, np.inf
    for turn in range(PASSES):
        size = np.bincount(labels, weight, count)
        room, spare = SLACK * mean - size, size - mean / SLACK**2
        cost = _cut_weight(links, labels) - np.minimum(room, 0).sum() * links.sum()
        if cost < least:
            best, least = labels, cost
        pull: Any = sp.csr_array(
            links @ sp.csr_array((np.ones(n), (np.arange(n), labels)), (n, count))
        )
        row, column = np.repeat(np.arange(n), np.diff(pull.indptr)), pull.indices
        own = column == labels[row]
        target = _best(row, column, np.where(own | (weight[row] > room[column]), 0, pull.data), n)
        chosen = column == target[row]
        there, here = (np.bincount(row[these], pull.data[these], n) for these in (chosen, own))
        gain = np.asarray(there - here, np.float64)
        # Neighbours that swap at once gain nothing: a turn is for a half of the nodes only.
        mine = (np.sin(np.arange(n) * 12.9898 + turn * 78.233) > 0) & (target >= 0)
        mine &= (
            (gain > 0) | ((gain == 0) & (size[target] + weight < size[labels])) | (room[labels] < 0)
        )
        labels = _move(labels, weight, np.flatnonzero(mine), target, gain, room, spare)
    return best


def _move(
    labels: Labels,
    weight: Weights,
    nodes: Labels,
    target: Labels,
    gain: Weights,
    room: Weights,
    spare: Weights,
) -> Labels:
    """Of the nodes, by their gain, those for which the target has room and which their own cluster
    can spare.

    A node that loses by it moves only while its own cluster is too large.
    """
    nodes = nodes[np.lexsort((-gain[nodes], target[nodes]))]
    nodes = nodes[_running(weight[nodes], target[nodes]) <= room[target[nodes]]]
    nodes = nodes[np.lexsort((-gain[nodes], labels[nodes]))]
    left = _running(weight[nodes], labels[nodes])
    needed = left - weight[nodes] < -room[labels[nodes]]
    nodes = nodes[needed | ((gain[nodes] >= 0) & (left <= spare[labels[nodes]]))]
    moved = labels.copy()
    moved[nodes] = target[nodes]
    return moved


def _running(weight: Weights, group: Labels) -> Weights:
    """The running sum of the weights within each group; the groups come one after the other."""
    total = np.cumsum(weight)
    start = np.searchsorted(group, group)
    return np.asarray(total - total[start] + weight[start])


def _cut_weight(links: sp.csr_array, labels: Labels) -> float:
    row = np.repeat(labels, np.diff(links.indptr))
    return float(links.data[row != labels[links.indices]].sum())
