"""Beyond the paper: the best numbers that are known, and a cell for each of our records.

Counted as known are numbers whose code chooses the epoch by validation, trains on the same features
and labels, and does not choose settings by test scores.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcnii.errors import InputError
from gcnii.train.presets import Record, records
from gcnii_paper.tables.cells import Cell
from gcnii_paper.tables.printed import PUBLIC, TEN_SPLITS

NAME = "beyond"
TITLE = "Beyond the paper: the record settings and the best known numbers (accuracy, %)"
ROW = "record"
RUNS_PUBLIC, RUNS_SPLITS = 20, 30  # the latter are three on each of ten splits

PUBLIC_SPLIT = "public split, 20 labels per class"
PEI_SPLITS = "the ten splits of Geom-GCN, 48/32/20"
COPIES = f"{PEI_SPLITS}; many nodes are copies of one another across the splits"
LAST = f"{PEI_SPLITS}; their code tests the weights of the last epoch"
REMAINS = "what remains of the ten splits of Geom-GCN, by Platonov et al. 2023"
FILE_OF_2020 = f"{PEI_SPLITS}; the file of 2020, which carries Texas's features and labels"
OWN_SPLITS = "ten splits, 60/20/20 of each class, drawn here; theirs are drawn elsewhere"

GRAND = "GRAND, Feng et al. 2020"
GREAD = "GREAD, Choi et al. 2023"
FABERNET = "FaberNet, Koke & Cremers 2024"
FSGNN = "FSGNN, Maurya et al. 2022"
LUO = "tunedGNN, Luo et al. 2024"


@dataclass(frozen=True)
class BestKnown:
    """The best credible number on a data set.

    protocol  the splits, and what a reader must know about the data or the number
    sd, runs  its deviation and the number of runs behind it, where they are known
    shared    whether it is of the same splits as ours
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


BEST = (
    BestKnown("cora", "Cora", 85.5, "GCNII, the paper", PUBLIC_SPLIT, 0.5, 100),
    BestKnown("citeseer", "Citeseer", 75.4, GRAND, PUBLIC_SPLIT, 0.4, 100),
    BestKnown("pubmed", "Pubmed", 82.7, GRAND, PUBLIC_SPLIT, 0.6, 100),
    BestKnown("cora-full", "Cora, ten splits", 88.57, GREAD),
    BestKnown("citeseer-full", "Citeseer, ten splits", 77.99, "Geom-GCN, Pei et al. 2020", LAST),
    BestKnown("pubmed-full", "Pubmed, ten splits", 90.30, "GCNII*, the paper"),
    BestKnown("chameleon", "Chameleon, with duplicates", 80.33, FABERNET, COPIES, 1.19, 10),
    BestKnown("chameleon-filtered", "Chameleon, without duplicates", 46.29, LUO, REMAINS),
    BestKnown("squirrel", "Squirrel, with duplicates", 76.71, FABERNET, COPIES),
    BestKnown("film", "Film", 37.75, FSGNN),
    BestKnown("texas", "Texas", 89.7, GREAD),
    BestKnown("wisconsin", "Wisconsin", 89.4, GREAD),
    BestKnown("cornell", "Cornell, file of 2020", 88.4, FSGNN, FILE_OF_2020),
    BestKnown("amazon-photo", "Amazon Photo", 96.78, LUO, OWN_SPLITS, shared=False),
    BestKnown("coauthor-cs", "Coauthor CS", 96.38, LUO, OWN_SPLITS, shared=False),
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
