"""Accuracy against depth: the forecast of one training, and networks trained at each depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gcnii.analysis.report.style import GREY, STYLES, LineStyle, panels, shared_legend, shared_scale
from gcnii.files import Document
from gcnii.metrics.objective import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 2  # panels beside each other


def draw_forecast(
    found: Mapping[str, Document], measured: Mapping[str, Mapping[int, float]]
) -> Figure:
    """One panel per model: the forecast at each depth, the network stopped early, true scores.

    found     by model, `Forecast.summary()` merged with `Comparison.summary()`
    measured  by model, depth → test score of networks that were trained to the end
    """
    drawing = panels(len(found), across=ACROSS)
    for axes, (model, one) in zip(drawing.axes, found.items(), strict=True):
        _draw_curves(axes, one)
        _draw_points(axes, one, measured.get(model, {}))
        axes.axvline(max(one["recommended"], 1), color=GREY, linestyle=":", label="recommended")
        title = f"{model}: {one['recommended']} layers recommended"
        axes.set(xlabel="layers", ylabel="accuracy (%)", title=title)
    shared_scale(drawing)
    shared_legend(drawing)
    return drawing


def _draw_curves(axes: Axes, one: Document) -> None:
    """What probes foretell, and the network's own score when it is stopped after each layer."""
    layers = range(1, len(one["test"]))
    foretold = [100 * one["test"][l] for l in layers]
    first, _, third, _ = STYLES[:4]
    axes.plot(
        layers, foretold, color=first.colour, linestyle=first.dash, label="foretold by probes"
    )
    if one["stopped"]:
        stopped = [100 * one["stopped"][l] for l in layers]
        label = "stopped early (validation)"
        axes.plot(layers, stopped, color=third.colour, linestyle=third.dash, label=label)
    axes.set_xscale("log", base=2)
    ticks = [2**i for i in range(len(layers).bit_length())]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])


def _draw_points(axes: Axes, one: Document, measured: Mapping[int, float]) -> None:
    """The scores of networks that were trained at one depth."""
    _, second, _, fourth = STYLES[:4]
    true = dict(zip(one["depths"], one["true"], strict=True))
    _draw_scores(axes, true, second, "trained at this depth")
    ends = {l: score for l, score in sorted(measured.items()) if 1 <= l < len(one["test"])}
    if ends:
        _draw_scores(axes, ends, fourth, "trained to the end")


def _draw_scores(axes: Axes, scores: Mapping[int, float], style: LineStyle, label: str) -> None:
    """Hollow markers, so that points on top of one another can be told apart."""
    axes.plot(
        list(scores),
        [100 * score for score in scores.values()],
        color=style.colour,
        marker=style.marker,
        label=label,
        linestyle="none",
        markerfacecolor="none",
        markersize=8,
        markeredgewidth=1.8,
    )


def forecast_text(title: str, one: Document) -> str:
    """The recommended depth, and both curves if there are several depths to compare it with."""
    layers, best, val = one["recommended"], one["best"], one["val"]
    text = (
        f"{title}: {layers} of {len(val) - 1} layers are recommended"
        f" (foretold val. {percent(val[layers])}, highest {percent(val[best])} at {best})"
    )
    if len(one["depths"]) < 2:
        return text
    pairs = zip(one["depths"], one["foretold"], one["true"], strict=True)
    points = ", ".join(
        f"{depth}: {percent(foretold)} / {percent(true)}" for depth, foretold, true in pairs
    )
    return (
        f"{text}\n  test, foretold / trained: {points}"
        f"\n  off by {percent(one['error'])} points in the mean;"
        f" the advice costs {percent(one['regret'])} points"
    )
