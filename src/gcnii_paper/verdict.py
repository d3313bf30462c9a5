"""Whether our runs replicate a printed number.

Let δ be our mean minus the printed one, in points, and the margin the paper's own standard
deviation where it prints one, else 1.0 point.

replicates  two one-sided t-tests (TOST, α = 0.05) say |δ| < margin: δ's 90 % interval lies within
            the margin
higher      not so, and δ > 0 by a two-sided t-test at α = 0.05; or every run came out alike, beyond
            the margin
lower       the same below
undecided   neither: too few runs for their spread, ours or the paper's

On one split (Tables 2 to 4) the error of our mean is s/√n.  The printed number counts as exact,
because it is the mean of 100 runs, or of an unknown number of runs; but a number that is known to
be of one run, as all of DropEdge's are, has the error s.

Over ten splits (Table 5) a score is the level of its split plus what the seed adds.  Both means are
over the same published splits, so the levels stand on both sides of δ and cancel; they would be
sampling error only if the splits had been drawn afresh.  What is left is the spread of the seeds
within a split, s², pooled over S splits with n - S degrees of freedom:

    ours    s²/S² Σ 1/n_s, which is s²/n if all splits have the same number of seeds.  The mean is
            that of the splits' means
    theirs  s²/S, because the printed mean is of one run per split.  With several runs of ours this
            is the larger part: without it, at ten seeds per split, half of all faithful
            replications would be called higher or lower

`replicates` says that our mean is near the printed number, whatever luck was in that number, so it
rests on our error alone.  `higher` and `lower` say that luck does not explain the difference,
neither ours nor theirs, so they rest on both.

With one seed per split, n = S, nothing tells level and seed apart.  The spread over all runs is
then taken on both sides: it contains the levels too, so it errs towards `undecided`.  On splits
drawn afresh (60/20/20) nothing cancels: the mean of a split is one observation there, whatever its
number of seeds, and the printed mean is of ten other splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, inf, isfinite, sqrt
from statistics import fmean, stdev
from typing import Literal, NamedTuple

from scipy.stats import t

from gcnii_paper.tables.printed import Printed

Word = Literal["replicates", "higher", "lower", "undecided"]

ALPHA = 0.05
MARGIN = 1.0  # points, where the paper prints no standard deviation


@dataclass(frozen=True)
class Verdict:
    """The word, and the numbers behind it in points."""

    word: Word
    difference: float  # our mean minus the printed one
    margin: float
    low: float  # the difference's interval at 1 - 2α, as TOST uses it
    high: float

    def __str__(self) -> str:
        return self.word


def by_split(scores: Sequence[float], splits: Sequence[int]) -> list[list[float]]:
    """The scores of each split; `splits` has the split of each score."""
    return [
        [score for score, at in zip(scores, splits, strict=True) if at == split]
        for split in set(splits)
    ]


def judge(
    scores: Sequence[float], splits: Sequence[int], printed: Printed, *, shared: bool = True
) -> Verdict | None:
    """The verdict on scores in per cent; None if there are none, or if one of them is NaN.

    splits  the split of each score
    shared  whether the printed number is of the same splits
    """
    if not scores or not all(map(isfinite, scores)):
        return None
    groups = by_split(scores, splits)
    difference = fmean(map(fmean, groups)) - printed.mean
    error = standard_errors(groups, printed.runs, shared=shared)
    margin = printed.sd or MARGIN
    tost = error.quantile(ALPHA) * error.ours
    luck = error.quantile(ALPHA / 2) * hypot(error.ours, error.theirs)
    word: Word = "undecided"
    if abs(difference) + tost < margin:
        word = "replicates"
    elif abs(difference) > luck:
        word = "higher" if difference > 0 else "lower"
    return Verdict(word, difference, margin, difference - tost, difference + tost)


class Errors(NamedTuple):
    """Standard errors of both means, and the degrees of freedom that they were estimated with."""

    ours: float
    theirs: float
    freedom: int

    def quantile(self, tail: float) -> float:
        """Student's t with this probability above it."""
        return float(t.ppf(1 - tail, max(self.freedom, 1)))


def standard_errors(
    groups: Sequence[Sequence[float]], printed: int | None = None, *, shared: bool = True
) -> Errors:
    """The errors of our mean and of another's.

    groups   our scores, by split
    printed  the number of runs behind the other mean on a single split; None if unknown
    shared   whether the other mean is of the same splits
    """
    repeated = sum(map(len, groups)) > len(groups)
    return _within(groups, printed) if shared and repeated else _between(groups)


def _within(groups: Sequence[Sequence[float]], printed: int | None) -> Errors:
    """Of means over these very splits.

    printed  the number of runs behind the printed mean on a single split; None if unknown
    """
    splits, freedom = len(groups), sum(map(len, groups)) - len(groups)
    s = sqrt(sum((score - fmean(scores)) ** 2 for scores in groups for score in scores) / freedom)
    ours = s * sqrt(sum(1 / len(scores) for scores in groups)) / splits
    theirs = splits if splits > 1 else printed
    return Errors(ours, s / sqrt(theirs) if theirs else 0.0, freedom)


def _between(groups: Sequence[Sequence[float]]) -> Errors:
    """Of means over any splits that might have been drawn, the same number on both sides."""
    means, splits = [fmean(scores) for scores in groups], len(groups)
    error = stdev(means) / sqrt(splits) if splits > 1 else inf
    return Errors(error, error, splits - 1)
