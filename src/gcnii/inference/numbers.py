"""Where the errors of predicted numbers are: of each column, by degree and by true number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import inf

import numpy as np

from gcnii.files import Document
from gcnii.inference.baselines import degree_spans
from gcnii.targets import Numbers
from gcnii.targets.interval import percentiles
from gcnii.targets.scores import Answers, number_shown
from gcnii.targets.target import Bools, Floats, Ints

RANGES = 5  # of the true number, with as many test nodes each
FEWEST = 10  # nodes of a range


def columns_of(said: Answers) -> Iterator[tuple[str, Answers]]:
    """The name of each column, and what is said of it alone."""
    for j, name in enumerate(said.target.names):
        P, y = said.P[:, [j]], said.y[:, [j]]
        yield name, Answers(Numbers(1, (name,)), P, P, y)


def by_target(said: Answers) -> list[Document]:
    """The scores of each column, with intervals over the nodes."""
    rows = []
    for name, one in columns_of(said):
        drawn = one.drawn_scores()
        scores = {key: one.estimate(key, drawn[key]).document() for key in one.scores}
        rows.append({"name": name, "mean": float(one.y.mean()), **scores})
    return rows


def error_groups(said: Answers, degree: Ints) -> dict[str, list[Document]]:
    """The errors of each column by degree, and by its true number.

    degree  of the test nodes
    """
    columns = list(columns_of(said))
    spans = degree_spans(degree)
    return {
        "degree": [row for name, one in columns for row in _rows(name, one, spans)],
        "value": [row for name, one in columns for row in _rows(name, one, ranges(one.y[:, 0]))],
    }


def ranges(y: Floats) -> dict[str, Bools]:
    """Which nodes are in each range of true numbers; equal numbers are in the same."""
    count = int(np.clip(len(y) // FEWEST, 1, RANGES))
    ends = np.unique(np.quantile(y, np.linspace(0, 1, count + 1)))
    if len(ends) < 2:
        return {number_shown(float(ends[0])): np.ones(len(y), bool)}
    found = {}
    for low, high in pairwise(ends.tolist()):
        inside = (y >= low) & (y < (inf if high == ends[-1] else high))
        found[f"{number_shown(low)} to {number_shown(high)}"] = inside
    return found


def _rows(name: str, said: Answers, groups: Mapping[str, Bools]) -> Iterator[Document]:
    """The errors in each group that has nodes."""
    for group, inside in groups.items():
        if inside.any():
            own = said.among(inside)
            yield {"target": name, "group": group, "nodes": own.m, **_errors(own)}


def _errors(said: Answers) -> Document:
    """The mean absolute error, and the mean of what is too much, with intervals over the nodes."""
    gap, row = (said.P - said.y)[:, 0], dict[str, float]()
    values = {"mae": np.abs(gap), "bias": gap}

    def means(weights: Floats) -> dict[str, Floats]:
        return {name: each @ weights / len(gap) for name, each in values.items()}

    drawn = said.drawn(means)
    for name, each in values.items():
        one = percentiles(float(each.mean()), drawn[name])
        row |= {name: one.mean, f"{name}_low": one.low, f"{name}_high": one.high}
    return dict(row)
