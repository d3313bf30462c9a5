"""The test of the recommended depth as tables in Markdown; scores, errors and costs in per cent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import sqrt
from statistics import fmean, stdev

from gcnii.experiments.forecast import FULL, SHORT, SWEEP, Record, costs, errors

ASKED = {SHORT: "64 layers, 60 epochs", FULL: "64 layers, to the end", SWEEP: "all six, 60 epochs"}
FIXED = (16, 64)


def advice_tables(records: Iterable[Record]) -> str:
    """What each advice costs, graph by graph and in the mean over those held out; then the curves."""
    records = list(records)
    return f"{_costs(records)}\n{_curves(records)}"


def _costs(records: Sequence[Record]) -> str:
    heads = ["graph", "seeds", *(f"always {depth}" for depth in FIXED), "all six, to the end"]
    heads += [f"{words}: {what}" for words in ASKED.values() for what in ("advice", "cost", "error")]
    rows = [[_title(record), str(len(record["seeds"])), *_fixed(record), *_advised(record)] for record in records]
    return _table(heads, [*rows, *_means([record for record in records if not record["chose"]])])


def _title(record: Record) -> str:
    return f"{record['case']}{' *' if record['chose'] else ''}"


def _fixed(record: Record) -> list[str]:
    return [spread(costs(record, advise)) for advise in _advisers(record)]


def _advisers(record: Record) -> list[Callable[[Record], int]]:
    """Those that ask no network for advice: depths that are always taken, and the choice by validation."""
    depths: list[int] = record["depths"]
    return [*(_always(depth) for depth in FIXED), lambda one: depths[one["val"].index(max(one["val"]))]]


def _always(depth: int) -> Callable[[Record], int]:
    return lambda one: depth


def _advised(record: Record) -> list[str]:
    cells = []
    for name in ASKED:
        if not _has(record, name):
            cells += ["–"] * 3
            continue
        depths = [one["asked"][name]["recommended"] for one in record["seeds"]]
        cells += [", ".join(map(str, depths)), spread(costs(record, _recommended(name))), spread(errors(record, name))]
    return cells


def _recommended(name: str) -> Callable[[Record], int]:
    return lambda one: int(one["asked"][name]["recommended"])


def _has(record: Record, name: str) -> bool:
    return all(name in one["asked"] for one in record["seeds"])


def _means(held: Sequence[Record]) -> list[list[str]]:
    """One row: the mean over graphs, each counting once, and its standard error."""
    if not held:
        return []
    cells = [spread([fmean(costs(record, _advisers(record)[i])) for record in held]) for i in range(len(FIXED) + 1)]
    for name in ASKED:
        of_costs = [fmean(costs(record, _recommended(name))) for record in held]
        cells += ["", spread(of_costs), spread([fmean(errors(record, name)) for record in held])]
    return [[f"**mean of {len(held)} held out**", "", *cells]]


def _curves(records: Sequence[Record]) -> str:
    heads = ["graph", "test accuracy", *map(str, records[0]["depths"])] if records else ["graph", "test accuracy"]
    rows = []
    for record in records:
        seeds = record["seeds"]
        rows.append([_title(record), "trained", *_mean_curve([one["test"] for one in seeds])])
        for name, words in ASKED.items():
            if _has(record, name):
                rows.append(["", words, *_mean_curve([one["asked"][name]["foretold"] for one in seeds])])
    return _table(heads, rows)


def _mean_curve(curves: Sequence[Sequence[float]]) -> list[str]:
    return [f"{100 * fmean(scores):.1f}" for scores in zip(*curves, strict=True)]


def spread(scores: Sequence[float]) -> str:
    """Mean ± its standard error; the mean alone of one score."""
    mean = f"{100 * fmean(scores):.1f}"
    return f"{mean} ± {100 * stdev(scores) / sqrt(len(scores)):.1f}" if len(scores) > 1 else mean


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"|{'|'.join(row)}|\n" for row in (heads, ["---"] * len(heads), *rows))
