"""An evaluation's numbers as rows of the page, each with its interval as a small drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan

from markupsafe import Markup

from gcnii.files import Document
from gcnii.inference.evaluation import Evaluation
from gcnii.inference.evaluation.tables import GROUPS, called
from gcnii.targets.answers import LOWER_IS_BETTER
from gcnii.targets.interval import Estimate
from gcnii.targets.objective import percent

GRADED = ("precision", "recall", "f1")
RANKED = ("roc_auc", "average_precision")


@dataclass(frozen=True)
class Score:
    """A number with its interval; a share unless `plain`."""

    estimate: Estimate
    plain: bool = False

    @property
    def number(self) -> str:
        """`81.3`."""
        return self._shown(self.estimate.mean)

    @property
    def interval(self) -> str:
        """`79.0 to 83.6`, or nothing."""
        low, high = self.estimate.low, self.estimate.high
        return "" if isnan(low) or isnan(high) else f"{self._shown(low)} to {self._shown(high)}"

    def _shown(self, value: float) -> str:
        if not self.plain:
            return percent(value)
        return "–" if isnan(value) else f"{value:.3f}"

    def plot(self) -> Markup:
        """A dot at the number on a rail from 0 to 100 %, with its interval as a bar."""
        mean, low, high = self.estimate.mean, self.estimate.low, self.estimate.high
        if self.plain or isnan(mean):
            return Markup()
        words = f"{self.number} %" + (f", interval {self.interval}" if self.interval else "")
        bar = "" if isnan(low) else f'<path class="reach" d="M{_x(low)} 5H{_x(high)}"/>'
        return Markup(
            f'<svg class="interval" viewBox="0 0 100 10" role="img"><title>{words}</title>'
            f'<path class="rail" d="M0 5H100"/>{bar}<circle cx="{_x(mean)}" cy="5" r="3"/></svg>'
        )


def _x(share: float) -> str:
    return f"{100 * min(max(share, 0), 1):.1f}"


def score_rows(evaluation: Evaluation) -> dict[str, list[Score]]:
    """By the score's name: the model's own, then that of each baseline."""
    everyone = (evaluation.scores, *evaluation.baselines.values())
    return {
        _called(evaluation, name): [Score(one[name], name == "log_loss") for one in everyone]
        for name in evaluation.scores
    }


def _called(evaluation: Evaluation, name: str) -> str:
    worse = " (lower is better)" if name in LOWER_IS_BETTER else ""
    return f"{called(evaluation, name)}{worse}"


def class_rows(evaluation: Evaluation) -> list[Document]:
    """Each class: its name, its scores, how many nodes have it and how many are given it."""
    return [
        {
            "name": row["name"],
            "graded": [_of(row, name, f"{name}_") for name in GRADED],
            "ranked": [_of(row, name) for name in RANKED],
            "counts": [row["support"], row["predicted"]],
        }
        for row in evaluation.classes
    ]


def calibration_rows(evaluation: Evaluation) -> list[tuple[str, list[Score]]]:
    """Each class, the rarest first: its mean probability, its share of the nodes, the error."""
    return [
        (
            row["name"],
            [_of(row, "mean_probability"), _of(row, "share", ""), _of(row, "error")],
        )
        for row in evaluation.calibration["classes"]
    ]


def group_tables(evaluation: Evaluation) -> dict[str, list[tuple[str, int, Score]]]:
    """By what the nodes are grouped: the group, its nodes and its accuracy."""
    return {GROUPS.get(name, name): _group(rows) for name, rows in evaluation.groups.items()}


def _group(rows: Sequence[Mapping[str, object]]) -> list[tuple[str, int, Score]]:
    return [(str(row["group"]), int(str(row["nodes"])), _of(row, "accuracy", "")) for row in rows]


def _of(row: Mapping[str, object], name: str, ends: str | None = None) -> Score:
    """A score of a row; its interval is at `{ends}low` and `{ends}high`, if anywhere."""
    low, high = (
        nan if ends is None else _number(row.get(f"{ends}{end}")) for end in ("low", "high")
    )
    return Score(Estimate(_number(row.get(name)), low, high))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else nan
