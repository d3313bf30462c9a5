"""The numbers of an evaluation as texts, and as tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gcnii.errors import visible
from gcnii.files import Document
from gcnii.report.tables import Sentence, plain_table
from gcnii.targets.interval import Estimate
from gcnii.targets.scores import SCORES, Score, frequent_confusions, number_shown, percent

if TYPE_CHECKING:
    from gcnii.inference.evaluate import Evaluation, LabelEvaluation, NumberEvaluation


GROUPS = {
    "degree": "neighbours",
    "homophily": "neighbours of its class",
    "distance": "steps to a training node",
}
NUMBER_GROUPS = {"degree": "neighbours", "value": "true number"}
ERRORS, BIAS = ("mae", "bias"), "predicted - true"  # of a group of nodes
SQUARE = 12  # classes of the largest confusion matrix that is shown
CONFUSIONS = 10  # of the most frequent ones that are shown instead
ROWS = 40  # of the table by class
CALIBRATED = ("mean probability", "share of test nodes", "calibration error")
GRADED, RANKED = ("precision", "recall", "f1"), ("roc_auc", "average_precision")
CALIBRATION = (("mean_probability", None), ("share", ""), ("error", None))  # places in a row
LONGEST = 24  # characters of a class's name


@dataclass(frozen=True)
class ShownScore:
    """A number with its interval as text: a share in %, or as `shown` has it."""

    estimate: Estimate
    shown: Callable[[float], str] = percent

    @classmethod
    def named(cls, name: str, estimate: Estimate) -> ShownScore:
        """The score of this name; the log loss is not a share."""
        score = SCORES[name]
        if score.plain:
            return cls(estimate, score.shown)
        return cls(estimate, _loss if score.most > 1 else percent)

    @classmethod
    def of(
        cls,
        row: Document,
        name: str,
        ends: str | None = None,
        shown: Callable[[float], str] = percent,
    ) -> ShownScore:
        """A score of a row; its interval is at `{ends}low` and `{ends}high`, if anywhere."""
        names = [name] if ends is None else [name, f"{ends}low", f"{ends}high"]
        return cls(Estimate(*(nan if row[one] is None else row[one] for one in names)), shown)

    @property
    def number(self) -> str:
        """`81.3`."""
        return self.shown(self.estimate.mean)

    @property
    def interval(self) -> str:
        """`79.0 to 83.6`, or nothing."""
        low, high = self.estimate.low, self.estimate.high
        return "" if isnan(low) or isnan(high) else f"{self.shown(low)} to {self.shown(high)}"

    @property
    def cell(self) -> str:
        """`81.3 [79.0, 83.6]`."""
        ends = self.interval.replace(" to ", ", ")
        return f"{self.number} [{ends}]" if ends else self.number

    @property
    def is_share(self) -> bool:
        """Whether it has a place between 0 and 100 %."""
        return self.shown == percent and not isnan(self.estimate.mean)


def _loss(value: float) -> str:
    return "–" if isnan(value) else f"{value:.3f}"


def tables(evaluation: Evaluation, parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    """Scores beside the baselines, a sentence on the graph, and what is of its kind alone."""
    helps = [evaluation.graph_helps.sentence] if evaluation.graph_helps else []
    beside = Group(_beside(evaluation), *map(Sentence, (*evaluation.notes, *helps)))
    for part in (_scores(evaluation), beside, *parts):
        yield part
        yield Text("")


def label_tables(evaluation: LabelEvaluation) -> Iterator[RenderableType]:
    """By class, probabilities, confusions, and groups of nodes."""
    if evaluation.decision:
        yield _decision(evaluation.decision)
    yield from (_classes(evaluation), _calibration(evaluation))
    if evaluation.confusion:
        yield _confusion(evaluation)
    for name, rows in evaluation.groups.items():
        yield _group(GROUPS[name], rows)


def number_tables(evaluation: NumberEvaluation) -> Iterator[RenderableType]:
    """By column, where there are several, and groups of nodes."""
    for one in number_rows(evaluation):
        table = plain_table(*one.heads, numbers=slice(one.names, None))
        for row in one.rows:
            table.add_row(*row)
        yield Group(Text(f"{one.title}, {_who(evaluation)}"), table) if one.title else table


class NumberRows(NamedTuple):
    """A table of errors: its title, its heads, of which the first `names` are names, its rows."""

    title: str
    heads: tuple[str, ...]
    names: int
    rows: list[list[str]]


def number_rows(evaluation: NumberEvaluation) -> Iterator[NumberRows]:
    """The scores of each column, where there are several; the errors of each group of nodes."""
    several = len(evaluation.targets) > 1
    if several:
        heads = ("number", *(SCORES[name].name for name in evaluation.scores), "mean")
        yield NumberRows(
            "by number", heads, 1, [_column(evaluation, e) for e in evaluation.targets]
        )
    for name, rows in evaluation.groups.items():
        heads = (*(("number",) if several else ()), NUMBER_GROUPS[name], "nodes", "MAE", BIAS)
        yield NumberRows("", heads, 1 + several, [_errors(row, several=several) for row in rows])


def _column(evaluation: NumberEvaluation, row: Document) -> list[str]:
    """The name of a column, its scores and the mean of its numbers."""
    scores = ((name, Estimate(**row[name])) for name in evaluation.scores)
    cells = (ShownScore.named(*one).cell for one in scores)
    return [shortened(row["name"]), *cells, number_shown(row["mean"])]


def _errors(row: Document, *, several: bool) -> list[str]:
    """The errors of a group, with the name of the column where there are several."""
    own = [shortened(row["target"])] if several else []
    errors = (ShownScore.of(row, one, f"{one}_", number_shown).cell for one in ERRORS)
    return [*own, row["group"], str(row["nodes"]), *errors]


def _scores(evaluation: Evaluation) -> Group:
    usual = evaluation.baselines[evaluation.usual]
    heading = f"score{SCORES[evaluation.metric].in_percent}"
    table = plain_table(heading, evaluation.shown_model, evaluation.usual)
    runs = len(evaluation.runs)
    what = f"mean of {runs} runs, 95 % interval over them" if runs > 1 else "95 % interval"
    over = evaluation.interval if runs == 1 else "each on its own split"
    for name, estimate in evaluation.scores.items():
        cells = (ShownScore.named(name, one).cell for one in (estimate, usual[name]))
        table.add_row(evaluation.called(name), *cells)
    title = f"{evaluation.shown_model} on {evaluation.graph}: test nodes, {what}, {over}"
    return Group(Sentence(title), table)


def decision_sentences(found: Document) -> Iterator[str]:
    """What `predict` does with a thousand nodes like the test nodes, and what that costs."""
    precision, recall = (ShownScore.of(found, name, f"{name}_").cell for name in GRADED[:2])
    name, above = visible(shortened(found["class"])), percent(found["threshold"])
    yield (
        f"a node is named {name} above {above} %: of 1,000 nodes {found['flagged']:.0f} are "
        f"flagged, {precision} % of them rightly, and {recall} % of the class is found"
    )
    if costs := found.get("costs"):
        ends = f" [{costs['low']:.0f}, {costs['high']:.0f}]" if costs["low"] is not None else ""
        yield (
            f"at {found['cost']}, the errors on 1,000 nodes cost {costs['mean']:.0f}{ends} false "
            f"alarms; if none were flagged {costs['none']:.0f}, if all were {costs['all']:.0f}"
        )


def decision_rows(found: Document) -> Iterator[tuple[str, ...]]:
    """The threshold, and others: above which probability, recall, precision, flagged of 1,000."""
    for kept, row in ((True, found), *((False, one) for one in found["points"])):
        yield (
            f"{percent(row['threshold'])}{' (kept)' if kept else ''}",
            percent(row["recall"]) if row["recall"] is not None else "–",
            ShownScore.of(row, "precision", "precision_").cell,
            f"{row['flagged']:.0f}",
        )


DECISION = ("recall", "precision", "flagged of 1,000")


def _decision(found: Document) -> Group:
    table = plain_table(f"{shortened(found['class'])} above, in %", *DECISION)
    for row in decision_rows(found):
        table.add_row(*row)
    return Group(*map(Sentence, decision_sentences(found)), table)


def _beside(evaluation: Evaluation) -> Table:
    """The score that the training was by, of each baseline, and the paired difference."""
    metric = evaluation.metric
    table = plain_table("beside it", evaluation.called(metric), "difference")
    for name, scores in evaluation.baselines.items():
        gap = _difference(evaluation.differences.get(name), SCORES[metric])
        table.add_row(name, ShownScore.named(metric, scores[metric]).cell, gap)
    return table


def _difference(lead: Estimate | None, score: Score) -> str:
    """`+24.2 [21.0, 27.3]`: the model's score less that of a baseline."""
    if lead is None or isnan(lead.mean):
        return "–"
    low, high = (score.difference(end) for end in (lead.low, lead.high))
    return f"{score.difference(lead.mean)}{'' if isnan(lead.low) else f' [{low}, {high}]'}"


