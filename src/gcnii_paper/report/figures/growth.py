"""scale-growth.png: how the time and the memory of an epoch grow, measured and planned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gcnii.files import Document
from gcnii.report.figures import OTHERS, draw_line, figure, save, shared_legend
from gcnii_paper.report.scale import WHAT, grown_by, planned_cost, slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TIME, HELD = OTHERS[:2]


def draw_growth(path: Path, record: Document) -> Path:
    """Four panels, of two lines each and the plan beside them."""
    drawing = figure(2, 2)
    for axes, (what, word) in zip(drawing.axes, WHAT.items(), strict=True):
        _draw(axes, grown_by(record["growth"], what), word)
    shared_legend(drawing)
    return save(drawing, path)


def _draw(axes: Axes, points: Sequence[Document], word: str) -> None:
    from matplotlib.ticker import LogFormatter

    x, costs = [row["value"] for row in points], [planned_cost(row) for row in points]
    times, held = (
        [1000 * row["best"] for row in points],
        [row["peak_bytes"] / 2**20 for row in points],
    )
    foretold = (
        [1000 * cost.seconds.total for cost in costs],
        [cost.memory.total / 2**20 for cost in costs],
    )
    axes.set(xscale="log", yscale="log")
    axes.yaxis.set_major_formatter(LogFormatter())
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.9)))
    for y, plan, style, name in (
        (times, foretold[0], TIME, "ms of an epoch"),
        (held, foretold[1], HELD, "MiB at the peak"),
    ):
        draw_line(axes, x, y, style, name)
        axes.plot(x, plan, ":", color=style.colour, label=f"{name}, planned")
    axes.set_xticks(x, [f"{value:,}" for value in x])
    axes.set_xticks([], minor=True)
    slopes = [slope(list(zip(x, y, strict=True))) for y in (times, held)]
    title = f"time ∝ {word}^{slopes[0]:.2f}, memory ∝ {word}^{slopes[1]:.2f}"
    axes.set(xlabel=word, title=title)
