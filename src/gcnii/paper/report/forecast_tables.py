"""The test of the recommended depth as two Markdown tables; scores, costs and errors in %."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from statistics import fmean, stdev

from gcnii.files import Document
from gcnii.paper.forecast import FULL, SHORT, SWEEP, costs, errors
from gcnii.paper.report.markdown import markdown_table

ASKED = {SHORT: "64 layers, 60 epochs", FULL: "64 layers, to the end", SWEEP: "all six, 60 epochs"}
FIXED = (2, 16, 64)
ADVISERS = (*(f"always {depth}" for depth in FIXED), "all six, to the end", *ASKED.values())


def forecast_tables(records: Iterable[Document]) -> str:
    """What each recommendation costs, by graph and in the mean over graphs held out; then the
    curves with their errors.
    """
    records = list(records)
    return f"{_costs(records)}\n{_curves(records)}"


def _costs(records: Sequence[Document]) -> str:
    rows = [[_title(record), *_cost_cells(record)] for record in records]
    if held := [record for record in records if not record["chose"]]:
        # each graph counts once, whatever its number of seeds
        by_graph = (
            [fmean(costs(record, depths)) for depths in _recommended(record)] for record in held
        )
        means = list(zip(*by_graph, strict=True))
        rule = means[ADVISERS.index(ASKED[SHORT])]
        beyond = ([cost - own for cost, own in zip(mean, rule, strict=True)] for mean in means)
        rows.append([f"**mean of {len(held)} held out**", *map(spread, means)])
        rows.append([f"**… less that of {ASKED[SHORT]}**", *map(spread, beyond)])
    return markdown_table(["graph", *ADVISERS], rows)


def _recommended(record: Document) -> Iterator[list[int]]:
    """For each of ADVISERS, the depths recommended to the seeds; empty if it was not asked."""
    seeds = record["seeds"]
    for depth in FIXED:
        yield [depth] * len(seeds)
    yield [record["depths"][one["val"].index(max(one["val"]))] for one in seeds]
    for name in ASKED:
        yield [one["asked"][name]["recommended"] for one in seeds if name in one["asked"]]


def _cost_cells(record: Document) -> Iterator[str]:
    """`2.7 ± 0.7 (11, 2, 10)`: the cost, and the recommended depths unless the name has them."""
    for adviser, depths in zip(ADVISERS, _recommended(record), strict=True):
        told = "" if adviser.startswith("always") else f" ({', '.join(map(str, depths))})"
        yield f"{spread(costs(record, depths))}{told}" if depths else "–"


def _curves(records: Sequence[Document]) -> str:
    depths = records[0]["depths"] if records else ()
    rows = [row for record in records for row in _curve_rows(record)]
    held = [record for record in records if not record["chose"]]
    for name, words in ASKED.items() if held else ():
        each = [
            (fmean(errors(record, name)), fmean(errors(record, name, flat=True))) for record in held
        ]
        title = f"**mean of {len(held)} held out**"
        rows.append([title, words, *("" for _ in depths), *map(spread, zip(*each, strict=True))])
    return markdown_table(
        ["graph", "test accuracy", *map(str, depths), "error", "of a flat line"], rows
    )


def _curve_rows(record: Document) -> Iterator[list[str]]:
    seeds = record["seeds"]
    yield [_title(record), "trained", *_mean_curve([one["test"] for one in seeds]), "", ""]
    for name, words in ASKED.items():
        if foretold := [one["asked"][name]["foretold"] for one in seeds if name in one["asked"]]:
            both = spread(errors(record, name)), spread(errors(record, name, flat=True))
            yield ["", words, *_mean_curve(foretold), *both]


def _title(record: Document) -> str:
    return f"{record['case']}{' *' if record['chose'] else ''}"


def _mean_curve(curves: Sequence[Sequence[float]]) -> list[str]:
    return [f"{100 * fmean(scores):.1f}" for scores in zip(*curves, strict=True)]


def spread(scores: Sequence[float]) -> str:
    """Mean ± its standard error; of one score, the score alone."""
    mean = f"{round(100 * fmean(scores), 1) + 0.0:.1f}"  # + 0.0: not -0.0
    return f"{mean} ± {100 * stdev(scores) / sqrt(len(scores)):.1f}" if len(scores) > 1 else mean
