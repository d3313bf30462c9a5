"""Edge weights: what they may be, what those of repeated edges become, and what each counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gcnii.errors import GraphError
from gcnii.graph.arrays import own

Edges: TypeAlias = NDArray[np.int64]
Weights: TypeAlias = NDArray[np.float64]
EdgeWeights = Literal["auto", "raw", "median", "log", "rank", "none"]

# Sums over millions of such weights, and their inverses, are finite in float32.
LEAST, MOST = 1e-30, 1e30
DUPLICATES = ("add", "mean", "max", "first")  # what the weights of an edge given twice can become
TYPICAL = 1000  # weights that tell how all are distributed
SKEWED = 0.05  # of all weight, that the heaviest 1 % of the edges carry


def weighted_edges(
    edges: Edges, values: ArrayLike, directed: bool, nodes: Sequence[object] | None = None
) -> tuple[Edges, Weights]:
    """The edges and their weights as float64, checked; an edge of weight 0 is left out.

    nodes  names, for errors
    """
    weights = check_weights(values, edges, nodes)
    if not directed:
        sum_repeated(edges, weights, directed=False, nodes=nodes)
    kept = weights > 0
    return (edges, weights) if kept.all() else (edges[:, kept], weights[kept])


def check_weights(
    values: ArrayLike, edges: Edges, nodes: Sequence[object] | None = None
) -> Weights:
    """A copy of the weights as float64; GraphError unless each edge has one that can be used."""
    given = own(values, "weights")
    if given.dtype.kind not in "iubf" and given.size:
        raise GraphError(f"weights must hold numbers, got {given.dtype}")
    if given.shape != edges.shape[1:]:
        raise GraphError(
            f"weights must be a vector with one number per edge, {edges.shape[1]} in all, "
            f"got shape {given.shape}"
        )
    weights = given.astype(np.float64)
    wrong = ~((weights == 0) | ((weights >= LEAST) & (weights <= MOST)))  # NaN too
    if wrong.any():
        i = int(wrong.argmax())
        u, v = (_called(end, nodes) for end in edges[:, i])
        raise GraphError(
            f"edge {i}, from {u} to {v}, has the weight {given[i]}; "
            f"a weight must be 0 (no edge) or a number from {LEAST:g} to {MOST:g}"
        )
    return weights


def sum_repeated(
    edges: Edges, weights: Weights, *, directed: bool, nodes: Sequence[object] | None = None
) -> tuple[Edges, Weights]:
    """The (2, m) edges sorted and without duplicates, and the sum of each one's weights.

    An undirected edge is kept in one direction, from the smaller id to the larger; if it is listed
    in both, their sums must agree, and it counts once.
    """
    merged, order, first = _grouped(edges, directed)
    weights, back = weights[order], (edges[0] > edges[1])[order] & (not directed)
    if not back.any():
        return merged, np.add.reduceat(weights, first)
    there, here = (
        np.add.reduceat(np.where(side, weights, 0), first).astype(np.float64)
        for side in (~back, back)
    )
    both = np.maximum.reduceat(back, first) & np.maximum.reduceat(~back, first)
    wrong = both & ~np.isclose(there, here, atol=0)
    if wrong.any():
        _refuse_two_weights(int(wrong.argmax()), merged, there, here, nodes)
    return merged, np.maximum(there, here)


def _grouped(edges: Edges, directed: bool) -> tuple[Edges, Edges, Edges]:
    """The edges sorted and without duplicates; what sorts them all; where each one's begin then."""
    low, high = edges if directed else np.sort(edges, 0)
    size = int(edges.max(initial=0)) + 1
    codes = low * size + high
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    return np.stack(np.divmod(codes[first], size)), order, first


def _combined(edges: Edges, weights: Weights, how: str, directed: bool) -> tuple[Edges, Weights]:
    """The edges sorted and without duplicates, with one weight made of all those of each."""
    merged, order, first = _grouped(edges, directed)
    weights = weights[order]
    if how == "first":
        return merged, weights[first]
    if how == "max":
        return merged, np.maximum.reduceat(weights, first)
    total = np.add.reduceat(weights, first)
    return merged, total / np.diff(first, append=len(weights)) if how == "mean" else total


