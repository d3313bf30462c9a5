"""What the paper prints: scores in per cent, their spread where it is given, and their source.

The kind of a printed number decides how many runs of ours it is compared with, before they are
measured (`runs_needed`); how they are compared is in `verdict.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from gcnii.data.catalog import Counts

AUTHORS = "authors"
UNSAID = "authors, number of runs not given"
FEY = "quoted from Fey & Lenssen 2019"
RONG = "quoted from Rong et al. 2020 (DropEdge), one seed"
PEI = "quoted from Pei et al. 2020 (Geom-GCN)"


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
Row = tuple[float | tuple[float, float] | None, ...]

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
DEPTH = {"cora": 64, "citeseer": 32, "pubmed": 16}  # layers of GCNII and GCNII* in Table 2


def _number(value: float | tuple[float, float], source: str) -> Printed:
    return (
        Printed(*value, source=source)
        if isinstance(value, tuple)
        else Printed(value, source=source)
    )


def _cells(sets: tuple[str, ...], rows: dict[str, tuple[str, Row]]) -> Cells:
    return {
        model: {
            name: _number(value, source)
            for name, value in zip(sets, row, strict=True)
            if value is not None
        }
        for model, (source, row) in rows.items()
    }


# Nodes, edges, features and classes.
TABLE_1 = {
    "cora": Counts(2708, 5429, 1433, 7),
    "citeseer": Counts(3327, 4732, 3703, 6),
    "pubmed": Counts(19717, 44338, 500, 3),
    "chameleon": Counts(2277, 36101, 2325, 4),
    "cornell": Counts(183, 295, 1703, 5),
    "texas": Counts(183, 309, 1703, 5),
    "wisconsin": Counts(251, 499, 1703, 5),
    "ppi": Counts(56944, 818716, 50, 121),
}

# Public splits; mean ± standard deviation of 100 runs for the paper's own.  `jknet` and `incep` are
# with DropEdge.
TABLE_2 = _cells(
    PUBLIC,
    {
        "gcn": (FEY, (81.5, 71.1, 79.0)),
        "gat": (FEY, (83.1, 70.8, 78.5)),
        "appnp": (FEY, (83.3, 71.8, 80.1)),
        "jknet, all links": (RONG, (81.1, 69.8, 78.1)),
        "jknet": (RONG, (83.3, 72.6, 79.2)),
        "incep": (RONG, (83.5, 72.7, 79.5)),
        "gcnii": (AUTHORS, ((85.5, 0.5), (73.4, 0.6), (80.2, 0.4))),
        "gcnii-star": (AUTHORS, ((85.3, 0.2), (73.2, 0.8), (80.3, 0.4))),
    },
)

# Public splits by depth (2, 4, 8, 16, 32, 64 layers); None is a dash or OOM.  `drop` means with
# DropEdge.
_TABLE_3: dict[str, dict[str, Row]] = {
    "cora": {
        "gcn": (81.1, 80.4, 69.5, 64.9, 60.3, 28.7),
        "gcn drop": (82.8, 82.0, 75.8, 75.7, 62.5, 49.5),
        "jknet": (None, 80.2, 80.7, 80.2, 81.1, 71.5),
        "jknet drop": (None, 83.3, 82.6, 83.0, 82.5, 83.2),
        "incep": (None, 77.6, 76.5, 81.7, 81.7, 80.0),
        "incep drop": (None, 82.9, 82.5, 83.1, 83.1, 83.5),
        "gcnii": (82.2, 82.6, 84.2, 84.6, 85.4, 85.5),
        "gcnii-star": (80.2, 82.3, 82.8, 83.5, 84.9, 85.3),
    },
    "citeseer": {
        "gcn": (70.8, 67.6, 30.2, 18.3, 25.0, 20.0),
        "gcn drop": (72.3, 70.6, 61.4, 57.2, 41.6, 34.4),
        "jknet": (None, 68.7, 67.7, 69.8, 68.2, 63.4),
        "jknet drop": (None, 72.6, 71.8, 72.6, 70.8, 72.2),
        "incep": (None, 69.3, 68.4, 70.2, 68.0, 67.5),
        "incep drop": (None, 72.7, 71.4, 72.5, 72.6, 71.0),
        "gcnii": (68.2, 68.9, 70.6, 72.9, 73.4, 73.4),
        "gcnii-star": (66.1, 67.9, 70.6, 72.0, 73.2, 73.1),
    },
    "pubmed": {
        "gcn": (79.0, 76.5, 61.2, 40.9, 22.4, 35.3),
        "gcn drop": (79.6, 79.4, 78.1, 78.5, 77.0, 61.5),
        "jknet": (None, 78.0, 78.1, 72.6, 72.4, 74.5),
        "jknet drop": (None, 78.7, 78.7, 79.1, 79.2, 78.9),
        "incep": (None, 77.7, 77.9, 74.9, None, None),
        "incep drop": (None, 79.5, 78.6, 79.0, None, None),
        "gcnii": (78.2, 78.8, 79.3, 80.2, 79.8, 79.7),
        "gcnii-star": (77.7, 78.2, 78.8, 80.3, 79.8, 80.1),
    },
}


def _at_depth(name: str, row: str, layers: int, value: float | tuple[float, float]) -> Printed:
    """Table 2's own number at its depth, where it has a deviation: one number, printed twice."""
    if not row.startswith("gcnii"):
        return _number(value, RONG)
    same = layers == DEPTH[name] and TABLE_2[row][name].mean == value
    return TABLE_2[row][name] if same else _number(value, AUTHORS)


