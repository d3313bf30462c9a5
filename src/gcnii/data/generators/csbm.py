"""The contextual stochastic block model (Deshpande et al. 2018): edges and features from labels.

Of m = n·degree/2 edges the share `homophily` joins equal labels, and x_i = μ_{y_i} + N(0, I), where
the class means μ lie `signal` apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gcnii.data.generators.parameters import check
from gcnii.data.splits import per_class
from gcnii.errors import DataError
from gcnii.graph import Graph

VAL = 0.3  # share of all nodes that is for validation

Ints = NDArray[np.int64]


def read(
    n: int = 1000,
    degree: float = 10,
    classes: int = 2,
    homophily: float = 0.8,
    features: int = 16,
    signal: float = 1.0,
    seed: int = 0,
    labels_per_class: int = 20,
) -> Graph:
    """A graph of n nodes in classes of equal size (give or take one node).

    degree            mean number of neighbours
    homophily         share of the edges that join nodes of the same class
    signal            distance between two class means, in standard deviations of the noise
    labels_per_class  training nodes per class; 30 % of all nodes are for validation, and the rest
                      for testing
    """
    _check_nodes(n, classes, seed, labels_per_class)
    _check_model(degree, homophily, features, signal)
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(n) % classes)
    edges = draw_edges(y, round(n * degree / 2), homophily, random)
    X = _means(classes, features, signal, random)[y] + random.standard_normal((n, features))
    split = per_class(y, labels_per_class, random, val=_validation_nodes(n))
    return Graph(X=X.astype(np.float32), edges=edges, y=y, splits=(split,), name="csbm")


def _check_model(degree: float, homophily: float, features: int, signal: float) -> None:
    check("csbm", "degree", degree, 0)
    check("csbm", "homophily", homophily, 0, 1)
    check("csbm", "features", features, 1, whole=True)
    check("csbm", "signal", signal, 0)


def _check_nodes(n: int, classes: int, seed: int, labels_per_class: int) -> None:
    check("csbm", "n", n, 2, whole=True)
    check("csbm", "classes", classes, 2, n, whole=True)
    check("csbm", "seed", seed, 0, whole=True)
    check("csbm", "labels_per_class", labels_per_class, 1, n // classes, whole=True)
    train, val = classes * labels_per_class, _validation_nodes(n)
    if train + val > n:
        raise DataError(
            f"csbm of {n} nodes keeps {val} for validation, but {train} are for training; "
            "lower labels_per_class or raise n"
        )


def _validation_nodes(n: int) -> int:
    return max(1, round(VAL * n))


def draw_edges(y: Ints, m: int, homophily: float, random: np.random.Generator) -> Ints:
    """m distinct edges, round(homophily·m) of them between equal labels, in O(n + m)."""
    n, sizes = len(y), np.bincount(y)
    order, starts = np.argsort(y, kind="stable"), np.cumsum(sizes) - sizes

    def same(u: Ints) -> Ints:
        return np.asarray(order[starts[y[u]] + random.integers(sizes[y[u]])])

    def other(u: Ints) -> Ints:
        place = random.integers(n - sizes[y[u]])
        return np.asarray(order[place + (place >= starts[y[u]]) * sizes[y[u]]])

    equal = round(homophily * m)
    pairs = int((sizes * (sizes - 1)).sum()) // 2
    drawn = [
        _draw(equal, pairs, n, same, random),
        _draw(m - equal, n * (n - 1) // 2 - pairs, n, other, random),
    ]
    return np.concatenate(drawn, axis=1)


def _draw(
    m: int, pairs: int, n: int, partner: Callable[[Ints], Ints], random: np.random.Generator
) -> Ints:
    """m distinct edges u < v, u drawn from all nodes and v from its possible partners."""
    if m > pairs / 2:  # drawing until m are distinct would take long
        raise DataError(
            f"csbm draws at most half of the {pairs} possible edges of a kind, "
            f"got {m}; lower degree"
        )
    codes = np.zeros(0, np.int64)
    while len(codes) < m:
        u = random.integers(n, size=2 * (m - len(codes)) + 16)
        v = partner(u)
        fresh = np.minimum(u, v) * n + np.maximum(u, v)
        codes = np.concatenate([codes, fresh[u != v]])
        codes = codes[np.sort(np.unique(codes, return_index=True)[1])]  # in the order of drawing
    return np.stack(np.divmod(codes[:m], n))


def _means(
    classes: int, features: int, signal: float, random: np.random.Generator
) -> NDArray[np.float64]:
    """(classes, features) means on a sphere: orthogonal, so `signal` apart, if they fit."""
    directions = random.standard_normal((classes, features))
    if classes <= features:
        directions = np.linalg.qr(directions.T)[0].T
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(directions * signal / np.sqrt(2))
