"""The handwritten digits inside scikit-learn, as a k-nearest-neighbour graph: a first data set
without a download.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gcnii.data.arrays import merged
from gcnii.data.parameters import check
from gcnii.graph import Graph, Split

TRAIN_A_CLASS, VAL, TEST = 20, 500, 1000


def read(neighbours: int = 8, seed: int = 0) -> Graph:
    """1797 images of 8×8 pixels in 0…1; two are joined if either is among the `neighbours` nearest
    of the other.

    20 images a class are for training, 500 for validation and 1000 for testing, drawn by `seed`; 97
    have no role.
    """
    from sklearn.datasets import load_digits

    images, y = load_digits(return_X_y=True)
    check("digits", "neighbours", neighbours, 1, len(y) - 1, whole=True)
    check("digits", "seed", seed, 0, whole=True)
    return Graph(
        X=(images / 16).astype(np.float32),
        edges=nearest(images, neighbours),
        y=y,
        splits=(_split(y, seed),),
        name="digits",
        classes=tuple("0123456789"),
    )


def nearest(points: NDArray[np.float64], neighbours: int) -> NDArray[np.int64]:
    """Edges from every point to its nearest others, either way once; of equally near ones the first
    wins.

    Distances of whole numbers are exact, so that the graph is the same on every machine.
    """
    squares = (points**2).sum(1)
    distances = squares[:, None] - 2 * (points @ points.T) + squares
    np.fill_diagonal(distances, np.inf)
    targets = np.argsort(distances, axis=1, kind="stable")[:, :neighbours]
    sources = np.repeat(np.arange(len(points)), neighbours)
    return merged(np.stack([sources, targets.ravel()]))


def _split(y: NDArray[np.int64], seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(len(y))
    train = np.concatenate([order[y[order] == c][:TRAIN_A_CLASS] for c in np.unique(y)])
    rest = order[~np.isin(order, train)]
    roles = np.full(len(y), "", dtype=object)
    roles[train], roles[rest[:VAL]], roles[rest[VAL : VAL + TEST]] = "train", "val", "test"
    return Split.of_roles(roles)
