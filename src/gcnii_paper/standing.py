"""Where our records stand: beside the best known numbers, and beside GCNII as the paper has it.

ahead                     our mean is above the best known number, by a two-sided t-test at 5 %
behind                    the same below
not significantly behind  neither

The errors are those of `verdict.py`.  On one split ours is s/√n, and theirs their deviation
by the root of their runs, where both are known.  On the same ten splits the levels of the splits
cancel: the spread of the seeds within a split is taken on both sides, theirs with one run per
split.  A number of other splits is shown, and not compared.

How the records were found is read from the studies of `gcnii tune` in results/beyond/studies, and
what a choice per split gives from results/beyond/nested.  All of it is put in words for
docs/evidence/results.md and beyond.md, and for the terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import hypot, isclose, isfinite, nan, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal

from rich.console import Group

from gcnii.errors import InputError
from gcnii.files import NOTHING, Document, Maybe, json_value
from gcnii.report.tables import markdown_table
from gcnii.train.presets import Record, records
from gcnii.tuning.question import BASELINES, GOOD
from gcnii_paper.documents import Part, listed, prose, read_folder
from gcnii_paper.search import EARLIER
from gcnii_paper.tables.beyond import BEST, DAY, KNOWN, NAME, TITLE, BestKnown, Known
from gcnii_paper.tables.cells import MeasuredCell, by_split
from gcnii_paper.verdict import ALPHA, standard_errors

Word = Literal["ahead", "not significantly behind", "behind"]
RULE = (
    "ahead or behind: our mean is above or below the best known number by a two-sided t-test at "
    "5 %; otherwise it is not significantly behind. On one split the errors are those of our runs "
    "and, where known, of theirs. On the same ten splits the levels of the splits cancel: the "
    "spread of seeds within a split counts, for their mean with one run per split. A number of "
    "other splits is shown, and not compared."
)


@dataclass(frozen=True)
class Standing:
    """The word, and our mean minus the best known one with its standard error, in points."""

    word: Word
    difference: float
    error: float


def stands(scores: Sequence[float], splits: Sequence[int], best: BestKnown) -> Standing | None:
    """Where scores in per cent stand.

    None if there are too few, if one of them is NaN, or if the number is of other splits.
    """
    if len(scores) < 2 or not all(map(isfinite, scores)) or not best.shared:
        return None
    groups = by_split(scores, splits)
    errors = standard_errors(groups)
    if len(groups) == 1 and best.sd and best.runs:
        errors = errors._replace(theirs=best.sd / sqrt(best.runs))
    difference, error = fmean(map(fmean, groups)) - best.mean, hypot(errors.ours, errors.theirs)
    if abs(difference) <= errors.quantile(ALPHA / 2) * error:
        return Standing("not significantly behind", difference, error)
    return Standing("ahead" if difference > 0 else "behind", difference, error)


@dataclass(frozen=True)
class RunScores:
    """Test scores in per cent, NaN where a run diverged, with the seed and the split of each."""

    seeds: tuple[int, ...]
    splits: tuple[int, ...]
    test: tuple[float, ...]

    @classmethod
    def of(cls, cell: MeasuredCell) -> RunScores:
        """The runs of a cell."""
        runs = cell.runs
        return cls(tuple(run.seed for run in runs), tuple(run.split for run in runs), cell.test)

    @property
    def n(self) -> int:
        """The number of runs."""
        return len(self.test)

    @property
    def mean(self) -> float:
        """The mean of the splits' means; nan if a run has no score."""
        return fmean(map(fmean, by_split(self.test, self.splits)))

    @property
    def sd(self) -> float | None:
        """The sample standard deviation of all runs; None for a single run, or without a score."""
        return stdev(self.test) if self.n > 1 and all(map(isfinite, self.test)) else None

    def __str__(self) -> str:
        """`85.3 ± 0.5`."""
        return f"{self.mean:.1f}" + ("" if self.sd is None else f" ± {self.sd:.1f}")

    def document(self) -> Document:
        return {"mean": json_value(self.mean), "sd": self.sd, "n": self.n}


