"""Accuracy against depth as one training foretells it, beside networks that were trained at each
depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gcnii.analysis.report.style import STYLES, figure, shared_legend, shared_scale
from gcnii.metrics.objective import percent

Foretold = Mapping[str, Any]  # `Forecast.summary()` and `Comparison.summary()` in one
ACROSS = 2  # panels beside each other


def draw_forecast(
    found: Mapping[str, Foretold], measured: Mapping[str, Mapping[int, float]]
) -> Any:
    """A panel a model: the forecast for test nodes at each depth, the network stopped early, and
    true scores.

    `measured`: by model, depth → test score of networks trained to the end, where there are any.
    """
    drawing = figure(min(len(found), ACROSS), -(-len(found) // ACROSS))
    for spare in drawing.axes[len(found) :]:
        spare.remove()
    for axes, (model, one) in zip(drawing.axes, found.items(), strict=True):
        _draw(axes, one, measured.get(model, {}))
        axes.set(
            xlabel="layers",
            ylabel="accuracy (%)",
            title=f"{model}: {one['recommended']} layers recommended",
        )
    shared_scale(drawing)
    shared_legend(drawing)
    return drawing


def _draw(axes: Any, one: Foretold, measured: Mapping[int, float]) -> None:
    (colour, _, dash), (other, marker, _), (third, _, dots), (fourth, diamond, _) = STYLES[:4]
    layers = range(1, len(one["test"]))
    foretold = [100 * one["test"][l] for l in layers]
    axes.plot(layers, foretold, color=colour, linestyle=dash, label="foretold by probes")
    if one["stopped"]:
        stopped = [100 * one["stopped"][l] for l in layers]
        axes.plot(layers, stopped, color=third, linestyle=dots, label="stopped early (validation)")
    marks = {
        "linestyle": "none",
        "markerfacecolor": "none",
        "markersize": 8,
        "markeredgewidth": 1.8,
    }
    true = [100 * score for score in one["true"]]
    axes.plot(
        one["depths"], true, color=other, marker=marker, label="trained at this depth", **marks
    )
    if ends := [(l, 100 * score) for l, score in sorted(measured.items()) if l in layers]:
        axes.plot(
            *zip(*ends, strict=True),
            color=fourth,
            marker=diamond,
            label="trained to the end",
            **marks,
        )
    axes.axvline(max(one["recommended"], 1), color="#777777", linestyle=":", label="recommended")
    axes.set_xscale("log", base=2)
    ticks = [2**i for i in range(len(layers).bit_length())]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])


def forecast_text(title: str, one: Foretold) -> str:
    """The advice, and both curves where there are several depths to hold it against."""
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
        f"\n  off by {percent(one['error'])} points in the mean; the advice costs {percent(one['regret'])} points"
    )
