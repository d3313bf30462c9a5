"""What the page of a run draws: curves, reliability, confusions, scores with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, isnan, sqrt
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from gcnii.errors import visible
from gcnii.inference.evaluate import Evaluation
from gcnii.inference.tables import ShownScore, called
from gcnii.report.figures import GREY, OTHERS, figure, inline_svg, style_of
from gcnii.report.html import short
from gcnii.results.ensemble import Ensemble
from gcnii.results.result import Result, Trained
from gcnii.targets.interval import wilson
from gcnii.targets.scores import SCORES, frequent_confusions, percent
from gcnii.targets.target import Bin
from gcnii.train.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes


POINTS = 300  # of a curve: more do not show
BESIDE = 20  # curves of other runs that are drawn beside the best one
BLUE = style_of("gcnii").colour
ORANGE = OTHERS[0].colour
SMALL, LARGE = 20, 200  # points², of a dot of a reliability diagram


@dataclass(frozen=True)
class Drawing:
    """A figure of one panel, and what it shows in words."""

    svg: Markup
    caption: str


def draw_curves(result: Result, name: str = "") -> list[Drawing]:
    """The losses and the validation score by epoch; empty if the curves are not known.

    name  of the member of an ensemble
    """
    best = result.runs[result.best]
    if not best.curve:
        return []
    others = [run for run in result.runs if run is not best and run.curve][:BESIDE]

    def draw(axes: Axes, column: int, colour: str, dash: str, label: str, scale: int = 1) -> None:
        for run in others:
            x, y = _points(run, column)
            axes.plot(x, scale * y, color=colour, linewidth=0.7, alpha=0.25)
        x, y = _points(best, column)
        axes.plot(x, scale * y, color=colour, linestyle=dash, label=label)
        axes.locator_params("x", integer=True)
        axes.axvline(best.best_epoch, color=GREY, linestyle=":", linewidth=1)

    losses, scores = figure(1), figure(1)
    (axes,) = losses.axes
    draw(axes, 0, ORANGE, "--", "training")
    draw(axes, 1, BLUE, "-", "validation")
    axes.legend(frameon=False)
    of = f"{name}: " if name else ""
    axes.set(xlabel="epoch", ylabel="loss", title=f"{of}loss" if of else "Loss")
    (axes,) = scores.axes
    draw(axes, 2, BLUE, "-", "", scale=100)
    title = f"{of}validation {result.metric}" if of else f"Validation {result.metric}"
    axes.set(xlabel="epoch", ylabel=f"{result.metric} (%)", title=title)
    runs = "1 other run" if len(others) == 1 else f"{len(others)} other runs"
    beside = f"; faint: {runs}" if others else ""
    chosen = f"Dotted: epoch {best.best_epoch}, whose weights were kept{beside}."
    key = f"{name}-" if name else ""
    return [
        Drawing(inline_svg(losses, f"{key}loss", f"{of}Loss by epoch"), chosen),
        Drawing(inline_svg(scores, f"{key}validation", f"{title} by epoch"), ""),
    ]


def curves_of(result: Trained) -> list[Drawing]:
    """Those of a model, or of the networks of weight in an ensemble."""
    if not isinstance(result, Ensemble):
        assert isinstance(result, Result)
        return draw_curves(result)
    blend = result.blends[result.best]
    members = [one for one, weight in result.network_weights(blend).items() if weight]
    rows = list(blend.rows)
    return [one for member in members for one in draw_curves(member.result.part(rows), member.name)]


def _points(run: Run, column: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Epochs and values, as many as show."""
    values = np.array(run.curve)[:, column]
    x = np.unique(np.linspace(0, len(values) - 1, min(len(values), POINTS)).astype(np.int64))
    return x, values[x]


def draw_reliability(title: str, bins: Sequence[Bin], error: float) -> Drawing:
    """Accuracy against confidence: dots on the diagonal can be trusted; large ones are frequent."""
    drawing = figure(1)
    (axes,) = drawing.axes
    axes.plot([0, 100], [0, 100], color=GREY, linestyle="--", linewidth=1)
    most = max((one.nodes for one in bins), default=1)
    for one in bins:
        x, y = 100 * one.confidence, 100 * one.accuracy
        low, high = (100 * end for end in wilson(one.accuracy, one.nodes))
        axes.vlines(x, low, high, color=BLUE, linewidth=1.5, alpha=0.6)
        size = SMALL + (LARGE - SMALL) * sqrt(one.nodes / most)
        axes.scatter(x, y, s=size, color=BLUE, alpha=0.8, linewidths=0)
    axes.set(xlim=(0, 102), ylim=(0, 102), xlabel="confidence (%)", ylabel="right (%)")
    axes.set_title(f"{title[0].upper()}{title[1:]}: error {percent(error)} %")
    name = title.replace(" ", "-")
    caption = (
        "Dots: groups of like confidence, by size; bars: 95 % intervals; dashed: as it should be."
    )
    return Drawing(inline_svg(drawing, name, f"Reliability, {title}"), caption)


