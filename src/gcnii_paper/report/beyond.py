"""Our records beside the best known numbers, and beside GCNII as the paper has it.

ahead                     our mean is above the best known number, by a two-sided t-test at 5 %
behind                    the same below
not significantly behind  neither

The errors are those of `verdict.py`.  On one split ours is s/√n, and theirs their deviation
by the root of their runs, where both are known.  On the same ten splits the levels of the splits
cancel: the spread of the seeds within a split is taken on both sides, theirs with one run per
split.  On splits that differ, the spread of the splits' means is taken on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import hypot, isfinite, sqrt
from statistics import fmean, stdev
from typing import Literal

from rich.table import Table

from gcnii.files import Document, json_value
from gcnii.report.tables import markdown_table
from gcnii.train.presets import Record, records
from gcnii_paper.tables.beyond import BEST, NAME, TITLE, BestKnown
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


@dataclass(frozen=True)
class BeyondRow:
    """A data set: the best known number, our record, its runs, and those of the paper's GCNII.

    What is not there is None.
    """

    best: BestKnown
    record: Record | None
    ours: MeasuredCell | None
    plain: MeasuredCell | None

    @property
    def standing(self) -> Standing | None:
        """None before there are runs, or if one of them diverged."""
        if not self.ours:
            return None
        return stands(self.ours.test, [run.split for run in self.ours.runs], self.best)

    @property
    def word(self) -> str:
        """The standing's word, or why there is none."""
        if not self.ours:
            return "missing"
        if not isfinite(self.ours.mean):
            return "failed"
        return self.standing.word if self.standing else "too few runs"

    @property
    def gain(self) -> Gain | None:
        """The record less GCNII as the paper has it."""
        return gain(self.ours, self.plain) if self.ours and self.plain else None

    @property
    def missing(self) -> str:
        """The command that measures what is missing; "" if nothing is."""
        if not self.record:
            return f"gcnii tune {self.best.graph}"
        enough = self.ours and self.ours.n >= self.best.least
        return "" if enough else f"gcnii reproduce {NAME} --only {self.best.cell}"

    def document(self) -> Document:
        ours, plain, found = self.ours, self.plain, self.standing
        return {
            **asdict(self.best),
            "record": self.record.document() if self.record else None,
            "verdict": self.word,
            "difference": found and json_value(found.difference),
            "error": found and json_value(found.error),
            "gain": self.gain and asdict(self.gain),
            "ours": ours and {"mean": json_value(ours.mean), "sd": ours.sd, "n": ours.n},
            "gcnii": plain and {"mean": json_value(plain.mean), "sd": plain.sd, "n": plain.n},
            "missing": self.missing,
        }


def beyond_rows(
    measured: Iterable[MeasuredCell], chosen: Iterable[BestKnown] = BEST
) -> list[BeyondRow]:
    """The rows of the chosen data sets, from measured cells of this table and of the paper's."""
    found, held = {one.cell: one for one in measured if one.runs}, records()

    def row(best: BestKnown) -> BeyondRow:
        record, ours = held.get(best.graph), found.get(best.cell)
        own = ours if record and ours and _is_of(record, ours) else None
        return BeyondRow(best, record, own, found.get(best.plain))

    return [row(best) for best in chosen]


def _is_of(record: Record, ours: MeasuredCell) -> bool:
    """Whether the runs are of the record as it is now, not of an earlier one."""
    from gcnii.train.plan import make_plan
    from gcnii.train.recipe import in_force

    settings = make_plan(record.model, record.settings).settings
    return ours.model == record.model and in_force(ours.settings) == in_force(settings)


HEADS = (
    *("data set", "ours", "best known", "whose", "verdict"),
    *("GCNII here", "ours less GCNII", "model", "settings tried"),
)
ABOUT = f"""\
Not of the paper: for each data set, the best settings that `gcnii tune` has found, chosen by
validation alone among the number of settings that is given, beside the best credible number that
was published, with the epoch chosen by validation. Mean ± standard deviation (runs); GCNII has the
paper's settings; the difference is paired by split, on a single split by seed: mean ± standard
error (pairs). Some seeds of the search are among these. On data sets with several splits, a test
node of one split trained or validated in others during the search, as is common practice.
`gcnii train NAME --preset record` trains such a model.

Verdicts: {RULE}
"""


def number(cell: MeasuredCell | None) -> str:
    """`85.3 ± 0.5 (20)`; a dash if nothing was measured, or a run diverged."""
    return f"{mean_and_sd(cell)} ({cell.n})" if cell and cell.mean == cell.mean else "–"


def mean_and_sd(cell: MeasuredCell) -> str:
    """`85.3 ± 0.5`."""
    return f"{cell.mean:.1f}" + ("" if cell.n < 2 else f" ± {stdev(cell.test):.1f}")


def best_known(row: BeyondRow) -> str:
    """`75.4 ± 0.4`, with as many digits as are known."""
    best = row.best
    return f"{best.mean:g}" + (f" ± {best.sd:g}" if best.sd else "")


def words_of(row: BeyondRow) -> list[str]:
    """The row in words, one for each of HEADS."""
    record = row.record
    return [
        *(row.best.title, number(row.ours), best_known(row), row.best.whose, row.word),
        *(number(row.plain), str(row.gain or "–")),
        *((record.model, str(record.tried)) if record else ("–", "–")),
    ]


def notes_on(rows: Iterable[BeyondRow]) -> Iterator[str]:
    """Each protocol with its data sets; then the commands that measure what is missing."""
    rows, protocols = list(rows), dict[str, list[str]]()
    for row in rows:
        protocols.setdefault(row.best.protocol, []).append(row.best.title)
    yield from (f"{'; '.join(names)}: {protocol}" for protocol, names in protocols.items())
    if unknown := [row.best.graph for row in rows if not row.record]:
        how = "`gcnii tune NAME`, then `gcnii reproduce adopt-record STUDY`"
        yield f"no record yet, {how}: {', '.join(unknown)}"
    for row in rows:
        if row.record and row.missing:
            yield f"{row.best.title}: measure it with `{row.missing}`"


def section(rows: Sequence[BeyondRow]) -> str:
    """The part of docs/results.md."""
    notes = "".join(f"- {note}\n" for note in notes_on(rows))
    return f"## {TITLE}\n\n{ABOUT}\n{markdown_table(HEADS, map(words_of, rows))}\n{notes}"


def short_table(rows: Iterable[BeyondRow]) -> str:
    """The README's: what was measured, and nothing where nothing was."""
    shown = [row for row in rows if row.ours and row.word != "failed"]
    if not shown:
        return ""
    lines = (
        [
            *(row.best.graph, _tight(mean_and_sd(row.ours)), _tight(best_known(row))),
            row.best.whose.partition(",")[0],
        ]
        for row in shown
        if row.ours
    )
    heads = ("data set", "record", "best known", "whose")
    return f"\nBeyond the paper (`gcnii reproduce beyond`):\n\n{markdown_table(heads, lines)}"


def _tight(text: str) -> str:
    return text.replace(" ", "")


def terminal_table(rows: Iterable[BeyondRow]) -> Table:
    """For the terminal."""
    table = Table(*HEADS, box=None, header_style="bold", title=TITLE, title_justify="left")
    for row in rows:
        table.add_row(*words_of(row))
    return table