def _classes(evaluation: LabelEvaluation) -> Group:
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
        table.add_row(shortened(row["name"]), *graded, *ranked, row["support"], row["predicted"])
    return Group(Text(title), table)


def _calibration(evaluation: LabelEvaluation) -> Group:
    table = plain_table("label" if not evaluation.confusion else "class", *CALIBRATED)
    rows = evaluation.calibration["classes"]
    title = "probabilities by class in %, the rarest first"
    if len(rows) > ROWS:
        title += f"; the {ROWS} rarest of {len(rows)}, --json has all"
    for row in rows[:ROWS]:
        table.add_row(
            shortened(row["name"]), *(ShownScore.of(row, *place).cell for place in CALIBRATION)
        )
    return Group(Text(title), table)


def _who(evaluation: Evaluation) -> str:
    """`of 1000 test nodes`, and of which split, where there are several."""
    splits = {run["split"] for run in evaluation.runs}
    of = f" of split {evaluation.split}, that of the best run" if len(splits) > 1 else ""
    return f"{evaluation.nodes} test nodes{of}"


def _confusion(evaluation: LabelEvaluation) -> RenderableType:
    names = [shortened(row["name"]) for row in evaluation.classes]
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


def shortened(name: str) -> str:
    """A name of a class or column, as tables have room for."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