@dataclass(frozen=True)
class Gain:
    """The mean difference of two cells in points, its standard error, and the number of pairs."""

    mean: float
    error: float
    pairs: int

    def __str__(self) -> str:
        return f"{self.mean:+.1f} ± {self.error:.1f} ({self.pairs})"


def gain(one: RunScores, other: RunScores) -> Gain | None:
    """The difference of two, paired by split, or by seed where there is one split.

    None if fewer than two pairs are there, or if a run has no score.
    """
    several = len({*one.splits, *other.splits}) > 1
    mine, theirs = _levels(one, several), _levels(other, several)
    gaps = [mine[key] - theirs[key] for key in sorted(mine.keys() & theirs.keys())]
    if len(gaps) < 2 or not all(map(isfinite, gaps)):
        return None
    return Gain(fmean(gaps), stdev(gaps) / sqrt(len(gaps)), len(gaps))


def _levels(scores: RunScores, several: bool) -> dict[int, float]:
    """The mean score of each split, or the score of each seed."""
    found: dict[int, list[float]] = {}
    keys = scores.splits if several else scores.seeds
    for key, score in zip(keys, scores.test, strict=True):
        found.setdefault(key, []).append(score)
    return {key: fmean(some) for key, some in found.items()}


STUDY = {
    "graph": str,
    "tried": int,
    "fixed": dict,
    "winner": {"number": int, "model": str, "val": float, "settings": dict},
    "final": {"seed": [int], "split": [int], "test": [(float, NOTHING)]},
    "lead": {str: {"mean": float, "error": float}},
    "verdict": str,
    "trials": [{"model": str}],
    "nested": Maybe(bool),
}


@dataclass(frozen=True)
class Finding:
    """How the record of a data set was found: the study whose winner has the best validation score.

    name   of that study
    tried  the settings of all studies of the data set
    """

    name: str
    study: Document
    tried: int

    @property
    def final(self) -> RunScores | None:
        """The runs of the winner that ended the study, with seeds that the search had not seen.

        None of a study that chose for each split: what it tested is not its one winner.
        """
        if self.study.get("nested"):
            return None
        runs = self.study["final"]
        test = tuple(nan if one is None else 100 * one for one in runs["test"])
        return RunScores(tuple(runs["seed"]), tuple(runs["split"]), test)

    @property
    def typed(self) -> bool:
        """Whether the winner is a first point of the search: a default, or typed by hand."""
        won, fixed = self.study["winner"], self.study["fixed"]
        return won["number"] <= len(BASELINES) or any(
            model == won["model"]
            and all(
                won["settings"].get(name) == settings[name]
                for name in settings
                if name not in fixed
            )
            for model, settings in GOOD
        )

    @property
    def verdict(self) -> str:
        """What the study says of the graph, without the numbers: one of HELPS."""
        return str(self.study["verdict"]).partition(":")[0]


def read_findings(folder: Path) -> dict[str, Finding]:
    """Data set → how its record was found, from a folder of kept studies."""
    held: dict[str, list[tuple[str, Document]]] = {}
    for name, study in read_folder(folder, STUDY, "study of `gcnii tune`", dict).items():
        held.setdefault(study["graph"], []).append((name, study))

    def finding(studies: list[tuple[str, Document]]) -> Finding:
        name, study = max(studies, key=lambda one: float(one[1]["winner"]["val"]))
        return Finding(name, study, sum(one["tried"] for _, one in studies))

    return {graph: finding(studies) for graph, studies in held.items()}


ENSEMBLE = ("ensemble_mean", "ensemble_sd")
NESTED = {
    **dict.fromkeys(("data", "command", "day"), str),
    "commit": (str, NOTHING),
    "settings_tried": int,
    "splits": [{"split": int, "val": float, "test": float, "model": str, "settings": dict}],
    **dict.fromkeys(("test_mean", "test_sd"), float),
    **dict.fromkeys(ENSEMBLE, Maybe(float)),
}


@dataclass(frozen=True)
class Nested:
    """What was chosen for each split by its own validation nodes, and tested on its test nodes.

    Scores are in per cent; the deviation is over the splits.
    models    what was chosen, by name
    ensemble  `86.1 ± 4.2`, of an ensemble of each split's own; "" if there is none
    """

    mean: float
    sd: float
    splits: int
    tried: int
    command: str
    models: tuple[str, ...]
    ensemble: str = ""

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.sd:.1f} ({self.splits})"


