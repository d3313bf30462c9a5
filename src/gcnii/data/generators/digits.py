"""scikit-learn's handwritten digits as a k-nearest-neighbour graph; needs no download."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gcnii.data.generators.parameters import check
from gcnii.data.splits import per_class
from gcnii.graph import Graph
from gcnii.graph.arrays import merged

TRAIN_PER_CLASS, VAL, TEST = 20, 500, 1000


def read(neighbours: int = 8, seed: int = 0) -> Graph:
    """1797 images of 8×8 pixels in 0…1, each joined to its `neighbours` nearest others.

    By `seed`, 20 images per class are drawn for training, 500 for validation and 1000 for testing;
    97 are in no mask.
    """
    from sklearn.datasets import load_digits

    images, y = load_digits(return_X_y=True)
    check("digits", "neighbours", neighbours, 1, len(y) - 1, whole=True)
    check("digits", "seed", seed, 0, whole=True)
    random = np.random.default_rng(seed)
    return Graph(
        X=(images / 16).astype(np.float32),
        edges=nearest(images, neighbours),
        y=y,
        splits=(per_class(y, TRAIN_PER_CLASS, random, val=VAL, test=TEST),),
        name="digits",
        classes=tuple("0123456789"),
    )


def nearest(points: NDArray[np.float64], neighbours: int) -> NDArray[np.int64]:
    """Undirected edges from every point to its nearest others; ties go to the first.

    Distances of whole numbers are exact, so that the graph is the same on every machine.
    """
    squares = (points**2).sum(1)
    distances = squares[:, None] - 2 * (points @ points.T) + squares
    np.fill_diagonal(distances, np.inf)
    targets = np.argsort(distances, axis=1, kind="stable")[:, :neighbours]
    sources = np.repeat(np.arange(len(points)), neighbours)
    return merged(np.stack([sources, targets.ravel()]))
