"""curves.png: training curves, and accuracy against depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gcnii.analysis.report.style import LineStyle, figure, save, styles_of
from gcnii.paper.report.figures.depth import depth_axis
from gcnii.train.results.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_curves(
    path: Path, trained: Mapping[str, Result], depths: Mapping[str, Sequence[Result]]
) -> Path:
    """Left: the loss of each result in `trained`, by epoch.  Right: the test score of each sweep in
    `depths`, by layers.
    """
    drawing = figure(2)
    left, right = drawing.axes
    for label, style in styles_of(trained).items():
        _draw_losses(left, label, trained[label], style)
    title = "Training: validation loss (line), training loss (faint)"
    left.set(xlabel="epoch", ylabel="loss", title=title)
    left.legend(frameon=False)
    draw_depths(right, depths)
    return save(drawing, path)


def draw_depths(axes: Axes, depths: Mapping[str, Sequence[Result]]) -> None:
    """Mean test score against the number of layers, with error bars if there are several runs."""
    for label, style in styles_of(depths).items():
        _draw_sweep(axes, label, depths[label], style)
    depth_axis(axes, {_layers(result) for results in depths.values() for result in results})
    axes.set(title="Accuracy against depth", ylim=(0, 102))
    axes.legend(frameon=False, loc="lower left")


def _layers(result: Result) -> int:
    return int(result.plan.model_settings["layers"])


def _draw_sweep(axes: Axes, label: str, results: Sequence[Result], style: LineStyle) -> None:
    colour, marker, dash = style
    layers, means = map(_layers, results), [100 * result.test.mean() for result in results]
    spread = [100 * result.test.std(ddof=1) if len(result.runs) > 1 else 0 for result in results]
    line = axes.errorbar(list(layers), means, spread, color=colour, label=label, capsize=3)[0]
    line.set(marker=marker, linestyle=dash)


def _draw_losses(axes: Axes, label: str, result: Result, style: LineStyle) -> None:
    colour, _, dash = style
    train_loss, val_loss, _ = np.array(result.runs[0].curve).T
    axes.plot(val_loss, color=colour, linestyle=dash, label=label)
    axes.plot(train_loss, color=colour, linestyle=dash, alpha=0.3)