def read_nested(folder: Path) -> dict[str, Nested]:
    """Data set → its nested number, from a folder of documents with scores in [0, 1]."""
    documents = read_folder(folder, NESTED, "nested choice", _checked)
    return {one["data"]: _nested(one) for one in documents.values()}


def _nested(document: Document) -> Nested:
    splits = document["splits"]
    ensemble = [document[name] for name in ENSEMBLE if name in document]
    return Nested(
        mean=100 * document["test_mean"],
        sd=100 * document["test_sd"],
        splits=len(splits),
        tried=document["settings_tried"],
        command=document["command"],
        models=tuple(sorted({split["model"] for split in splits})),
        ensemble=" ± ".join(f"{100 * score:.1f}" for score in ensemble),
    )


def _checked(document: Document) -> Document:
    scores = [one["test"] for one in document["splits"]]
    if not scores or not all(0 <= score <= 1 for score in scores):
        raise InputError("splits must have test scores in [0, 1]")
    if not isclose(fmean(scores), document["test_mean"], abs_tol=1e-4):
        raise InputError(f"test_mean must be the mean of the splits, got {document['test_mean']}")
    return document


@dataclass(frozen=True)
class BeyondRow:
    """A data set: the best known number, our record, its runs, and those of the paper's GCNII.

    What is not there is None.
    """

    best: BestKnown
    record: Record | None
    ours: RunScores | None
    plain: RunScores | None
    nested: Nested | None = None

    @property
    def standing(self) -> Standing | None:
        """None before there are runs, if one diverged, or beside a number of other splits."""
        return stands(self.ours.test, self.ours.splits, self.best) if self.ours else None

    @property
    def word(self) -> str:
        """The standing's word, or why there is none."""
        if not self.ours:
            return "missing"
        if not isfinite(self.ours.mean):
            return "failed"
        if not self.best.shared:
            return "not compared"
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
        found = self.standing
        return {
            **asdict(self.best),
            "record": self.record.document() if self.record else None,
            "verdict": self.word,
            "difference": found and json_value(found.difference),
            "error": found and json_value(found.error),
            "gain": self.gain and asdict(self.gain),
            "ours": self.ours and self.ours.document(),
            "nested": self.nested and asdict(self.nested),
            "gcnii": self.plain and self.plain.document(),
            "missing": self.missing,
        }


def beyond_rows(
    measured: Iterable[MeasuredCell], chosen: Iterable[BestKnown] = BEST, folder: Path | None = None
) -> list[BeyondRow]:
    """The rows of the chosen data sets, from measured cells of this table and of the paper's.

    folder  results/beyond: a record without a measured cell has the runs that ended its study
    """
    found, held = {one.cell: one for one in measured if one.runs}, records()
    findings = read_findings(folder / "studies") if folder else {}
    nested = read_nested(folder / "nested") if folder else {}

    def row(best: BestKnown) -> BeyondRow:
        record, cell, other = held.get(best.graph), found.get(best.cell), found.get(best.plain)
        plain = RunScores.of(other) if other else None
        ours = RunScores.of(cell) if record and cell and _is_of(record, cell) else None
        if record and not ours and (finding := findings.get(best.graph)):
            ours = finding.final if finding.study["winner"]["val"] == record.val else None
        return BeyondRow(best, record, ours, plain, nested.get(best.graph))

    return [row(best) for best in chosen]


def _is_of(record: Record, ours: MeasuredCell) -> bool:
    """Whether the runs are of the record as it is now, not of an earlier one."""
    from gcnii.train.plan import make_plan
    from gcnii.train.recipe import in_force

    settings = make_plan(record.model, record.settings).settings
    return ours.model == record.model and in_force(ours.settings) == in_force(settings)


HEADS = (
    *("data set", "ours, one choice for all splits", "ours, nested", "best known", "whose"),
    *("verdict", "GCNII here", "ours less GCNII", "model", "settings tried"),
)
ABOUT = prose("beyond").format(RULE=RULE)


