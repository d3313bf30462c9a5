"""How far a number could be from the truth: 95 % intervals over nodes or over runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from gcnii.files import Document, json_value

Floats = NDArray[np.float64]
Z = 1.959964  # 95 %
DRAWS = 1000
TINY = 1e-12  # difference of two draws that are alike
CHUNK = 2_000_000  # weights that are held at once


@dataclass(frozen=True)
class Estimate:
    """A mean and the ends of its interval; NaN where there is none."""

    mean: float
    low: float = nan
    high: float = nan

    def document(self) -> Document:
        return {name: json_value(float(value)) for name, value in vars(self).items()}


def bootstrap_weights(m: int, draws: int = DRAWS, seed: int = 0) -> Iterator[Floats]:
    """(m, b) how often each of m nodes is drawn, in b draws of m with replacement; in chunks.

    The same for the same seed, so that what two models say of the same nodes can be paired.
    """
    random = np.random.default_rng(seed)
    at_once = max(CHUNK // max(m, 1), 1)
    for first in range(0, draws, at_once):
        b = min(at_once, draws - first)
        drawn = random.integers(0, m, (b, m)) + m * np.arange(b)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=b * m).reshape(b, m)
        yield np.ascontiguousarray(counts.T, dtype=np.float64)


def percentiles(
    mean: float, draws: Floats, sizes: Sequence[float] = (), least: float = 0.0, most: float = 1.0
) -> Estimate:
    """The mean, and the 2.5th and the 97.5th percentile of the draws, moved so as to hold it.

    NaN draws are left out; without a single draw, no interval.  Where all nodes are right, or all
    wrong, all draws are alike and say nothing about other nodes: see `of_sizes`.
    """
    known = draws[~np.isnan(draws)]
    if not len(known) or isnan(mean):
        return Estimate(mean)
    if len(sizes) and np.ptp(known) < TINY and abs(mean - round(mean)) < TINY:
        return of_sizes(mean, sizes, least, most)
    low, high = np.quantile(known, (0.025, 0.975))
    return Estimate(mean, min(float(low), mean), max(float(high), mean))


def of_sizes(mean: float, sizes: Sequence[float], least: float, most: float) -> Estimate:
    """The interval of a mean over parts of these sizes, where all nodes are right, or all wrong.

    As far from it as Wilson's interval of 0 of n reaches, the parts by the sum of squares.
    """
    reach = sqrt(sum(wilson(0.0, n)[1] ** 2 for n in sizes)) / len(sizes)
    return Estimate(mean, max(mean - reach, least), min(mean + reach, most))


def over_runs(values: Floats, least: float = -inf, most: float = inf) -> Estimate:
    """The mean, and Student's interval of it within these bounds; none of a single run."""
    from scipy.stats import t

    values = values[~np.isnan(values)]
    if len(values) < 2:
        return Estimate(float(values[0]) if len(values) else nan)
    reach = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / sqrt(len(values)))
    mean = float(values.mean())
    return Estimate(mean, max(mean - reach, least), min(mean + reach, most))


def wilson(p: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share p of n nodes; it holds p."""
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    reach = Z / (1 + Z**2 / n) * sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    # At p = 0 and 1, rounding could exclude p by the last digit.
    return max(min(middle - reach, p), 0.0), min(max(middle + reach, p), 1.0)


def share_of(part: float, whole: float) -> Estimate:
    """Part / whole with Wilson's interval; NaN of nothing."""
    if not whole:
        return Estimate(nan)
    return Estimate(float(part / whole), *wilson(float(part / whole), int(whole)))
