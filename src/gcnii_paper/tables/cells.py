"""A cell of a table as a value: what is trained, on what, how, and the number the paper prints.

`Cell` is the question; `MeasuredCell` the answer, one JSON file below results/cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite, nan
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal, get_args

from gcnii.errors import InputError
from gcnii.files import NOTHING, Document, Maybe, Only, check, read_document, write_document
from gcnii.train.presets import Settings
from gcnii_paper.tables.printed import SPLITS, TEN_SPLITS, Printed, runs_needed

Splits = Literal["published", "60/20/20"]

GROUP = {
    "who": {"all", "test"},
    "from": int,
    "below": (int, NOTHING),
    "nodes": int,
    "accuracy": float,
}
RUN = Only(
    {
        **dict.fromkeys(("seed", "split", "best_epoch", "epochs"), int),
        **dict.fromkeys(("test", "val", "val_loss"), (float, NOTHING)),
        "seconds": float,
        "device": str,
        "versions": Maybe((dict, NOTHING)),
        "commit": Maybe((str, NOTHING)),
        "by_degree": Maybe(([GROUP], NOTHING)),
        "temperature": Maybe(float),  # of `gcnii train`; no score depends on these
        "weights": Maybe([float]),
    }
)
CELL = Only(
    {
        **dict.fromkeys(("cell", "table", "row", "column", "graph", "model"), str),
        **dict.fromkeys(("settings_hash", "command", "note"), str),
        "settings": dict,
        "runs": [dict],
        "extra": bool,
        "stand_in": bool,
        "splits": Maybe(set(get_args(Splits))),
        "printed": (Only({"mean": float, "sd": (float, NOTHING), "source": str}), NOTHING),
    }
)
LIMITS = {  # upper limits of a run's numbers; the lower limit is 0
    **dict.fromkeys(("seed", "split", "epochs"), 2**31 - 1),
    **{"test": 1, "val": 1, "seconds": inf},
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Seeds 0 … runs - 1 of `model` on `graph`; seed s takes split s modulo the number of splits.

    settings   that differ from the preset of the graph
    runs       by default as many as a verdict needs
    splits     those of the data set, or ten drawn afresh with the shares in the paper's text
    printed    None where the paper prints no number
    note       what a reader must know about this cell
    ours       whether its settings are ours, searched for or a default, because none were published
    extra      whether it stands below the table, because the paper has no such row
    stand_in   whether `graph` only has the shape of the paper's, so that scores cannot be compared
    by_degree  whether accuracy is also kept for each group of degrees (Figure 1)
    """

    table: str
    row: str
    column: str
    graph: str
    model: str
    settings: Settings = field(default_factory=dict)
    runs: int = 0
    splits: Splits = "published"
    printed: Printed | None = None
    note: str = ""
    ours: bool = False
    extra: bool = False
    stand_in: bool = False
    by_degree: bool = False

    def __post_init__(self) -> None:
        """Ask for the runs that a verdict needs, unless their number is given."""
        if not self.runs:
            splits = SPLITS if self.graph in TEN_SPLITS else 1
            needed = runs_needed(self.printed, splits, ours=self.ours or self.extra)
            object.__setattr__(self, "runs", needed)

    @property
    def id(self) -> str:
        """`table2/gcnii-star/cora`."""
        return f"{self.table}/{slug(self.row)}/{slug(self.column)}"

    @property
    def command(self) -> str:
        """The command that trains it."""
        return f"gcnii reproduce {self.table} --only {self.id}"

    def below(self, suffix: str, note: str, **changes: Any) -> Cell:
        """A cell of a row of our own below the table, which varies this one."""
        row = f"{self.row}, {suffix}"
        return replace(self, row=row, note=note, extra=True, runs=0, **changes)


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """One seed; scores in [0, 1], None if the training diverged."""

    seed: int
    split: int
    test: float | None
    val: float | None
    val_loss: float | None
    best_epoch: int
    epochs: int
    seconds: float
    device: str
    versions: dict[str, str | None] | None = None
    commit: str | None = None
    by_degree: list[Document] | None = None

    @classmethod
    def of(cls, record: Document, at: str = "run", **known: object) -> MeasuredRun:
        """The run of a JSON object; an error if it is not one.

        at     the place of the object, for the error
        known  fields that the document has once for all its runs
        """
        record = {**known, **record}
        check(record, RUN, at)
        for name, most in LIMITS.items():
            if record[name] is not None and not 0 <= record[name] <= most:
                raise InputError(f"{at}.{name} must lie in [0, {most}], got {record[name]!r}")
        unused = ("temperature", "weights")
        return cls(**{name: value for name, value in record.items() if name not in unused})

    def record(self) -> Document:
        """As a JSON object; `by_degree` only if the cell asks for it."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name != "by_degree" or value is not None
        }


@dataclass(frozen=True, kw_only=True)
class MeasuredCell:
    """A cell with its runs, as in its file; `test`, `mean` and `sd` are in per cent."""

    cell: str
    table: str
    row: str
    column: str
    graph: str
    model: str
    settings: Settings
    settings_hash: str
    command: str
    printed: Printed | None
    note: str
    extra: bool
    stand_in: bool
    runs: tuple[MeasuredRun, ...]
    splits: Splits = "published"

    @property
    def test(self) -> tuple[float, ...]:
        """One score per seed, in the order of the seeds."""
        return tuple(nan if run.test is None else 100 * run.test for run in self.runs)

    @property
    def n(self) -> int:
        """The number of runs."""
        return len(self.runs)

    @property
    def mean(self) -> float:
        """The mean of the splits' means; nan if a run has no score."""
        groups = self.by_split
        return fmean(map(fmean, groups)) if groups else nan

    @property
    def sd(self) -> float | None:
        """The sample standard deviation of all runs; None for a single run, or without a score."""
        return stdev(self.test) if self.n > 1 and all(map(isfinite, self.test)) else None

    @property
    def repeat(self) -> str:
        """The command that trains the same number of runs."""
        return f"{self.command} --runs {self.n}"

    @property
    def by_split(self) -> list[list[float]]:
        """The scores of each split."""
        return by_split(self.test, [run.split for run in self.runs])

    @property
    def shared(self) -> bool:
        """Whether the printed number is over the same splits."""
        # The corrected Cornell has the published masks, but other nodes behind them.
        several = len({run.split for run in self.runs}) > 1
        return self.splits == "published" and (self.graph in TEN_SPLITS or not several)

    def record(self) -> Document:
        """As a JSON object."""
        runs = [run.record() for run in self.runs]
        return asdict(self) | {"printed": self.printed and self.printed._asdict(), "runs": runs}

    def path(self, folder: Path) -> Path:
        """TABLE/ROW-COLUMN.json below the folder."""
        table, row, column = self.cell.split("/")
        return folder / table / f"{row}-{column}.json"

    def save(self, folder: Path) -> Path:
        """Write it to its path."""
        return write_document(self.path(folder), self.record())


