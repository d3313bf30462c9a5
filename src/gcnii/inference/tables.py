"""The numbers of an evaluation as texts, and as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
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
from gcnii.targets.scores import SCORES, frequent_confusions, percent

if TYPE_CHECKING:
    from gcnii.inference.evaluate import Evaluation


GROUPS = {
    "degree": "neighbours",
    "homophily": "neighbours of its class",
    "distance": "steps to a training node",
}
SQUARE = 12  # classes of the largest confusion matrix that is shown
CONFUSIONS = 10  # of the most frequent ones that are shown instead
ROWS = 40  # of the table by class
CALIBRATED = ("mean probability", "share of test nodes", "calibration error")
GRADED, RANKED = ("precision", "recall", "f1"), ("roc_auc", "average_precision")
CALIBRATION = (("mean_probability", None), ("share", ""), ("error", None))  # places in a row
LONGEST = 24  # characters of a class's name


@dataclass(frozen=True)
class ShownScore:
    """A number with its interval as text; a share in % unless `plain`."""

    estimate: Estimate
    plain: bool = False

    @classmethod
    def named(cls, name: str, estimate: Estimate) -> ShownScore:
        """The score of this name; the log loss is not a share."""
        return cls(estimate, SCORES[name].most > 1)

    @classmethod
    def of(cls, row: Document, name: str, ends: str | None = None) -> ShownScore:
        """A score of a row; its interval is at `{ends}low` and `{ends}high`, if anywhere."""
        names = [name] if ends is None else [name, f"{ends}low", f"{ends}high"]
        return cls(Estimate(*(nan if row[one] is None else row[one] for one in names)))

    @property
    def number(self) -> str:
        """`81.3`."""
        return self._shown(self.estimate.mean)

    @property
    def interval(self) -> str:
        """`79.0 to 83.6`, or nothing."""
        low, high = self.estimate.low, self.estimate.high
        return "" if isnan(low) or isnan(high) else f"{self._shown(low)} to {self._shown(high)}"

    @property
    def cell(self) -> str:
        """`81.3 [79.0, 83.6]`."""
        ends = self.interval.replace(" to ", ", ")
        return f"{self.number} [{ends}]" if ends else self.number

    @property
    def is_share(self) -> bool:
        """Whether it has a place between 0 and 100 %."""
        return not (self.plain or isnan(self.estimate.mean))

    def _shown(self, value: float) -> str:
        if not self.plain:
            return percent(value)
        return "–" if isnan(value) else f"{value:.3f}"


def tables(evaluation: Evaluation) -> Iterator[RenderableType]:
    """Scores beside the baselines, by class, confusions, groups; a sentence on the graph."""
    helps = [evaluation.graph_helps.sentence] if evaluation.graph_helps else []
    beside = Group(_beside(evaluation), *map(Text, (*evaluation.notes, *helps)))
    parts = [_scores(evaluation), beside, _classes(evaluation), _calibration(evaluation)]
    confusion = [_confusion(evaluation)] if evaluation.confusion else []
    groups = [_group(GROUPS[name], rows) for name, rows in evaluation.groups.items()]
    for part in (*parts, *confusion, *groups):
        yield part
        yield Text("")


def _scores(evaluation: Evaluation) -> Group:
    usual = evaluation.baselines["majority"]
    table = plain_table("score in %", evaluation.shown_model, "majority")
    runs = len(evaluation.runs)
    what = f"mean of {runs} runs, 95 % interval over them" if runs > 1 else "95 % interval"
    over = evaluation.interval if runs == 1 else "each on its own split"
    for name, estimate in evaluation.scores.items():
        cells = (ShownScore.named(name, one).cell for one in (estimate, usual[name]))
        table.add_row(called(evaluation, name), *cells)
    title = f"{evaluation.shown_model} on {evaluation.graph}: test nodes, {what}, {over}"
    return Group(Text(visible(title)), table)


def _beside(evaluation: Evaluation) -> Table:
    """The score that the training was by, of each baseline, and the paired difference."""
    metric = evaluation.metric
    table = plain_table("beside it", called(evaluation, metric), "difference")
    for name, scores in evaluation.baselines.items():
        gap = _difference(evaluation.differences.get(name))
        table.add_row(name, ShownScore.named(metric, scores[metric]).cell, gap)
    return table


def _difference(lead: Estimate | None) -> str:
    """`+24.2 [21.0, 27.3]`: the model's score less that of a baseline."""
    if lead is None or isnan(lead.mean):
        return "–"
    ends = "" if isnan(lead.low) else f" [{100 * lead.low:+.1f}, {100 * lead.high:+.1f}]"
    return f"{100 * lead.mean:+.1f}{ends}"


def called(evaluation: Evaluation, name: str) -> str:
    """What a score is called, and the class that it is of: `average precision of class fraud`."""
    if name not in SCORES or not SCORES[name].ranks or evaluation.positive is None:
        return SCORES[name].name if name in SCORES else name
    what = "class" if evaluation.confusion else "label"
    return f"{SCORES[name].name} of {what} {_short(evaluation.positive)}"


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
        graded = (ShownScore.of(row, name, f"{name}_").cell for name in GRADED)
        ranked = (ShownScore.of(row, name).cell for name in RANKED)
        table.add_row(_short(row["name"]), *graded, *ranked, row["support"], row["predicted"])
    return Group(Text(title), table)


def _calibration(evaluation: Evaluation) -> Group:
    table = plain_table("label" if not evaluation.confusion else "class", *CALIBRATED)
    rows = evaluation.calibration["classes"]
    title = "probabilities by class in %, the rarest first"
    if len(rows) > ROWS:
        title += f"; the {ROWS} rarest of {len(rows)}, --json has all"
    for row in rows[:ROWS]:
        table.add_row(
            _short(row["name"]), *(ShownScore.of(row, *place).cell for place in CALIBRATION)
        )
    return Group(Text(title), table)


def _who(evaluation: Evaluation) -> str:
    """`of 1000 test nodes`, and of which split, where there are several."""
    splits = {run["split"] for run in evaluation.runs}
    of = f" of split {evaluation.split}, that of the best run" if len(splits) > 1 else ""
    return f"{evaluation.nodes} test nodes{of}"


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
    for i, j, nodes in frequent_confusions(C, CONFUSIONS):
        table.add_row(names[i], names[j], str(nodes))
    return Group(Text(title), table)


def _group(head: str, rows: Sequence[Document]) -> Table:
    table = plain_table(head, "nodes", "accuracy")
    for row in rows:
        table.add_row(row["group"], str(row["nodes"]), ShownScore.of(row, "accuracy", "").cell)
    return table


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