def _refuse_two_weights(
    i: int, edges: Edges, there: Weights, here: Weights, nodes: Sequence[object] | None
) -> None:
    u, v = (_called(end, nodes) for end in edges[:, i])
    *others, last = (f"{how!r}" for how in DUPLICATES)
    raise GraphError(
        f"the edge between {u} and {v} has the weight {there[i]:g} in one direction and "
        f"{here[i]:g} in the other; an undirected edge has one weight: take the edges as directed "
        "(directed=True, --directed), or, where tables or files are read, say what the two become: "
        f"duplicates={', '.join(others)} or {last} (--duplicates)"
    )


def _called(node: np.int64, nodes: Sequence[object] | None) -> str:
    # Where types are apart, there is a copy of the nodes for each (`gcnii.graph.types`).
    return str(node) if nodes is None else repr(nodes[int(node) % len(nodes)])


def merged_weighted(
    edges: NDArray[np.int64],
    weights: ArrayLike,
    *,
    directed: bool = False,
    nodes: Sequence[object] | None = None,
    duplicates: str = "",
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """`merged` for weighted edges: each has one weight, and an edge of weight 0 is left out.

    The weights of duplicates add up; the two directions of an undirected edge count once, and must
    have the same weight.

    nodes       names, for errors
    duplicates  one of DUPLICATES: all weights between two nodes, in whichever direction if edges
                are undirected, become one in this way
    """
    edges = edges.astype(np.int64)
    each = check_weights(weights, edges, nodes)
    if duplicates and edges.size:
        edges, total = _combined(edges, each, duplicates, directed)
    else:
        edges, total = sum_repeated(edges, each, directed=directed, nodes=nodes)
    return edges[:, total > 0], total[total > 0]


def typical_weights(edges: Edges, weights: Weights, *, directed: bool) -> Weights:
    """Up to TYPICAL weights of edges, sorted: all, or evenly spaced ones; loops do not count.

    However its edges are listed, a graph has the same; without any, an edge would weigh 1.
    """
    if not edges.size:
        return np.ones(1)
    edges, weights = sum_repeated(edges, weights, directed=directed)
    loops = edges[0] == edges[1]
    each = np.sort(weights if loops.all() else weights[~loops])
    places = (np.arange(TYPICAL) + 0.5) * (len(each) / TYPICAL)
    return each if len(each) <= TYPICAL else each[places.astype(np.int64)]


def weighed(weights: Weights, kind: EdgeWeights, typical: Weights) -> Weights:
    """What weights count in A: a typical edge counts 1, as a self-loop does, unless they are raw.

    typical  of the graph, see `typical_weights`

        raw     w, so that another unit gives another matrix
        median  w / median
        log     log2(1 + w / median)
        rank    the share of edges that weigh less, and the share of those that weigh no more
        none    1
        auto    see `chosen_kind`
    """
    match kind:
        case "raw":
            return weights
        case "none":
            return np.ones_like(weights)
        case "median":
            return np.asarray(weights / np.median(typical))
        case "log":
            return np.asarray(np.log1p(weights / np.median(typical)) / np.log(2))
        case "rank":
            below = np.searchsorted(typical, weights, "left")
            no_more = np.searchsorted(typical, weights, "right")
            # An edge of another graph that weighs less than all of them is still one.
            return np.asarray(np.maximum(below + no_more, 1) / len(typical))
        case "auto":
            return weighed(weights, chosen_kind(typical), typical)


def chosen_kind(typical: Weights) -> EdgeWeights:
    """What auto means: rank where a few edges would outweigh all others, else median."""
    return "rank" if skew(typical) >= SKEWED else "median"


def skew(typical: Weights) -> float:
    """The share of all weight that the heaviest 1 % of the edges carry."""
    if not len(typical):
        return 0.0
    count, part = divmod(len(typical), 100)
    heaviest = typical[::-1][: count + 1]
    return float((heaviest[:count].sum() + heaviest[-1] * part / 100) / typical.sum())


def about_skew(typical: Weights, kind: EdgeWeights, *, given: bool) -> str:
    """A warning about skewed weights that count so; empty where there is nothing to say.

    given  whether the user chose this kind
    """
    if (share := skew(typical)) < SKEWED or kind in ("log", "none") or (kind == "rank" and given):
        return ""
    skewed = f"the heaviest 1 % of the edges carry {100 * share:.0f} % of all weight"
    if kind == "rank":
        return (
            f"{skewed}, so edges count by the rank of their weight; edge_weights (--edge-weights) "
            "median, log or none would be another choice"
        )
    return (
        f"{skewed} and decide what a node gathers; edge_weights rank or log (--edge-weights rank) "
        "is safer"
    )