TABLE_3: dict[str, dict[str, dict[int, Printed]]] = {
    name: {
        row: {
            layers: _at_depth(name, row, layers, value)
            for layers, value in zip(DEPTHS, values, strict=True)
            if value is not None
        }
        for row, values in rows.items()
    }
    for name, rows in _TABLE_3.items()
}

# PPI, micro-F1; the baselines are quoted from their papers.
TABLE_4 = {
    "graphsage-lstm": Printed(61.2, source="quoted from Hamilton et al. 2017"),
    "vr-gcn-cvd": Printed(97.8, source="quoted from Chen et al. 2018"),
    "gaan": Printed(98.71, source="quoted from Zhang et al. 2018"),
    "gat-ppi": Printed(97.3, source="quoted from Veličković et al. 2018"),
    "jknet-lstm": Printed(97.6, source="quoted from Xu et al. 2018"),
    "geniepath-lazy": Printed(98.5, source="quoted from Liu et al. 2019"),
    "cluster-gcn": Printed(99.36, source="quoted from Chiang et al. 2019"),
    "gcnii-ppi": Printed(99.53, 0.01, UNSAID),
    "gcnii-star-ppi": Printed(99.56, 0.02, UNSAID),
}

# Mean over ten splits.  `jknet` and `incep` are with DropEdge.
TABLE_5 = _cells(
    TEN_SPLITS,
    {
        "gcn": (PEI, (85.77, 73.68, 88.13, 28.18, 52.70, 52.16, 45.88)),
        "gat": (PEI, (86.37, 74.32, 87.62, 42.93, 54.32, 58.38, 49.41)),
        "geom-gcn-i": (PEI, (85.19, 77.99, 90.05, 60.31, 56.76, 57.58, 58.24)),
        "geom-gcn-p": (PEI, (84.93, 75.14, 88.09, 60.90, 60.81, 67.57, 64.12)),
        "geom-gcn-s": (PEI, (85.27, 74.71, 84.75, 59.96, 55.68, 59.73, 56.67)),
        "appnp": (AUTHORS, (87.87, 76.53, 89.40, 54.3, 73.51, 65.41, 69.02)),
        "jknet, all links": (AUTHORS, (85.25, 75.85, 88.94, 60.07, 57.30, 56.49, 48.82)),
        "jknet": (AUTHORS, (87.46, 75.96, 89.45, 62.08, 61.08, 57.30, 50.59)),
        "incep": (AUTHORS, (86.86, 76.83, 89.18, 61.71, 61.62, 57.84, 50.20)),
        "gcnii": (AUTHORS, (88.49, 77.08, 89.57, 60.61, 74.86, 69.46, 74.12)),
        "gcnii-star": (AUTHORS, (88.01, 77.13, 90.30, 62.48, 76.49, 77.84, 81.57)),
    },
)