SQUARE = 12  # classes of the largest matrix that is a table of numbers
MOST = 100  # classes of the largest heat map
LISTED = 10  # of the most frequent confusions
LEVELS = 9  # of shade
FAINTEST = 0.35  # shade of a square: a single confusion is to be seen
STEP = 10  # the side of a square of the heat map


@dataclass(frozen=True, eq=False)
class Confusions:
    """A confusion matrix: rows are true classes, columns predicted ones."""

    names: Sequence[str]
    C: NDArray[np.int64]

    @classmethod
    def of(cls, evaluation: Evaluation) -> Confusions | None:
        """None where a node can have several labels."""
        names = [row["name"] for row in evaluation.classes]
        return cls(names, np.array(evaluation.confusion)) if evaluation.confusion else None

    @property
    def rows(self) -> list[tuple[str, list[tuple[int, str]]]]:
        """Each true class with its counts and their shades; empty of many classes."""
        if len(self.names) > SQUARE:
            return []
        pairs = enumerate(zip(self.names, self.C, strict=True))
        return [(name, [self._cell(i, j) for j in range(len(row))]) for i, (name, row) in pairs]

    def _cell(self, i: int, j: int) -> tuple[int, str]:
        kind = "hit" if i == j else "miss"
        return int(self.C[i, j]), f"{kind}-{ceil(LEVELS * self._share(i, j))}"

    def _share(self, i: int, j: int) -> float:
        """Of the nodes of class i, how many are taken for j."""
        return float(self.C[i, j] / max(self.C[i].sum(), 1))

    @property
    def frequent(self) -> list[tuple[str, str, int, int]]:
        """True class, what it is taken for, how often, of how many: the most frequent ones."""
        return [
            (self.names[i], self.names[j], nodes, int(self.C[i].sum()))
            for i, j, nodes in frequent_confusions(self.C, LISTED)
        ]

    @property
    def heat_map(self) -> Markup | None:
        """The matrix as squares, whose titles say what they are; None of few or too many."""
        k = len(self.names)
        if not SQUARE < k <= MOST:
            return None
        squares = "".join(self._square(int(i), int(j)) for i, j in np.argwhere(self.C))
        size, label = k * STEP, f"Confusion matrix of {k} classes"
        return Markup(
            f'<svg class="heat" viewBox="-1 -1 {size + 2} {size + 2}" role="img" '
            f'aria-label="{label}"><rect class="ground" width="{size}" height="{size}"/>'
            f"{squares}</svg>"
        )

    def _square(self, i: int, j: int) -> str:
        kind = "hit" if i == j else "miss"
        true, taken = (escape(visible(short(self.names[at]))) for at in (i, j))
        title = f"true {true}, predicted {taken}: {self.C[i, j]} of {self.C[i].sum()}"
        shade = max(self._share(i, j), FAINTEST)
        place = f'x="{j * STEP}" y="{i * STEP}" width="{STEP}" height="{STEP}"'
        return (
            f'<rect class="{kind}" {place} fill-opacity="{shade:.2f}"><title>{title}</title></rect>'
        )


def plot(score: ShownScore) -> Markup:
    """A dot at the number on a rail from 0 to 100 %, with its interval as a bar."""
    mean, low, high = score.estimate.mean, score.estimate.low, score.estimate.high
    if score.plain or isnan(mean):
        return Markup()
    words = f"{score.number} %" + (f", interval {score.interval}" if score.interval else "")
    bar = "" if isnan(low) else f'<path class="reach" d="M{_x(low)} 5H{_x(high)}"/>'
    return Markup(
        f'<svg class="interval" viewBox="0 0 100 10" role="img"><title>{words}</title>'
        f'<path class="rail" d="M0 5H100"/>{bar}<circle cx="{_x(mean)}" cy="5" r="3"/></svg>'
    )


def _x(share: float) -> str:
    return f"{100 * min(max(share, 0), 1):.1f}"


def score_rows(evaluation: Evaluation) -> dict[str, list[ShownScore]]:
    """By the score's name: the model's own, then that of each baseline."""
    everyone, rows = (evaluation.scores, *evaluation.baselines.values()), {}
    for name in evaluation.scores:
        worse = " (lower is better)" if SCORES[name].lower_is_better else ""
        rows[called(evaluation, name) + worse] = [
            ShownScore.named(name, one[name]) for one in everyone
        ]
    return rows
