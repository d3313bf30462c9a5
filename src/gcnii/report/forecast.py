"""Accuracy against depth as one training foretells it, beside networks that were trained at each depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gcnii.analysis.depth import Comparison, Forecast
from gcnii.report.figure import STYLES, figure
from gcnii.report.tables import percent


def draw_forecast(found: Mapping[str, tuple[Forecast, Comparison]]) -> Any:
    """A panel each: the forecast for test nodes at each depth, the network stopped early, and the true scores."""
    drawing = figure(len(found))
    (colour, _, dash), (other, marker, _), (third, _, dots) = STYLES[:3]
    for axes, (title, (foretold, both)) in zip(drawing.axes, found.items(), strict=True):
        layers = range(1, len(foretold.test))
        axes.plot(
            layers, [100 * foretold.test[l] for l in layers], color=colour, linestyle=dash, label="foretold by probes"
        )
        if foretold.stopped:
            stopped = [100 * foretold.stopped[l] for l in layers]
            axes.plot(layers, stopped, color=third, linestyle=dots, label="stopped after the layer (validation)")
        true = [100 * score for score in both.true]
        axes.plot(both.depths, true, color=other, marker=marker, linestyle="none", label="trained at this depth")
        axes.axvline(
            max(foretold.recommended, 1), color="#777777", linestyle=":", label=f"recommended: {foretold.recommended}"
        )
        axes.set_xscale("log", base=2)
        ticks = [2**i for i in range(len(layers).bit_length())]
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.set(xlabel="layers", ylabel="accuracy (%)", title=title)
        axes.legend(frameon=False, fontsize=8)
    return drawing


def forecast_text(title: str, foretold: Forecast, both: Comparison) -> str:
    """The advice, and both curves where there are several depths to hold it against."""
    layers, best = foretold.recommended, foretold.best
    text = (
        f"{title}: {layers} of {len(foretold.val) - 1} layers are recommended"
        f" (foretold val. {percent(foretold.val[layers])}, highest {percent(foretold.val[best])} at {best})"
    )
    if len(both.depths) < 2:
        return text
    pairs = zip(both.depths, both.foretold, both.true, strict=True)
    points = ", ".join(f"{depth}: {percent(one)} / {percent(other)}" for depth, one, other in pairs)
    return (
        f"{text}\n  test, foretold / trained: {points}"
        f"\n  off by {percent(both.error)} points in the mean; the advice costs {percent(both.regret)} points"
    )
