"""Whether our runs replicate a printed number.

Let δ be our mean minus the printed one, in points, and the margin the paper's own standard deviation where it prints
one, else 1.0 point.  The printed number counts as exact, because the paper does not say enough to know better.
Over ten splits the runs' spread is mostly that between the splits, which the paper's mean shares: there the rule is
cautious, and `undecided` is frequent.

replicates  two one-sided t-tests (TOST, α = 0.05) say |δ| < margin: δ's 90 % interval lies within the margin
higher      not so, and δ > 0 by a two-sided t-test at α = 0.05; or every run came out alike, beyond the margin
lower       the same below
undecided   neither: too few runs for their spread
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from statistics import fmean, stdev
from typing import Literal

from scipy.stats import t

from gcnii.experiments.printed import Printed

Word = Literal["replicates", "higher", "lower", "undecided"]

ALPHA = 0.05
MARGIN = 1.0  # points, where the paper prints no standard deviation


@dataclass(frozen=True)
class Verdict:
    """The word, and what it rests on, all in points."""

    word: Word
    difference: float  # our mean minus the printed one
    margin: float
    low: float  # the difference's interval at 1 - 2α, as TOST uses it
    high: float

    def __str__(self) -> str:
        return self.word


def judge(scores: Sequence[float], printed: Printed) -> Verdict | None:
    """The verdict on scores in per cent; None where there are none, or where one of them is no number."""
    if not scores or not all(map(isfinite, scores)):
        return None
    difference, n = fmean(scores) - printed.mean, len(scores)
    margin = printed.sd or MARGIN
    error = stdev(scores) / sqrt(n) if n > 1 else inf
    quantile = t.ppf((1 - ALPHA, 1 - ALPHA / 2), max(n - 1, 1))
    tost, two_sided = (float(q) * error for q in quantile)
    word: Word = "undecided"
    if abs(difference) + tost < margin:
        word = "replicates"
    elif abs(difference) > two_sided:
        word = "higher" if difference > 0 else "lower"
    return Verdict(word, difference, margin, difference - tost, difference + tost)
