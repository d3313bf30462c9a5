"""Proof by removal: drop links, normalise anew, run again; beside as many links at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcnii.inference.explaining.links import Links
from gcnii.inference.explaining.network import Network
from gcnii.inference.explaining.question import Question

REMOVED = 3  # links at most
DRAWS = 10  # of random links


@dataclass(frozen=True, eq=False)
class Removal:
    """The probability before and after.

    links   that were dropped
    random  (draws,) the probability without as many links drawn from the neighbourhood
    """

    links: NDArray[np.int64]
    before: float
    after: float
    random: NDArray[np.float64]


def remove(
    network: Network,
    links: Links,
    question: Question,
    dropped: NDArray[np.int64],
    near: NDArray[np.int64],
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Removal:
    """Drop these links; and, `draws` times, as many of those that are near."""

    def probability(some: NDArray[np.int64]) -> float:
        return network.probability(question, links.without(some))

    generator = np.random.default_rng(seed)
    count = min(len(dropped), len(near))
    drawn = [generator.choice(near, count, replace=False) for _ in range(draws)]
    before, after = probability(dropped[:0]), probability(dropped)
    return Removal(dropped, before, after, np.array([probability(some) for some in drawn]))
