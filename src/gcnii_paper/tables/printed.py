"""What the paper prints, which printed.toml holds: scores, their spread if given, and their source.

The kind of a printed number decides how many runs of ours it is compared with, before they are
measured (`runs_needed`); how they are compared is in `verdict.py`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from gcnii.data.catalog import Counts

Column = TypeVar("Column", str, int)  # a data set, or a number of layers
_SAID = tomllib.loads(Path(__file__).with_name("printed.toml").read_text("utf-8"))
SOURCES: dict[str, str] = _SAID["sources"]
AUTHORS, FEY, RONG = (SOURCES[name] for name in ("authors", "fey", "rong"))


class Printed(NamedTuple):
    """A number of the paper's tables."""

    mean: float
    sd: float | None = None
    source: str = AUTHORS

    @property
    def runs(self) -> int | None:
        """The number of runs behind it on one split; None if it is unknown."""
        if self.source == RONG:
            return 1
        return MANY if self.source == FEY or (self.source == AUTHORS and self.sd) else None


MANY = 100  # runs behind a mean of Table 2, of the paper's own and of Fey & Lenssen
SINGLE = 39  # a printed run that lies beyond 39 of ours has p = 2/40
PER_SPLIT = 3  # seeds, to tell their spread from that of the splits
UNJUDGED = 10  # runs, where there is no number to compare with or settings are not the printed ones


def runs_needed(printed: Printed | None, splits: int = 1, *, ours: bool = False) -> int:
    """How many runs of ours a verdict on the printed number needs, whatever they will say.

    splits  the number of splits that it is a mean over
    ours    whether our settings are not those behind it, so that there is no verdict
    """
    if printed is None or ours:
        return UNJUDGED
    if splits > 1:
        return PER_SPLIT * splits
    return MANY if printed.runs == MANY else SINGLE


Cells = dict[str, dict[str, Printed]]  # model → data set → number

PUBLIC = ("cora", "citeseer", "pubmed")
TEN_SPLITS = (
    "cora-full",
    "citeseer-full",
    "pubmed-full",
    "chameleon",
    "cornell",
    "texas",
    "wisconsin",
)
SPLITS = 10
DEPTHS = (2, 4, 8, 16, 32, 64)


def _number(value: float | list[float], source: str) -> Printed:
    mean, sd = value if isinstance(value, list) else (value, None)
    return Printed(mean, sd, SOURCES.get(source, source))


def _cells(
    columns: Sequence[Column], rows: Mapping[str, Sequence[Any]]
) -> dict[str, dict[Column, Printed]]:
    return {
        model: {
            column: _number(value, source)
            for column, value in zip(columns, row, strict=True)
            if value != "–"
        }
        for model, (source, *row) in rows.items()
    }


TABLE_1 = {name: Counts(*counts) for name, counts in _SAID["table1"].items()}
TABLE_2 = _cells(PUBLIC, _SAID["table2"])
TABLE_3 = {name: _cells(DEPTHS, rows) for name, rows in _SAID["table3"].items()}
TABLE_4 = {model: row["ppi"] for model, row in _cells(("ppi",), _SAID["table4"]).items()}
TABLE_5 = _cells(TEN_SPLITS, _SAID["table5"])
