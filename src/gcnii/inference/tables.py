"""An evaluation as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gcnii.errors import visible
from gcnii.files import Document
from gcnii.report.tables import plain_table
from gcnii.targets.interval import Estimate
from gcnii.targets.scores import SCORES, percent

if TYPE_CHECKING:
    from gcnii.inference.evaluate import Evaluation


NAMES = {
    **{name: score.name for name, score in SCORES.items()},
}
GROUPS = {
    "degree": "neighbours",
    "homophily": "neighbours of its class",
    "distance": "steps to a training node",
}
SQUARE = 12  # classes of the largest confusion matrix that is shown
CONFUSIONS = 10  # of the most frequent ones that are shown instead
ROWS = 40  # of the table by class
CALIBRATED = ("mean probability", "share of test nodes", "calibration error")
LONGEST = 24  # characters of a class's name


def tables(evaluation: Evaluation) -> Iterator[RenderableType]:
    """Scores beside the baselines, by class, confusions, groups; a sentence on the graph."""
    yield _scores(evaluation)
    yield Text("")
    yield _beside(evaluation)
    yield from (Text(note) for note in evaluation.notes)
    if evaluation.graph_helps:
        yield Text(evaluation.graph_helps.sentence)
    yield Text("")
    yield _classes(evaluation)
    yield Text("")
    yield _calibration(evaluation)
    yield Text("")
    if evaluation.confusion:
        yield _confusion(evaluation)
        yield Text("")
    for name, rows in evaluation.groups.items():
        yield _group(GROUPS[name], rows)
        yield Text("")


def _scores(evaluation: Evaluation) -> Group:
    usual = evaluation.baselines["majority"]
    table = plain_table("score in %", evaluation.model, "majority")
    runs = len(evaluation.runs)
    what = f"mean of {runs} runs, 95 % interval over them" if runs > 1 else "95 % interval"
    over = evaluation.interval if runs == 1 else "each on its own split"
    for name, estimate in evaluation.scores.items():
        table.add_row(called(evaluation, name), cell(name, estimate), cell(name, usual[name]))
    title = f"{evaluation.model} on {evaluation.graph}: test nodes, {what}, {over}"
    return Group(Text(visible(title)), table)


def _beside(evaluation: Evaluation) -> Table:
    """The score that the training was by, of each baseline, and the paired difference."""
    metric = evaluation.metric
    table = plain_table("beside it", called(evaluation, metric), "difference")
    for name, scores in evaluation.baselines.items():
        gap = _difference(evaluation.differences.get(name))
        table.add_row(name, cell(metric, scores[metric]), gap)
    return table


def cell(name: str, estimate: Estimate) -> str:
    """`81.3 [79.0, 83.6]`; the log loss is not a percentage."""
    shown = percent if SCORES[name].most == 1 else lambda x: "–" if isnan(x) else f"{x:.3f}"
    if isnan(estimate.low):
        return shown(estimate.mean)
    return f"{shown(estimate.mean)} [{shown(estimate.low)}, {shown(estimate.high)}]"


def _difference(lead: Estimate | None) -> str:
    """`+24.2 [21.0, 27.3]`: the model's score less that of a baseline."""
    if lead is None or isnan(lead.mean):
        return "–"
    ends = "" if isnan(lead.low) else f" [{100 * lead.low:+.1f}, {100 * lead.high:+.1f}]"
    return f"{100 * lead.mean:+.1f}{ends}"


def called(evaluation: Evaluation, name: str) -> str:
    """What a score is called, and the class that it is of: `average precision of class fraud`."""
    if name not in SCORES or not SCORES[name].ranks or evaluation.positive is None:
        return NAMES.get(name, name)
    what = "class" if evaluation.confusion else "label"
    return f"{NAMES[name]} of {what} {_short(evaluation.positive)}"


def _classes(evaluation: Evaluation) -> Group:
    heads = ("precision", "recall", "F1", "ROC AUC", "average precision", "nodes", "predicted")
    several = "label" if not evaluation.confusion else "class"
    table = plain_table(several, *heads)
    rows = evaluation.classes
    title = f"by {several}, {_who(evaluation)}"
    if len(rows) > ROWS:
        rows = tuple(sorted(rows, key=lambda row: -row["support"])[:ROWS])
        title += f"; the {ROWS} largest of {len(evaluation.classes)}, --json or document() has all"
    for row in rows:
        ranked = (_percent(row[name]) for name in ("roc_auc", "average_precision"))
        graded = (_interval(row, name) for name in ("precision", "recall", "f1"))
        counts = (str(row["support"]), str(row["predicted"]))
        table.add_row(_short(row["name"]), *graded, *ranked, *counts)
    return Group(Text(title), table)


def _calibration(evaluation: Evaluation) -> Group:
    table = plain_table("label" if not evaluation.confusion else "class", *CALIBRATED)
    rows = evaluation.calibration["classes"]
    title = "probabilities by class in %, the rarest first"
    if len(rows) > ROWS:
        title += f"; the {ROWS} rarest of {len(rows)}, --json has all"
    for row in rows[:ROWS]:
        share = _interval({**row, "share_low": row["low"], "share_high": row["high"]}, "share")
        cells = (percent(row["mean_probability"]), share, percent(row["error"]))
        table.add_row(_short(row["name"]), *cells)
    return Group(Text(title), table)


def _who(evaluation: Evaluation) -> str:
    """`of 1000 test nodes`, and of which split, where there are several."""
    splits = {run["split"] for run in evaluation.runs}
    of = f" of split {evaluation.split}, that of the best run" if len(splits) > 1 else ""
    return f"{evaluation.nodes} test nodes{of}"


def _percent(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _interval(row: Document, name: str) -> str:
    if row[name] is None or row[f"{name}_low"] is None:
        return _percent(row[name])
    ends = (_percent(row[f"{name}_{end}"]) for end in ("low", "high"))
    return f"{_percent(row[name])} [{', '.join(ends)}]"


def _confusion(evaluation: Evaluation) -> RenderableType:
    names = [_short(row["name"]) for row in evaluation.classes]
    C = np.array(evaluation.confusion)
    if len(names) > SQUARE:
        return _most_confused(names, C)
    table = plain_table("true class ↓, predicted →", *names)
    for name, counts in zip(names, C, strict=True):
        table.add_row(name, *(str(count) if count else "·" for count in counts))
    return table


def _most_confused(names: Sequence[str], C: NDArray[np.int64]) -> Group:
    table = plain_table("true class", "predicted as", "nodes", numbers=slice(2, 3))
    title = f"the {CONFUSIONS} most frequent confusions; --json or document() has them all"
    wrong = C - np.diag(C.diagonal())
    for place in np.argsort(-wrong, axis=None, kind="stable")[:CONFUSIONS]:
        i, j = divmod(int(place), len(C))
        if wrong[i, j]:
            table.add_row(names[i], names[j], str(wrong[i, j]))
    return Group(Text(title), table)


def _group(head: str, rows: Sequence[Document]) -> Table:
    table = plain_table(head, "nodes", "accuracy")
    for row in rows:
        table.add_row(row["group"], str(row["nodes"]), _interval({**row, **_ends(row)}, "accuracy"))
    return table


def _ends(row: Document) -> Document:
    return {f"accuracy_{end}": row[end] for end in ("low", "high")}


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
