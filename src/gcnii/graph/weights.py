"""Edge weights: what they may be, and the sums of those of repeated edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gcnii.errors import GraphError

Edges: TypeAlias = NDArray[np.int64]
Weights: TypeAlias = NDArray[np.float64]

# Sums over millions of such weights, and their inverses, are finite in float32.
LEAST, MOST = 1e-30, 1e30


def weighted_edges(
    edges: Edges, values: ArrayLike, directed: bool, nodes: Sequence[str] | None = None
) -> tuple[Edges, Weights]:
    """The edges and their weights as float64, checked; an edge of weight 0 is left out.

    nodes  names, for errors
    """
    weights = check_weights(values, edges, nodes)
    if not directed:
        sum_repeated(edges, weights, directed=False, nodes=nodes)
    kept = weights > 0
    return (edges, weights) if kept.all() else (edges[:, kept], weights[kept])


def check_weights(values: ArrayLike, edges: Edges, nodes: Sequence[str] | None = None) -> Weights:
    """A copy of the weights as float64; GraphError unless each edge has one that can be used."""
    given = np.array(values)
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
    edges: Edges, weights: Weights, *, directed: bool, nodes: Sequence[str] | None = None
) -> tuple[Edges, Weights]:
    """The (2, m) edges sorted and without duplicates, and the sum of each one's weights.

    An undirected edge is kept in one direction, from the smaller id to the larger; if it is listed
    in both, their sums must agree, and it counts once.
    """
    u, v = edges
    low, high = (u, v) if directed else (np.minimum(u, v), np.maximum(u, v))
    size = int(edges.max(initial=0)) + 1
    codes = low * size + high
    order = np.argsort(codes, kind="stable")
    codes, weights, back = codes[order], weights[order], (u > low)[order]
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    merged = np.stack(np.divmod(codes[first], size))
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


def _refuse_two_weights(
    i: int, edges: Edges, there: Weights, here: Weights, nodes: Sequence[str] | None
) -> None:
    u, v = (_called(end, nodes) for end in edges[:, i])
    raise GraphError(
        f"the edge between {u} and {v} has the weight {there[i]:g} in one direction and "
        f"{here[i]:g} in the other; an undirected edge has one weight: give it once, give the same "
        "in both directions, or take the edges as directed"
    )


def _called(node: np.int64, nodes: Sequence[str] | None) -> str:
    return str(node) if nodes is None else repr(nodes[int(node)])


def merged_weighted(
    edges: NDArray[np.int64],
    weights: ArrayLike,
    *,
    directed: bool = False,
    nodes: Sequence[str] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """`merged` for weighted edges: those of duplicates add up, an edge of weight 0 is left out.

    The two directions of an undirected edge count once, and must have the same weight.

    nodes  names, for errors
    """
    edges = edges.astype(np.int64)
    each = check_weights(weights, edges, nodes)
    edges, total = sum_repeated(edges, each, directed=directed, nodes=nodes)
    return edges[:, total > 0], total[total > 0]
