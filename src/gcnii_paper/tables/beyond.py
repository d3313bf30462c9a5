"""Beyond the paper: the numbers that are known, and a cell for each of our records.

A known number counts if it is of the same splits and features as ours, as far as can be known, and
if nothing in its code trains on more or chooses by test scores.  The others are listed with the
reason, and count neither for us nor against us.  known.toml has them.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from gcnii.errors import InputError
from gcnii.train.presets import Record, records
from gcnii_paper.tables.cells import Cell
from gcnii_paper.tables.printed import PUBLIC, TEN_SPLITS

NAME = "beyond"
TITLE = "Beyond the paper: the record settings and the best known numbers (accuracy, %)"
ROW = "record"
RUNS_PUBLIC, RUNS_SPLITS = 20, 30  # the latter are three on each of ten splits

PEI_SPLITS = "the ten splits of Geom-GCN, 48/32/20"


@dataclass(frozen=True)
class BestKnown:
    """A data set with the best of its known numbers.

    protocol  our splits, and what a reader must know about the data
    sd, runs  the number's deviation and the number of runs behind it, where they are known
    shared    whether it is of the same splits as ours; else it is shown, and not compared
    """

    graph: str
    title: str
    mean: float
    whose: str
    protocol: str = PEI_SPLITS
    sd: float | None = None
    runs: int | None = None
    shared: bool = True

    @property
    def least(self) -> int:
        """The number of runs that a record is measured with."""
        return RUNS_PUBLIC if self.graph in PUBLIC else RUNS_SPLITS

    @property
    def cell(self) -> str:
        """The name of the record's cell."""
        return f"{NAME}/{ROW}/{self.graph}"

    @property
    def plain(self) -> str:
        """The cell of GCNII with the paper's settings on the same splits; "" if it has none."""
        if self.graph in PUBLIC:
            return f"table2/gcnii/{self.graph}"
        bare = self.graph.removesuffix("-full")
        return f"table5/gcnii/{bare}" if self.graph in TEN_SPLITS else ""


@dataclass(frozen=True)
class Source:
    """Who published numbers, and how they came about.

    splits, features, labels  what it trains on, beside ours
    code                      the commit that was read and how it chooses; or that none was read
    aside                     why its numbers do not count; "" if they do
    """

    whose: str
    code: str
    splits: str = "the same"
    features: str = "the same"
    labels: str = "training"
    aside: str = ""


@dataclass(frozen=True)
class Known:
    """A published number, and where it was read on DAY; sd and runs where they are known."""

    graph: str
    mean: float
    source: Source
    seen: str
    sd: float | None = None
    runs: int | None = None


_SAID = tomllib.loads(Path(__file__).with_name("known.toml").read_text("utf-8"))
DAY: str = _SAID["day"]
SOURCES = {name: Source(**one) for name, one in _SAID["sources"].items()}
KNOWN = tuple(
    Known(graph, **one | {"source": SOURCES[one["source"]]})
    for graph, about in _SAID["graphs"].items()
    for one in about["known"]
)


def _best(graph: str, title: str, protocol: str = PEI_SPLITS) -> BestKnown:
    """The highest number that counts; where none does, the highest, which is not compared."""
    known = [one for one in KNOWN if one.graph == graph]
    counted = [one for one in known if not one.source.aside]
    best = max(counted or known, key=lambda one: one.mean)
    about = (best.mean, best.source.whose, protocol, best.sd, best.runs)
    return BestKnown(graph, title, *about, shared=bool(counted))


BEST = tuple(
    _best(graph, **{name: text for name, text in about.items() if name != "known"})
    for graph, about in _SAID["graphs"].items()
)


def choose_best(only: str = "") -> tuple[BestKnown, ...]:
    """The data sets with this word in the name of their cell; one alone, if it is the whole name.

    The name of a data set alone is a whole name too.
    """
    word = only.lower()
    whole = tuple(best for best in BEST if word in (best.graph, best.cell))
    if found := whole or tuple(best for best in BEST if word in best.cell):
        return found
    names = ", ".join(best.graph for best in BEST)
    raise InputError(f"{NAME} has no data set {only!r}; known: {names}")


def cells() -> tuple[Cell, ...]:
    """A cell for each record of a data set above; there are none before a study is adopted."""
    held = records()
    return tuple(_cell(best, held[best.graph]) for best in BEST if best.graph in held)


def _cell(best: BestKnown, record: Record) -> Cell:
    from gcnii.train.plan import make_plan  # loads torch

    return Cell(
        table=NAME,
        row=ROW,
        column=best.graph,
        graph=best.graph,
        model=record.model,
        # all of them, so that nothing of what was published for the graph shows through
        settings=make_plan(record.model, record.settings).settings,
        runs=best.least,
        note=f"by validation the best of {record.tried} settings; {best.protocol}",
        extra=True,
    )
