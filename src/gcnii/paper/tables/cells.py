"""A cell of a table is a value: what is trained, on what, how, and the number that the paper prints
there.

`Cell` is the question; `MeasuredCell` the answer, one JSON file below results/cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import inf, isfinite, nan
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal, get_args

from gcnii.errors import InputError
from gcnii.files import NOTHING, Maybe, Only, check, read_document, write_document
from gcnii.paper.tables.printed import TEN_SPLITS, Printed
from gcnii.paper.verdict import Verdict, judge

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
        **{"seconds": float, "device": str},
        **{
            "versions": Maybe((dict, NOTHING)),
            "commit": Maybe((str, NOTHING)),
            "by_degree": Maybe(([GROUP], NOTHING)),
        },
    }
)
CELL = Only(
    {
        **dict.fromkeys(
            (
                "cell",
                "table",
                "row",
                "column",
                "graph",
                "model",
                "settings_hash",
                "command",
                "note",
            ),
            str,
        ),
        **{
            "settings": dict,
            "runs": [dict],
            "extra": bool,
            "stand_in": bool,
            "splits": Maybe(set(get_args(Splits))),
        },
        "printed": (Only({"mean": float, "sd": (float, NOTHING), "source": str}), NOTHING),
    }
)
LIMITS = {  # of a run's numbers, from 0 on
    **dict.fromkeys(("seed", "split", "epochs"), 2**31 - 1),
    **{"test": 1, "val": 1, "seconds": inf},
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Seeds 0 … runs - 1 of `model` on `graph`; seed s takes split s modulo their number.

    settings   what differs from the preset of the graph
    splits     those of the data set, or ten drawn afresh for the shares that the paper's text names
    printed    None where the paper prints no number
    note       what a reader must know of this cell
    extra      whether it stands below the table, because the paper has no such row
    stand_in   whether `graph` only has the shape of the paper's, so that scores cannot be compared
    by_degree  whether accuracy is also kept for each group of degrees (Figure 1)
    """

    table: str
    row: str
    column: str
    graph: str
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    runs: int
    splits: Splits = "published"
    printed: Printed | None = None
    note: str = ""
    extra: bool = False
    stand_in: bool = False
    by_degree: bool = False

    @property
    def id(self) -> str:
        """`table2/gcnii-star/cora`."""
        return f"{self.table}/{slug(self.row)}/{slug(self.column)}"

    @property
    def command(self) -> str:
        """How to repeat it."""
        return f"gcnii reproduce {self.table} --only {self.id}"


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """One seed; scores in [0, 1], None where training never gave a finite loss."""

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
    by_degree: list[dict[str, Any]] | None = None

    @classmethod
    def of(cls, record: Mapping[str, Any], at: str = "run", **known: Any) -> MeasuredRun:
        """Of what stands `at` some place of a document, and what that says of all runs; refused
        where it is no run.
        """
        record = {**known, **record}
        check(record, RUN, at)
        for name, most in LIMITS.items():
            if record[name] is not None and not 0 <= record[name] <= most:
                raise InputError(f"{at}.{name} must lie in [0, {most}], got {record[name]!r}")
        return cls(**record)

    def record(self) -> dict[str, Any]:
        """As it stands in JSON; groups of degrees only where they were asked for."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name != "by_degree" or value is not None
        }


@dataclass(frozen=True, kw_only=True)
class MeasuredCell:
    """A cell with its runs, as it stands in its file; `test`, `mean` and `sd` are in per cent."""

    cell: str
    table: str
    row: str
    column: str
    graph: str
    model: str
    settings: dict[str, Any]
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
        """One score a seed, in the order of the seeds."""
        return tuple(nan if run.test is None else 100 * run.test for run in self.runs)

    @property
    def n(self) -> int:
        """Number of runs."""
        return len(self.runs)

    @property
    def mean(self) -> float:
        """Of all splits, each the mean of its runs; nan where a run has no score."""
        by_split: dict[int, list[float]] = {}
        for run, score in zip(self.runs, self.test, strict=True):
            by_split.setdefault(run.split, []).append(score)
        return fmean(map(fmean, by_split.values())) if by_split else nan

    @property
    def sd(self) -> float | None:
        """The sample standard deviation of all runs; None of a single run, and where a run has no
        score.
        """
        return stdev(self.test) if self.n > 1 and all(map(isfinite, self.test)) else None

    @property
    def repeat(self) -> str:
        """The command that gives as many runs again."""
        return f"{self.command} --runs {self.n}"

    @property
    def verdict(self) -> Verdict | None:
        """None where there is nothing to compare with."""
        if self.printed is None or self.stand_in:
            return None
        at = [run.split for run in self.runs]
        # Cornell as corrected has the masks that are published, but other nodes behind them.
        shared = self.splits == "published" and (self.graph in TEN_SPLITS or len(set(at)) == 1)
        return judge(self.test, at, self.printed, shared=shared)

    def record(self) -> dict[str, Any]:
        """As it stands in JSON."""
        runs = [run.record() for run in self.runs]
        return asdict(self) | {"printed": self.printed and self.printed._asdict(), "runs": runs}

    def path(self, folder: Path) -> Path:
        """TABLE/ROW-COLUMN.json below the folder."""
        table, row, column = self.cell.split("/")
        return folder / table / f"{row}-{column}.json"

    def save(self, folder: Path) -> Path:
        """Write it to its path, whole."""
        return write_document(self.path(folder), self.record())


def read_cells(folder: Path) -> list[MeasuredCell]:
    """Every measured cell below the folder, in the order of their names."""
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {folder}; `gcnii reproduce export --out {folder}` writes it"
        )
    cells = {
        path: read_document(path, CELL, "measured cell", _measured)
        for path in sorted(folder.glob("*/*.json"))
    }
    for path, cell in cells.items():
        if cell.path(folder) != path:  # two files of one cell, and one of them would count
            raise InputError(
                f"{path} holds {cell.cell}, whose file is {cell.path(folder)}; move it there, or away"
            )
    return list(cells.values())


def _measured(record: dict[str, Any]) -> MeasuredCell:
    if not record["runs"]:
        raise InputError("it has no runs")
    if record["cell"].count("/") != 2:
        raise InputError(f"cell must be TABLE/ROW/COLUMN, got {record['cell']!r}")
    printed = record["printed"] and Printed(**record["printed"])
    return MeasuredCell(**record | {"printed": printed, "runs": tuple(runs_of(record))})


def runs_of(document: Mapping[str, Any], **known: Any) -> Iterator[MeasuredRun]:
    """The runs in a document, with what it says of all of them."""
    seeds = set()
    for i, record in enumerate(document["runs"]):
        run = MeasuredRun.of(record, f"runs[{i}]", **known)
        if run.seed in seeds:
            raise InputError(f"runs[{i}] has seed {run.seed} again")
        seeds.add(run.seed)
        yield run


def slug(words: str) -> str:
    """`GCNII*, 64 layers` → `gcnii-star-64-layers`."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower().replace("*", " star")).strip("-")