def number(scores: RunScores | None) -> str:
    """`85.3 ± 0.5 (20)`; a dash if nothing was measured, or a run diverged."""
    return f"{scores} ({scores.n})" if scores and isfinite(scores.mean) else "–"


def best_known(best: BestKnown | Known) -> str:
    """`75.4 ± 0.4`, with as many digits as are known."""
    return f"{best.mean:g}" + (f" ± {best.sd:g}" if best.sd else "")


def words_of(row: BeyondRow) -> list[str]:
    """The row in words, one for each of HEADS."""
    record, best = row.record, row.best
    return [
        *(best.title, number(row.ours), str(row.nested or "–"), best_known(best), best.whose),
        *(row.word, number(row.plain), str(row.gain or "–")),
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
        if row.nested:
            of = f"{', '.join(row.nested.models)}, of {row.nested.tried} settings"
            both = f"; an ensemble per split has {one}" if (one := row.nested.ensemble) else ""
            yield f"{row.best.title}, nested: `{row.nested.command}`, {of}{both}"
    for row in rows:
        if row.record and row.missing:
            yield f"{row.best.title}: measure it with `{row.missing}`"


def section(rows: Sequence[BeyondRow]) -> str:
    """The part of docs/evidence/results.md."""
    table = markdown_table(HEADS, map(words_of, rows))
    return f"## {TITLE}\n\n{ABOUT}\n{table}\n{listed(notes_on(rows))}\n{known_table()}"


KNOWN_HEADS = (
    *("data set", "accuracy", "whose", "splits", "features", "trained on labels"),
    *("seen in", "its code, epoch", "counts, or why not"),
)


def known_table() -> str:
    """All numbers that are known, those that were set aside among them."""
    titles = {best.graph: best.title for best in BEST}
    rows = []
    for one in KNOWN:
        of = one.source
        what = (titles[one.graph], best_known(one), of.whose, of.splits, of.features, of.labels)
        rows.append((*what, one.seen, of.code, of.aside or "yes"))
    return f"{prose('known').format(DAY=DAY)}\n{markdown_table(KNOWN_HEADS, rows)}"


FOUND_HEADS = (
    *("data set", "the record is", "options fixed by hand", "validation", "settings tried"),
    *("MLP and GCN trials", "less an MLP"),
)


def findings_table(findings: dict[str, Finding]) -> str:
    """How each record was found: one row for each data set that has studies."""
    from gcnii.tuning.closing import HELPS  # Optuna may not be installed

    titles = {best.graph: best.title for best in BEST}
    found = {graph: findings[graph] for graph in titles if graph in findings}
    rows = (_found(titles[graph], finding) for graph, finding in found.items())
    unsure = [titles[graph] for graph, one in found.items() if one.verdict == HELPS[0]]
    where = ", ".join(f"{titles[graph]} {count}" for graph, count in EARLIER.items())
    counts = {"earlier": sum(EARLIER.values()), "where": where}
    about = prose("found").format(**counts, open=" and ".join(unsure) or "none of them")
    return f"{markdown_table(FOUND_HEADS, rows)}\n{about}"


def _found(title: str, finding: Finding) -> list[str]:
    study = finding.study
    won, lead, graph = study["winner"], study["lead"].get(BASELINES[0]), study["graph"]
    number = f"trial {won['number']} of {finding.name}"
    models = Counter(trial["model"] for trial in study["trials"])
    shares = " and ".join(str(models[model]) for model in BASELINES)
    mlp = f"{100 * lead['mean']:+.1f} ± {100 * lead['error']:.1f}" if lead else "–"
    return [
        title,
        f"a first point, {number}" if finding.typed else number,
        ", ".join(study["fixed"]) or "–",
        f"{100 * won['val']:.1f}",
        str(finding.tried + EARLIER.get(graph, 0)),
        f"{shares} of {study['tried']}",
        f"{mlp}: {finding.verdict.lower()}",
    ]


def terminal_table(rows: Iterable[BeyondRow]) -> Group:
    """For the terminal."""
    return Part(TITLE, HEADS, map(words_of, rows)).terminal()
