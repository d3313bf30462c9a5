"""The curves of a training, and how far its probabilities can be trusted, as figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from gcnii.analysis.report.style import GREY, OTHERS, figure, inline_svg, style_of
from gcnii.targets.calibration import Bin
from gcnii.targets.interval import wilson
from gcnii.targets.objective import percent
from gcnii.train.results.result import Result
from gcnii.train.results.run import Run

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


def draw_curves(result: Result) -> list[Drawing]:
    """The losses and the validation score by epoch; empty if the curves are not known."""
    best = result.runs[result.best]
    if not best.curve:
        return []
    others = [run for run in result.runs if run is not best and run.curve][:BESIDE]
    runs = "1 other run" if len(others) == 1 else f"{len(others)} other runs"
    beside = f"; faint: {runs}" if others else ""
    chosen = f"Dotted: epoch {best.best_epoch}, whose weights were kept{beside}."
    lines = (("train_loss", 0, ORANGE, "--"), ("val_loss", 1, BLUE, "-"))
    names = {"train_loss": "training", "val_loss": "validation"}
    drawing = figure(1)
    (axes,) = drawing.axes
    for name, column, colour, dash in lines:
        _draw(axes, best, others, column, colour, dash, names[name])
    axes.legend(frameon=False)
    axes.set(xlabel="epoch", ylabel="loss", title="Loss")
    loss = Drawing(inline_svg(drawing, "loss", "Loss by epoch"), chosen)
    drawing = figure(1)
    (axes,) = drawing.axes
    _draw(axes, best, others, 2, BLUE, "-", "", scale=100)
    axes.set(xlabel="epoch", ylabel=f"{result.metric} (%)", title=f"Validation {result.metric}")
    title = f"Validation {result.metric} by epoch"
    return [loss, Drawing(inline_svg(drawing, "validation", title), "")]


def _draw(
    axes: Axes,
    best: Run,
    others: Sequence[Run],
    column: int,
    colour: str,
    dash: str,
    label: str,
    scale: float = 1,
) -> None:
    for run in others:
        x, y = _points(run, column)
        axes.plot(x, scale * y, color=colour, linewidth=0.7, alpha=0.25)
    x, y = _points(best, column)
    axes.plot(x, scale * y, color=colour, linestyle=dash, label=label)
    axes.locator_params("x", integer=True)
    axes.axvline(best.best_epoch, color=GREY, linestyle=":", linewidth=1)


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
