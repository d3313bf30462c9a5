"""The numbers of an evaluation as texts, and as tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Group, RenderableType
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
    "value": "true number",
}
ERRORS, BIAS = ("mae", "bias"), "predicted - true"  # of a group of nodes
SQUARE = 12  # classes of the largest confusion matrix that is shown
CONFUSIONS = 10  # of the most frequent ones that are shown instead
ROWS = 40  # of the table by class
CLASS_HEADS = ("precision", "recall", "F1", "ROC AUC", "average precision", "nodes", "predicted")
GRADED, RANKED = ("precision", "recall", "f1"), ("roc_auc", "average_precision")
CALIBRATED = ("mean probability", "share of test nodes", "calibration error")
CALIBRATION = (("mean_probability", None), ("share", ""), ("error", None))  # places in a row
NAMED = ("class", "label", "number")  # heads of what is called as the data has it
LONGEST = 24  # characters of such a name


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


class Grid(NamedTuple):
    """A table for the terminal and for a page: heads, of which the first `names` are of names.

    rows  of names, then of each a ShownScore, a text or a number of nodes
    """

    heads: tuple[str, ...]
    rows: Sequence[Sequence[object]]
    names: int = 1
    title: str = ""


def tables(evaluation: Evaluation, parts: Iterable[RenderableType]) -> Iterator[RenderableType]:
    """Scores beside the baselines, a sentence on the graph, and what is of its kind alone."""
    helps = [evaluation.graph_helps.sentence] if evaluation.graph_helps else []
    beside = Group(_beside(evaluation), *map(Sentence, (*evaluation.notes, *helps)))
    for part in (_scores(evaluation), beside, *parts):
        yield part
        yield Text("")


def label_tables(evaluation: LabelEvaluation) -> Iterator[RenderableType]:
    """By class, probabilities, confusions, and groups of nodes."""
    if found := evaluation.decision:
        yield Group(*map(Sentence, decision_sentences(found)), _table(decision_grid(found)))
    classes, sure = class_grid(evaluation), calibration_grid(evaluation)
    many, title = len(classes.rows), f"{classes.title}, {_who(evaluation)}"
    if many > ROWS:
        largest = np.argsort([-row["support"] for row in evaluation.classes], kind="stable")
        classes = classes._replace(rows=[classes.rows[j] for j in largest[:ROWS]])
        title += f"; the {ROWS} largest of {many}, --json or document() has all"
    yield _table(classes._replace(title=title))
    title = f"{sure.title}; the {ROWS} rarest of {many}, --json has all"
    yield _table(sure if many <= ROWS else sure._replace(rows=sure.rows[:ROWS], title=title))
    if evaluation.confusion:
        yield _confusion(evaluation)
    yield from map(_table, group_grids(evaluation))


def number_tables(evaluation: NumberEvaluation) -> Iterator[RenderableType]:
    """By column, where there are several, and groups of nodes."""
    for one in number_grids(evaluation):
        title = f"{one.title}, {_who(evaluation)}" if one.title else ""
        yield _table(one._replace(title=title))


def _table(grid: Grid) -> RenderableType:
    table = plain_table(*grid.heads, numbers=slice(grid.names, None))
    for row in grid.rows:
        cells = [one.cell if isinstance(one, ShownScore) else str(one) for one in row]
        long = (head in NAMED for head in grid.heads)
        table.add_row(
            *(shortened(one) if cut else one for one, cut in zip(cells, long, strict=True))
        )
    return Group(Text(grid.title), table) if grid.title else table


def class_grid(evaluation: LabelEvaluation) -> Grid:
    """Precision, recall, … of each class."""
    rows = [
        (
            row["name"],
            *(ShownScore.of(row, name, f"{name}_") for name in GRADED),
            *(ShownScore.of(row, name).number for name in RANKED),
            *(row["support"], row["predicted"]),
        )
        for row in evaluation.classes
    ]
    what = evaluation.one_of
    return Grid((what, *CLASS_HEADS), rows, title=f"by {what}")


def calibration_grid(evaluation: LabelEvaluation) -> Grid:
    """Is the mean probability of each class its share of the nodes?"""
    rows = [
        (row["name"], *(ShownScore.of(row, *place) for place in CALIBRATION))
        for row in evaluation.calibration["classes"]
    ]
    title = "probabilities by class in %, the rarest first"
    return Grid((evaluation.one_of, *CALIBRATED), rows, title=title)


def group_grids(evaluation: LabelEvaluation) -> Iterator[Grid]:
    """Accuracy in each group of nodes."""
    for name, groups in evaluation.groups.items():
        rows = [(row["group"], row["nodes"], ShownScore.of(row, "accuracy", "")) for row in groups]
        yield Grid((GROUPS[name], "nodes", "accuracy"), rows)


def number_grids(evaluation: NumberEvaluation) -> Iterator[Grid]:
    """The scores of each column, where there are several; the errors of each group of nodes."""
    several = len(evaluation.targets) > 1
    if several:
        heads = ("number", *(SCORES[name].name for name in evaluation.scores), "mean")
        rows = [_column(evaluation, each) for each in evaluation.targets]
        yield Grid(heads, rows, title="by number")
    for name, groups in evaluation.groups.items():
        heads = (*(("number",) if several else ()), GROUPS[name], "nodes", "MAE", BIAS)
        yield Grid(heads, [_errors(row)[not several :] for row in groups], 1 + several)


def _column(evaluation: NumberEvaluation, row: Document) -> list[str]:
    """The name of a column, its scores and the mean of its numbers."""
    cells = (
        ShownScore.of(row[name], "mean", "", SCORES[name].shown).cell for name in evaluation.scores
    )
    return [row["name"], *cells, number_shown(row["mean"])]


def _errors(row: Document) -> list[str | int]:
    """The column, the group, and its errors."""
    errors = (ShownScore.of(row, one, f"{one}_", number_shown).cell for one in ERRORS)
    return [row["target"], row["group"], row["nodes"], *errors]


def _scores(evaluation: Evaluation) -> Group:
    own, usual = evaluation.scores, evaluation.baselines[evaluation.usual]
    heading = f"score{SCORES[evaluation.metric].in_percent}"
    runs = len(evaluation.runs)
    what = f"mean of {runs} runs, 95 % interval over them" if runs > 1 else "95 % interval"
    over = evaluation.interval if runs == 1 else "each on its own split"
    rows = [
        (evaluation.called(name), *(ShownScore.named(name, one[name]) for one in (own, usual)))
        for name in own
    ]
    title = f"{evaluation.shown_model} on {evaluation.graph}: test nodes, {what}, {over}"
    heads = heading, evaluation.shown_model, evaluation.usual
    return Group(Sentence(title), _table(Grid(heads, rows)))


def decision_sentences(found: Document) -> Iterator[str]:
    """What `predict` does with a thousand nodes like the test nodes, and what that costs."""
    precision, recall = (ShownScore.of(found, name, f"{name}_").cell for name in GRADED[:2])
    name, above = visible(shortened(found["class"])), percent(found["threshold"])
    yield (
        f"a node is named {name} above {above} %: of 1,000 nodes {found['flagged']:.0f} are "
        f"flagged, {precision} % of them correctly, and {recall} % of the class is found"
    )
    if costs := found.get("costs"):
        ends = f" [{costs['low']:.0f}, {costs['high']:.0f}]" if costs["low"] is not None else ""
        yield (
            f"at {found['cost']}, the errors on 1,000 nodes cost {costs['mean']:.0f}{ends} false "
            f"alarms; if none were flagged {costs['none']:.0f}, if all were {costs['all']:.0f}"
        )


def decision_grid(found: Document) -> Grid:
    """The threshold, and others: above which probability, recall, precision, flagged of 1,000."""
    rows = [
        (
            f"{percent(row['threshold'])}{' (kept)' if row is found else ''}",
            percent(row["recall"]) if row["recall"] is not None else "–",
            ShownScore.of(row, "precision", "precision_").cell,
            f"{row['flagged']:.0f}",
        )
        for row in (found, *found["points"])
    ]
    heads = ("recall", "precision", "flagged of 1,000")
    return Grid((f"{shortened(found['class'])} above, in %", *heads), rows)


def _beside(evaluation: Evaluation) -> RenderableType:
    """The score that the training was by, of each baseline, and the paired difference."""
    metric, leads = evaluation.metric, evaluation.differences
    rows = [
        (name, ShownScore.named(metric, one[metric]), _difference(leads.get(name), SCORES[metric]))
        for name, one in evaluation.baselines.items()
    ]
    return _table(Grid(("beside it", evaluation.called(metric), "difference"), rows))


def _difference(lead: Estimate | None, score: Score) -> str:
    """`+24.2 [21.0, 27.3]`: the model's score less that of a baseline."""
    if lead is None or isnan(lead.mean):
        return "–"
    low, high = (score.difference(end) for end in (lead.low, lead.high))
    return f"{score.difference(lead.mean)}{'' if isnan(lead.low) else f' [{low}, {high}]'}"


def _who(evaluation: Evaluation) -> str:
    """`of 1000 test nodes`, and of which split, where there are several."""
    splits = {run["split"] for run in evaluation.runs}
    of = f" of split {evaluation.split}, that of the best run" if len(splits) > 1 else ""
    return f"{evaluation.nodes} test nodes{of}"


def _confusion(evaluation: LabelEvaluation) -> RenderableType:
    names = [shortened(row["name"]) for row in evaluation.classes]
    C = np.array(evaluation.confusion)
    if len(names) > SQUARE:
        most = [(names[i], names[j], nodes) for i, j, nodes in frequent_confusions(C, CONFUSIONS)]
        title = f"the {CONFUSIONS} most frequent confusions; --json or document() has them all"
        return _table(Grid(("true class", "predicted as", "nodes"), most, 2, title))
    counts = [[str(count) if count else "·" for count in row] for row in C]
    rows = [(name, *row) for name, row in zip(names, counts, strict=True)]
    return _table(Grid(("true class ↓, predicted →", *names), rows))


def shortened(name: str) -> str:
    """A name of a class or column, as tables have room for."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
