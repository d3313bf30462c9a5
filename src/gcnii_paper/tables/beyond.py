"""Beyond the paper: the numbers that are known, and a cell for each of our records.

A known number counts if it is of the same splits and features as ours, as far as can be known, and
if nothing in its code trains on more or chooses by test scores.  The others are listed with the
reason, and count neither for us nor against us.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
REMAINS = "what remains of the ten splits of Geom-GCN, by Platonov et al. 2023"
FILE_OF_2020 = f"{PEI_SPLITS}; the file of 2020, which carries Texas's features and labels"
OWN_SPLITS = "ten splits, 60/20/20 of each class, drawn here"


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


DAY = "18 November 2026"
BOARD, PWC, WIZWAND = "OpenCodePapers", "Papers with Code", "WizWand"
README, PAPER = "its README", "the paper"
UNKNOWN = "not known"
UNREAD = {"code": "not read", "features": UNKNOWN, "labels": UNKNOWN}
DRAWN = "drawn, 60/20/20"
ELSEWHERE = {"splits": DRAWN, "aside": "other splits"}

GCNII = Source("GCNII, the paper", "ca91f56: by validation loss")
STAR = Source("GCNII*, the paper", "ca91f56: by validation loss")
GEOM = Source("Geom-GCN, Pei et al. 2020", "tests the last epoch")
GRAND = Source("GRAND, Feng et al. 2020", "7a2fd6e: by validation loss")
GREAD = Source("GREAD, Choi et al. 2023", "f97ec01: by validation score")
FABERNET = Source("FaberNet, Koke & Cremers 2024", "2cc6f76: by validation score")
FSGNN = Source("FSGNN, Maurya et al. 2022", "486ff88: by validation loss")
NSD = Source("O(d)-NSD, Bodnar et al. 2022", "11e21b5: by validation")
RDGNN = Source(
    *("RDGNN, Eliasof et al. 2024", "none found"),
    **{"splits": "probably the same", "features": UNKNOWN, "labels": UNKNOWN},
)
GCN_TV = Source("GCN-TV, Dan et al. 2023", splits="public, as listed", **UNREAD)
OGC = Source(
    *("OGC, Wang et al. 2023", "ff819a4: main_ogc.py"),
    labels="training and validation",
    aside="trains on the 500 validation labels",
)
DJ_GNN = Source(
    *("DJ-GNN, Begga et al. 2023", "4fe2f4b: by the best test score of all epochs"),
    aside="chooses the epoch by test scores",
)
NCGNN = Source("NCGCN, NCSAGE, Zhou et al. 2023", "52dc783: by validation score", **ELSEWHERE)
HIGCN = Source("HiGCN, Huang et al. 2023", "daa5e9f", **ELSEWHERE)
ACM = Source("ACMII-Snowball, Luan et al. 2021", **UNREAD, **ELSEWHERE)
SSP = Source(
    "SSP, Izadi et al. 2020", splits="all but 1,500 nodes train", aside="other splits", **UNREAD
)
HETERO_S = Source("MGNN + Hetero-S, 2024", splits=UNKNOWN, aside="splits not known", **UNREAD)
CAT = Source("CATv3, He et al. 2023", splits=UNKNOWN, aside="splits not known", **UNREAD)
LUO = Source("tunedGNN, Luo et al. 2024", "23f9604: by validation score")
LUO_DRAWN = replace(LUO, splits="drawn, 20 labels per class", aside="another split")
LUO_OWN = replace(LUO, splits="one of their own, 60/20/20", aside="another split")

KNOWN = (
    Known("cora", 86.9, OGC, BOARD),
    Known("cora", 86.3, GCN_TV, BOARD),
    Known("cora", 85.5, GCNII, PAPER, 0.5, 100),
    Known("cora", 85.1, LUO_DRAWN, README, 0.67),
    Known("citeseer", 77.5, OGC, PWC),
    Known("citeseer", 75.4, GRAND, README, 0.4, 100),
    Known("pubmed", 83.4, OGC, PWC),
    Known("pubmed", 82.7, GRAND, README, 0.6, 100),
    Known("cora-full", 90.16, SSP, BOARD, 0.59),
    Known("cora-full", 89.91, RDGNN, WIZWAND),
    Known("cora-full", 89.36, ACM, BOARD, 1.26),
    Known("cora-full", 88.57, GREAD, WIZWAND),
    Known("citeseer-full", 82.07, ACM, BOARD),
    Known("citeseer-full", 78.34, RDGNN, WIZWAND),
    Known("citeseer-full", 77.99, GEOM, PAPER),
    Known("pubmed-full", 91.64, NCGNN, BOARD, 0.53),
    Known("pubmed-full", 90.37, RDGNN, WIZWAND),
    Known("pubmed-full", 90.30, STAR, PAPER),
    Known("chameleon", 80.33, FABERNET, "not found again", 1.19, 10),
    Known("chameleon", 74.79, RDGNN, WIZWAND),
    Known("chameleon-filtered", 46.29, LUO, README, 3.4, 10),
    Known("squirrel", 76.71, FABERNET, "HyperAI", 1.92, 10),
    Known("squirrel", 65.96, RDGNN, WIZWAND),
    Known("film", 43.89, NCGNN, "HyperAI", 1.33),
    Known("film", 38.69, RDGNN, WIZWAND),
    Known("film", 37.81, NSD, PWC, 1.15, 10),
    Known("film", 37.75, FSGNN, README),
    Known("texas", 94.59, RDGNN, BOARD, 5.97),
    Known("texas", 93.09, HETERO_S, BOARD),
    Known("texas", 92.45, HIGCN, BOARD, 0.73),
    Known("texas", 92.43, DJ_GNN, BOARD, 3.15),
    Known("texas", 89.73, GREAD, WIZWAND),
    Known("wisconsin", 94.99, HIGCN, BOARD, 0.65),
    Known("wisconsin", 93.72, RDGNN, BOARD, 4.59),
    Known("wisconsin", 92.54, DJ_GNN, BOARD, 3.7),
    Known("wisconsin", 89.41, NSD, BOARD, 4.74, 10),
    Known("cornell", 92.72, RDGNN, BOARD, 5.88),
    Known("cornell", 88.8, CAT, BOARD, 2.1),
    Known("cornell", 88.11, FSGNN, README),
    Known("amazon-photo", 96.78, LUO_OWN, README, 0.23),
    Known("coauthor-cs", 96.38, LUO_OWN, README, 0.11),
)


def _best(graph: str, title: str, protocol: str = PEI_SPLITS) -> BestKnown:
    """The highest number that counts; where none does, the highest, which is not compared."""
    known = [one for one in KNOWN if one.graph == graph]
    counted = [one for one in known if not one.source.aside]
    best = max(counted or known, key=lambda one: one.mean)
    about = (best.mean, best.source.whose, protocol, best.sd, best.runs)
    return BestKnown(graph, title, *about, shared=bool(counted))


BEST = (
    _best("cora", "Cora", PUBLIC_SPLIT),
    _best("citeseer", "Citeseer", PUBLIC_SPLIT),
    _best("pubmed", "Pubmed", PUBLIC_SPLIT),
    _best("cora-full", "Cora, ten splits"),
    _best("citeseer-full", "Citeseer, ten splits"),
    _best("pubmed-full", "Pubmed, ten splits"),
    _best("chameleon", "Chameleon, with duplicates", COPIES),
    _best("chameleon-filtered", "Chameleon, without duplicates", REMAINS),
    _best("squirrel", "Squirrel, with duplicates", COPIES),
    _best("film", "Film"),
    _best("texas", "Texas"),
    _best("wisconsin", "Wisconsin"),
    _best("cornell", "Cornell, file of 2020", FILE_OF_2020),
    _best("amazon-photo", "Amazon Photo", OWN_SPLITS),
    _best("coauthor-cs", "Coauthor CS", OWN_SPLITS),
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
