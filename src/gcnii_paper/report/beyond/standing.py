"""Where a record stands: beside the best known number, and beside GCNII as the paper has it.

ahead                     our mean is above the best known number, by a two-sided t-test at 5 %
behind                    the same below
not significantly behind  neither

The errors are those of `verdict.py`.  On one split ours is s/√n, and theirs their deviation
by the root of their runs, where both are known.  On the same ten splits the levels of the splits
cancel: the spread of the seeds within a split is taken on both sides, theirs with one run per
split.  On splits that differ, the spread of the splits' means is taken on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, isfinite, sqrt
from statistics import fmean, stdev
from typing import Literal

from gcnii_paper.tables.beyond import BestKnown
from gcnii_paper.tables.cells import MeasuredCell
from gcnii_paper.verdict import ALPHA, Errors, by_split, standard_errors

Word = Literal["ahead", "not significantly behind", "behind"]
RULE = (
    "ahead or behind: our mean is above or below the best known number by a two-sided t-test at "
    "5 %; otherwise it is not significantly behind. On one split the errors are those of our runs "
    "and, where known, of theirs. On the same ten splits the levels of the splits cancel: the "
    "spread of seeds within a split counts, for their mean with one run per split. On splits that "
    "differ the spread of the splits counts on both sides."
)


@dataclass(frozen=True)
class Standing:
    """The word, and our mean minus the best known one with its standard error, in points."""

    word: Word
    difference: float
    error: float


def stands(scores: Sequence[float], splits: Sequence[int], best: BestKnown) -> Standing | None:
    """Where scores in per cent stand; None if there are too few, or if one of them is NaN."""
    if len(scores) < 2 or not all(map(isfinite, scores)):
        return None
    groups = by_split(scores, splits)
    errors = _errors(groups, best)
    difference, error = fmean(map(fmean, groups)) - best.mean, hypot(errors.ours, errors.theirs)
    if abs(difference) <= errors.quantile(ALPHA / 2) * error:
        return Standing("not significantly behind", difference, error)
    return Standing("ahead" if difference > 0 else "behind", difference, error)


def _errors(groups: Sequence[Sequence[float]], best: BestKnown) -> Errors:
    errors = standard_errors(groups, shared=best.shared)
    if len(groups) == 1 and best.sd and best.runs:
        return errors._replace(theirs=best.sd / sqrt(best.runs))
    return errors


@dataclass(frozen=True)
class Gain:
    """The mean difference of two cells in points, its standard error, and the number of pairs."""

    mean: float
    error: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.mean:+.1f} ± {self.error:.1f} ({self.pairs})"


def gain(one: MeasuredCell, other: MeasuredCell) -> Gain | None:
    """One cell less another, paired by split, or by seed where there is one split.

    None if fewer than two pairs are there, or if a run has no score.
    """
    several = len({run.split for cell in (one, other) for run in cell.runs}) > 1
    mine, theirs = _levels(one, several), _levels(other, several)
    gaps = [mine[key] - theirs[key] for key in sorted(mine.keys() & theirs.keys())]
    if len(gaps) < 2 or not all(map(isfinite, gaps)):
        return None
    return Gain(fmean(gaps), stdev(gaps) / sqrt(len(gaps)), len(gaps))


def _levels(cell: MeasuredCell, several: bool) -> dict[int, float]:
    """The mean score of each split, or the score of each seed."""
    scores: dict[int, list[float]] = {}
    for run, score in zip(cell.runs, cell.test, strict=True):
        scores.setdefault(run.split if several else run.seed, []).append(score)
    return {key: fmean(some) for key, some in scores.items()}
