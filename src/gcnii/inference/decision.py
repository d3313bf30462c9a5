"""Decision: what the threshold of one of two classes finds, what that costs, and what others would.

The precision that is said here, of the test nodes, is what `predict` has on nodes that come as they
did: both hold the same probabilities against the same threshold.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gcnii.files import Document
from gcnii.results.trained import Trained
from gcnii.targets.interval import percentiles, share_of
from gcnii.targets.scores import Answers
from gcnii.targets.target import Floats
from gcnii.train.recipe import price_of

RECALLS = (0.25, 0.5, 0.75)  # at which other thresholds are shown
POINTS = 200  # of a curve: more do not show
THOUSAND = 1000


def decision(result: Trained, said: Answers, row: Document) -> Document | None:
    """What the threshold of a result does; None where the most probable class is named.

    said  of the test nodes, by the runs that predict
    row   precision, recall and F1 of the positive class there, with intervals
    """
    j, recipe = said.positive, result.recipe
    if j is None or (threshold := result.threshold_of(j)) is None:
        return None
    graded = {name: row[name] for name in row if name.startswith(("precision", "recall", "f1"))}
    curve = _curve(said, j)
    priced = {"cost": recipe.cost, "costs": _costs(said, j, recipe.cost)} if recipe.cost else {}
    return {
        "class": said.target.names[j],
        "threshold": threshold,
        "flagged": THOUSAND * float((said.guess == j).mean()),
        **graded,
        **priced,
        "share": float((said.y == j).mean()),
        "points": list(_points(said, j, curve)),
        "curve": _thinned(curve),
    }


def _curve(said: Answers, j: int) -> Floats:
    """(steps, 3) recall, precision and probability of class j, the most probable nodes first."""
    p, truth = said.P[:, j], said.y == j
    order = np.argsort(-p, kind="stable")
    last = np.flatnonzero(np.diff(p[order], append=-np.inf))  # equal probabilities are one step
    hits, called = np.cumsum(truth[order])[last], last + 1.0
    return np.column_stack([hits / max(hits[-1], 1), hits / called, p[order][last]])


def _thinned(curve: Floats) -> list[Document]:
    """As many points as show, at even steps of recall."""
    wanted = np.searchsorted(curve[:, 0], np.linspace(0, curve[-1, 0], POINTS))
    rows = curve[np.unique(np.minimum(wanted, len(curve) - 1))].tolist()
    return [dict(zip(("recall", "precision", "threshold"), row, strict=True)) for row in rows]


def _points(said: Answers, j: int, curve: Floats) -> Iterator[Document]:
    """Other thresholds, by the recall that they reach."""
    positives = float((said.y == j).sum())
    if not positives:
        return
    for wanted in RECALLS:
        cut = float(curve[np.searchsorted(curve[:, 0], wanted - 1e-9), 2])
        called = said.P[:, j] >= cut
        hits = float((called & (said.y == j)).sum())
        precision = share_of(hits, float(called.sum()))
        ends = {"precision_low": precision.low, "precision_high": precision.high}
        yield {
            **{"threshold": cut, "recall": hits / positives, "precision": precision.mean, **ends},
            "flagged": THOUSAND * float(called.mean()),
        }


def _costs(said: Answers, j: int, cost: str) -> Document:
    """Of a thousand nodes, in false alarms: by the threshold, and if none or all were flagged."""
    price, positive = price_of(cost), said.y == j

    def of(called: Floats) -> Floats:
        return THOUSAND * np.where(positive, price * (1 - called), called)

    each = of((said.guess == j).astype(np.float64))
    drawn = said.drawn(lambda weights: {"": each @ weights / weights.sum(0)})[""]
    own = percentiles(float(each.mean()), drawn)
    none, every = (float(of(np.full(said.m, one)).mean()) for one in (0.0, 1.0))
    return {**own.document(), "none": none, "all": every}