def read_cells(folder: Path) -> list[MeasuredCell]:
    """Every measured cell below the folder, in the order of the files' names."""
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder}; `gcnii reproduce export --out {folder}` writes it"
        )
    cells = {
        path: read_document(path, CELL, "measured cell", _measured)
        for path in sorted(folder.glob("*/*.json"))
    }
    for path, cell in cells.items():
        if cell.path(folder) != path:  # of two files of a cell, only one would count
            raise InputError(
                f"{path} holds {cell.cell}, whose file is {cell.path(folder)}; "
                "move it there, or away"
            )
    return list(cells.values())


def _measured(record: Document) -> MeasuredCell:
    if not record["runs"]:
        raise InputError("it has no runs")
    if record["cell"].count("/") != 2:
        raise InputError(f"cell must be TABLE/ROW/COLUMN, got {record['cell']!r}")
    printed = record["printed"] and Printed(**record["printed"])
    return MeasuredCell(**record | {"printed": printed, "runs": tuple(runs_of(record))})


def runs_of(document: Document, **known: object) -> Iterator[MeasuredRun]:
    """The runs of a document; `known` are fields that it has once for all of them."""
    seeds = set()
    for i, record in enumerate(document["runs"]):
        run = MeasuredRun.of(record, f"runs[{i}]", **known)
        if run.seed in seeds:
            raise InputError(f"runs[{i}] has seed {run.seed} again")
        seeds.add(run.seed)
        yield run


def by_split(scores: Sequence[float], splits: Sequence[int]) -> list[list[float]]:
    """The scores of each split; `splits` has the split of each score."""
    return [
        [score for score, at in zip(scores, splits, strict=True) if at == split]
        for split in dict.fromkeys(splits)
    ]


def slug(words: str) -> str:
    """`GCNII*, 64 layers` → `gcnii-star-64-layers`."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower().replace("*", " star")).strip("-")
