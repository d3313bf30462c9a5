"""Three sentences of the paper about Tables 2 and 5: whether they hold by its numbers and by ours.

A lead is the mean of GCNII or GCNII*, whichever is higher, minus that of the best other row, in
points.  By the printed numbers a sentence holds or not; by our runs each lead has a 95 % interval,
on one split by Welch's t-test, over ten splits by the t-test of the splits' means in pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import fmean, variance

from scipy.stats import t

from gcnii_paper.report.figures import Claim, Interval
from gcnii_paper.tables.cells import MeasuredCell, slug
from gcnii_paper.tables.printed import PUBLIC, TABLE_2, TABLE_5, TEN_SPLITS, Cells
from gcnii_paper.tables.registry import ROWS

OWN = ("gcnii", "gcnii-star")
LEAD = 2.0  # points, on each graph of Table 2
OVER_APPNP = 12.0  # points, GCNII* on Wisconsin
FIRST = 6  # graphs of Table 5's seven
TEXTS = (
    f"GCNII leads on Cora, Citeseer and Pubmed by at least {LEAD:g} % (Table 2)",
    f"GCNII* is over {OVER_APPNP:g} % above APPNP on Wisconsin (Table 5)",
    f"GCNII and GCNII* are the state of the art on {FIRST} of 7 data sets (Table 5)",
)
PRINTED, HERE = "by the printed numbers", "by our runs"

Known = Mapping[str, MeasuredCell]


def table_claims(measured: Iterable[MeasuredCell]) -> dict[str, list[Claim]]:
    """By the printed numbers, and by our runs as far as they are there."""
    known = {cell.cell: cell for cell in measured if cell.n > 1 and cell.mean == cell.mean}
    leads2 = {name: _printed_lead(TABLE_2, name) for name in PUBLIC}
    leads5 = {name: _printed_lead(TABLE_5, name) for name in TEN_SPLITS}
    star, appnp = TABLE_5["gcnii-star"]["wisconsin"].mean, TABLE_5["appnp"]["wisconsin"].mean
    on_wisconsin = round(star - appnp, 2)
    printed = [
        Claim(TEXTS[0], min(leads2.values()) >= LEAD, _listed(leads2)),
        Claim(TEXTS[1], on_wisconsin > OVER_APPNP, f"{on_wisconsin:+.1f}"),
        Claim(TEXTS[2], sum(lead > 0 for lead in leads5.values()) >= FIRST, _listed(leads5)),
    ]
    here = [_leads_by(known), _above_appnp(known), _first_on(known)]
    return {PRINTED: printed, HERE: [claim for claim in here if claim]}


def _printed_lead(table: Cells, name: str) -> float:
    own = max(table[model][name].mean for model in OWN)
    others = max(row[name].mean for model, row in table.items() if model not in OWN)
    return round(own - others, 2)


def _listed(leads: Mapping[str, object]) -> str:
    def words(lead: object) -> str:
        return f"{lead:+.1f}" if isinstance(lead, float) else str(lead)

    return ", ".join(
        f"{name.removesuffix('-full').capitalize()} {words(lead)}" for name, lead in leads.items()
    )


def lead(one: MeasuredCell, other: MeasuredCell) -> Interval:
    """One cell's mean less another's; on ten splits, in pairs."""
    mine, theirs = one.by_split, other.by_split
    if len(mine) > 1:
        pairs = zip(mine, theirs, strict=True)
        parts = [(variance([fmean(a) - fmean(b) for a, b in pairs]) / len(mine), len(mine) - 1)]
    else:
        parts = [(variance(cell.test) / cell.n, cell.n - 1) for cell in (one, other)]
    error = sum(part for part, _ in parts)
    spread = sum(part**2 / freedom for part, freedom in parts)  # Welch's
    reach = float(t.ppf(0.975, error**2 / spread)) * sqrt(error) if spread else 0.0
    mean = one.mean - other.mean
    return Interval(mean, mean - reach, mean + reach)


def _lead_on(known: Known, table: str, rows: Sequence[str], column: str) -> Interval | None:
    """Of the better of our two rows over the best other; None if a row is not measured."""
    cells = {row: known.get(f"{table}/{slug(row)}/{column}") for row in rows}
    found = {slug(row): cell for row, cell in cells.items() if cell}
    if len(found) < len(rows):
        return None
    best = max((found.pop(row) for row in OWN), key=lambda cell: cell.mean)
    return lead(best, max(found.values(), key=lambda cell: cell.mean))


def _leads_by(known: Known) -> Claim | None:
    """Not held if one lead is below for certain; held if all reach it for certain."""
    leads = {name: _lead_on(known, "table2", list(ROWS["table2"]), name) for name in PUBLIC}
    found = [one.above(LEAD) for one in leads.values() if one]
    if len(found) < len(leads):
        return None
    held = False if False in found else None if None in found else True
    return Claim(TEXTS[0], held, _listed(leads))


def _above_appnp(known: Known) -> Claim | None:
    """With the decay that the appendix prints, and with the largest of the grid in its text: held
    only if both agree.
    """
    names = ("gcnii-star", "appnp", "appnp-decay-0-001")
    star, *others = (known.get(f"table5/{name}/wisconsin") for name in names)
    if not star or not all(others):
        return None
    printed, grid = (lead(star, other) for other in others if other)
    words = [one.above(OVER_APPNP) for one in (printed, grid)]
    held = words[0] if words[0] == words[1] else None
    return Claim(TEXTS[1], held, f"{printed} with APPNP's decay as printed, {grid} with 0.001")


def _first_on(known: Known) -> Claim | None:
    """Held if it leads for certain on so many; not held if it may lead on fewer at most."""
    columns = {name: name.removesuffix("-full") for name in TEN_SPLITS}
    rows = list(ROWS["table5"])
    leads = {name: _lead_on(known, "table5", rows, column) for name, column in columns.items()}
    found = [one.above(0.0) for one in leads.values() if one]
    if len(found) < len(leads):
        return None
    sure, open_ = found.count(True), found.count(None)
    held = True if sure >= FIRST else None if sure + open_ >= FIRST else False
    return Claim(TEXTS[2], held, _listed(leads))
