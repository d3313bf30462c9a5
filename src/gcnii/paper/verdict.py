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
because it is of 100 runs, or of how many the paper does not say; but what is known to be one run,
as all of DropEdge's, has the error s.

Over ten splits (Table 5) a score is its split's level plus what the seed adds.  Both means are over
the same published splits, so the levels stand on both sides of δ and cancel; they would be sampling
error only if the splits had been
drawn afresh.  What is left is the seeds' spread within a split, s², pooled over S splits with n - S
               degrees of freedom:

    ours    s²/S² Σ 1/n_s, which is s²/n where every split has as many seeds.  The mean is that of
            the splits' means
    theirs  s²/S, because the printed mean is of one run a split.  With several runs of ours this is
            the larger part: without it, at ten seeds a split, half of all faithful replications
            would be called higher or lower

`replicates` says that our mean is near the printed number, whatever luck was in that; so it rests
on ours alone. `higher` and `lower` say that luck does not explain the difference, neither ours nor
theirs; so they rest on both.

With one seed a split, n = S, nothing tells level and seed apart.  The spread over all runs is then
taken on both sides: it holds the levels too, so it errs towards `undecided`.  On splits drawn
afresh (60/20/20) nothing cancels: a split's mean is one observation there, however many seeds it
has, and the printed mean is of ten others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, inf, isfinite, sqrt
from statistics import fmean, stdev
from typing import Literal, NamedTuple

from scipy.stats import t

from gcnii.paper.tables.printed import Printed

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


def judge(
    scores: Sequence[float], splits: Sequence[int], printed: Printed, *, shared: bool = True
) -> Verdict | None:
    """The verdict on scores in per cent; None where there are none, or where one of them is no
    number.

    splits  the split of each score
    shared  whether the printed number is of the same splits
    """
    if not scores or not all(map(isfinite, scores)):
        return None
    by_split = [
        [score for score, at in zip(scores, splits, strict=True) if at == split]
        for split in set(splits)
    ]
    difference = fmean(map(fmean, by_split)) - printed.mean
    within = shared and len(scores) > len(by_split)
    error = _within(by_split, printed.runs) if within else _between(by_split)
    margin = printed.sd or MARGIN
    one_sided, two_sided = (
        float(t.ppf(1 - tail, max(error.freedom, 1))) for tail in (ALPHA, ALPHA / 2)
    )
    tost = one_sided * error.ours
    word: Word = "undecided"
    if abs(difference) + tost < margin:
        word = "replicates"
    elif abs(difference) > two_sided * hypot(error.ours, error.theirs):
        word = "higher" if difference > 0 else "lower"
    return Verdict(word, difference, margin, difference - tost, difference + tost)


class _Error(NamedTuple):
    """Standard errors of both means, and the degrees of freedom that they were estimated with."""

    ours: float
    theirs: float
    freedom: int


def _within(by_split: Sequence[Sequence[float]], printed: int | None) -> _Error:
    """Of means over these very splits; on a single one, so many runs are behind the printed mean,
    if that is known.
    """
    splits, freedom = len(by_split), sum(map(len, by_split)) - len(by_split)
    s = sqrt(sum((score - fmean(scores)) ** 2 for scores in by_split for score in scores) / freedom)
    ours = s * sqrt(sum(1 / len(scores) for scores in by_split)) / splits
    theirs = splits if splits > 1 else printed
    return _Error(ours, s / sqrt(theirs) if theirs else 0.0, freedom)


def _between(by_split: Sequence[Sequence[float]]) -> _Error:
    """Of means over any splits that might have been drawn, as many on both sides."""
    means, splits = [fmean(scores) for scores in by_split], len(by_split)
    error = stdev(means) / sqrt(splits) if splits > 1 else inf
    return _Error(error, error, splits - 1)
