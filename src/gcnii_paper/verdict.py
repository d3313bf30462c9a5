"""Whether our runs replicate a printed number: the rule of 18 November 2026.

Let δ be our mean minus the printed one, in points, and the margin the paper's own standard
deviation where it prints one, else 1.0 point.

replicates  two one-sided t-tests (TOST, α = 0.05) say |δ| < margin: δ's 90 % interval lies within
            the margin
higher      not so, and chance does not explain that δ > 0, ours or the paper's: its p-value,
            corrected for the number of printed numbers, is at most 0.05
lower       the same below
undecided   neither

A p-value needs the number of runs that `printed.runs_needed` asks for before they are measured.  It
depends on what is known of the runs behind the printed number:

100 runs    Welch's t-test, with the printed deviation, or with ours where none is printed
one run     its rank among ours: with r of our n runs at or beyond it on the rarer side, the share
            2 (r + 1)/(n + 1).  No shape of the spread is assumed: runs that collapse have two peaks
unknown     the larger p-value of these two: there is a verdict only if they agree
ten splits  a t-test with the spread of seeds within a split, below

Where cells have the same runs and the same printed number, it is one number, judged once.  The
p-values of all numbers that are shown together are corrected by Benjamini and Hochberg: of those
called higher or lower, 5 % are expected to be so by chance.

Where our settings are not those behind the printed number, because nobody published these or
because we vary them, there is no verdict: δ and its interval are shown.

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
then taken: it contains the levels too, so it errs towards `undecided`.  On splits drawn afresh
(60/20/20) nothing cancels: the mean of a split is one observation there, whatever its number of
seeds, and the printed mean is of ten other splits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import hypot, inf, isfinite, sqrt
from statistics import fmean, stdev
from typing import Literal, NamedTuple

from scipy.stats import false_discovery_control, t

from gcnii_paper.tables.cells import MeasuredCell
from gcnii_paper.tables.printed import MANY, SPLITS, TEN_SPLITS, Printed, runs_needed

Word = Literal["replicates", "higher", "lower", "undecided", "other settings"]

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
    p: float | None  # that chance explains the difference, before correction; None: not tested
    needs: int  # the number of runs that the rule asks for

    def __str__(self) -> str:
        return self.word


def verdicts(cells: Iterable[MeasuredCell], ours: Iterable[str] = ()) -> dict[str, Verdict]:
    """cell → verdict, where there is a number to compare with; corrected for all that are tested.

    ours  the names of cells whose settings are not those behind the printed number
    """
    ours, names, found = set(ours), dict[str, tuple[str, Printed]](), dict[str, Verdict]()
    alone: dict[tuple[str, Printed], Verdict] = {}
    for cell in cells:
        if cell.printed is None or cell.stand_in:
            continue
        varied = cell.extra or cell.cell in ours
        needs = runs_needed(cell.printed, SPLITS if cell.graph in TEN_SPLITS else 1, ours=varied)
        verdict = judge(cell.by_split, cell.printed, needs, shared=cell.shared, ours=varied)
        if verdict and varied:
            found[cell.cell] = verdict
        elif verdict:
            names[cell.cell] = number = (cell.settings_hash, cell.printed)
            alone[number] = verdict
    corrected = dict(zip(alone, correct(list(alone.values())), strict=True))
    return found | {name: corrected[number] for name, number in names.items()}


def correct(judged: Sequence[Verdict]) -> list[Verdict]:
    """Distinct numbers, each judged alone, with `higher` or `lower` where chance is ruled out."""
    tested = [verdict.p for verdict in judged if verdict.p is not None]
    adjusted = iter(false_discovery_control(tested) if tested else ())

    def called(verdict: Verdict) -> Verdict:
        p = inf if verdict.p is None else float(next(adjusted))
        if verdict.word != "undecided" or p > ALPHA:
            return verdict
        return replace(verdict, word="higher" if verdict.difference > 0 else "lower")

    return [called(verdict) for verdict in judged]


def judge(
    groups: Sequence[Sequence[float]],
    printed: Printed,
    needs: int,
    *,
    shared: bool = True,
    ours: bool = False,
) -> Verdict | None:
    """A number alone, before correction; None if there are no scores, or if one of them is NaN.

    groups  our scores in per cent, by split
    needs   the number of runs below which there is no p-value
    shared  whether the printed number is of the same splits
    ours    whether our settings are not those behind it
    """
    if not groups or not all(isfinite(score) for scores in groups for score in scores):
        return None
    difference = fmean(map(fmean, groups)) - printed.mean
    error = standard_errors(groups, shared=shared)
    margin, reach = printed.sd or MARGIN, error.quantile(ALPHA) * error.ours
    enough = sum(map(len, groups)) >= needs
    word: Word = "undecided"
    if ours:
        word = "other settings"
    elif abs(difference) + reach < margin:
        word = "replicates"
    p = chance(groups, printed) if enough and shared and not ours else None
    return Verdict(word, difference, margin, difference - reach, difference + reach, p, needs)


def chance(groups: Sequence[Sequence[float]], printed: Printed) -> float:
    """The p-value of a printed number, two-sided, by what is known of the runs behind it."""
    if len(groups) > 1:
        error = standard_errors(groups)
        difference = fmean(map(fmean, groups)) - printed.mean
        return _student(difference, hypot(error.ours, error.theirs), error.freedom)
    (scores,) = groups
    if printed.runs == 1:
        return _rank(scores, printed.mean)
    if printed.runs == MANY:
        return _welch(scores, printed)
    return max(_rank(scores, printed.mean), _welch(scores, printed))


def _rank(scores: Sequence[float], one: float) -> float:
    """That one more run would be so far out among these, on either side; ties count against it."""
    beyond = min(sum(score <= one for score in scores), sum(score >= one for score in scores))
    return min(2 * (beyond + 1) / (len(scores) + 1), 1.0)


def _welch(scores: Sequence[float], printed: Printed) -> float:
    """For a mean of MANY runs, with the printed deviation, or ours where none is printed."""
    s = stdev(scores)
    ours, theirs = s**2 / len(scores), (printed.sd or s) ** 2 / MANY
    parts = ours**2 / (len(scores) - 1) + theirs**2 / (MANY - 1)
    freedom = (ours + theirs) ** 2 / parts if parts else inf
    return _student(fmean(scores) - printed.mean, sqrt(ours + theirs), freedom)


def _student(difference: float, error: float, freedom: float) -> float:
    """Two-sided; without any error, only equality is chance."""
    if error == 0:
        return float(difference == 0)
    return float(2 * t.sf(abs(difference) / error, freedom))


class Errors(NamedTuple):
    """Standard errors of both means, and the degrees of freedom that they were estimated with."""

    ours: float
    theirs: float  # of a mean with one run on each of several splits; 0 on one, where it varies
    freedom: int

    def quantile(self, tail: float) -> float:
        """Student's t with this probability above it."""
        return float(t.ppf(1 - tail, max(self.freedom, 1)))


def standard_errors(groups: Sequence[Sequence[float]], *, shared: bool = True) -> Errors:
    """The errors of our mean and of another's.

    groups  our scores, by split
    shared  whether the other mean is of the same splits
    """
    repeated = sum(map(len, groups)) > len(groups)
    return _within(groups) if shared and repeated else _between(groups)


def _within(groups: Sequence[Sequence[float]]) -> Errors:
    """Of means over these very splits."""
    splits, freedom = len(groups), sum(map(len, groups)) - len(groups)
    s = sqrt(sum((score - fmean(scores)) ** 2 for scores in groups for score in scores) / freedom)
    ours = s * sqrt(sum(1 / len(scores) for scores in groups)) / splits
    return Errors(ours, s / sqrt(splits) if splits > 1 else 0.0, freedom)


def _between(groups: Sequence[Sequence[float]]) -> Errors:
    """Of means over any splits that might have been drawn, the same number on both sides."""
    means, splits = [fmean(scores) for scores in groups], len(groups)
    error = stdev(means) / sqrt(splits) if splits > 1 else inf
    return Errors(error, error, splits - 1)
