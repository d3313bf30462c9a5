"""Graphs with numbers to predict, whose answer is known."""

import numpy as np

from gcnii import Graph, propagation_matrix
from gcnii.data.splits import stratified_split


def diffused(side=20, steps=2, targets=("heat",), unit=1.0, seed=0):
    """A grid of side² nodes, on whose corners x heat has spread: y = unit · P̃^steps x."""
    number = np.arange(side * side).reshape(side, side)
    edges = np.hstack(
        [
            np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
            np.stack([number[:-1].ravel(), number[1:].ravel()]),
        ]
    )
    X = np.random.default_rng(seed).normal(size=(side * side, len(targets)))
    graph = Graph(X=X, edges=edges)
    P, y = propagation_matrix(graph).to_dense().double().numpy(), X
    for _ in range(steps):
        y = P @ y
    y = unit * y + 3 * unit
    split = stratified_split(y, seed)
    return Graph(X=X, edges=edges, y=y, targets=targets, splits=(split,), name="grid")
