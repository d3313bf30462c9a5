"""curves.png: training curves, and accuracy against depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gcnii.analysis.report.style import STYLES, figure, save
from gcnii.train.result import Result


def draw_curves(
    path: Path, trained: Mapping[str, Result], depths: Mapping[str, Sequence[Result]]
) -> Path:
    """Left: loss of the `trained` results by epoch.  Right: test score of each sweep in `depths` by
    layers.
    """
    drawing = figure(2)
    left, right = drawing.axes
    for style, (label, result) in zip(STYLES, trained.items(), strict=False):
        _draw_losses(left, label, result, style)
    left.set(
        xlabel="epoch",
        ylabel="loss",
        title="Training: validation loss (line), training loss (faint)",
    )
    left.legend(frameon=False)
    draw_depths(right, depths)
    return save(drawing, path)


def draw_depths(axes: Any, depths: Mapping[str, Sequence[Result]]) -> None:
    """Mean test score against the number of layers, with the spread over the runs where there are
    several.
    """
    for (colour, marker, dash), (label, results) in zip(STYLES, depths.items(), strict=False):
        layers = [result.plan.model_settings["layers"] for result in results]
        means = [100 * result.test.mean() for result in results]
        spread = [
            100 * result.test.std(ddof=1) if len(result.runs) > 1 else 0 for result in results
        ]
        axes.errorbar(
            layers,
            means,
            spread,
            color=colour,
            marker=marker,
            linestyle=dash,
            label=label,
            capsize=3,
        )
    axes.set_xscale("log", base=2)
    ticks = sorted(
        {result.plan.model_settings["layers"] for results in depths.values() for result in results}
    )
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set(
        xlabel="layers", ylabel="test accuracy (%)", title="Accuracy against depth", ylim=(0, 102)
    )
    axes.legend(frameon=False, loc="lower left")


def _draw_losses(axes: Any, label: str, result: Result, style: tuple[str, str, str]) -> None:
    colour, _, dash = style
    train_loss, val_loss, _ = np.array(result.runs[0].curve).T
    axes.plot(val_loss, color=colour, linestyle=dash, label=label)
    axes.plot(train_loss, color=colour, linestyle=dash, alpha=0.3)
