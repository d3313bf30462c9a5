"""A closed study as tables for the terminal and as a picture: what `study.json` holds."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.table import Table

from gcnii.files import Document
from gcnii.report.figures import GREY, LineStyle, figure, shared_legend, styles_of
from gcnii.targets.objective import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


BEST = 10  # trials in the table
MOST_BARS = 12  # settings in the picture
SHORT = {
    **{"decay_conv": "L2_c", "decay_dense": "L2_d", "alpha": "α", "lam": "λ"},
    **{"input_dropout": "dropout of X", "product_first": "product first", "consistency": "λ_c"},
    **{"drop_node": "nodes dropped", "sharpen": "T", "warm_up": "warm-up", "row_norm": "rows"},
}
SHOWN = (
    *("layers", "width", "alpha", "lam", "dropout", "input_dropout", "lr", "decay_conv"),
    *("decay_dense", "scale", "norm", "direction", "loops", "class_weight", "batch_norm"),
    *("self_weight", "product_first", "row_norm", "head", "residual"),
    *("views", "drop_node", "consistency", "sharpen", "warm_up"),
)


def trial_table(document: Document) -> Group:
    """The ten best trials."""
    table = Table("", "val", "±", "model", "settings", box=None, header_style="bold")
    for column in table.columns[:3]:
        column.justify = "right"
    best = [trial for trial in document["trials"] if trial["outcome"] == "complete"][:BEST]
    for place, trial in enumerate(best, 1):
        score, spread = _score(trial["val"])
        settings = words(trial["settings"], trial["model"], document)
        table.add_row(str(place), score, spread, trial["model"], settings)
    return Group(f"The best settings by validation ({document['measured']} in %)", table)


def _score(val: list[float]) -> tuple[str, str]:
    error = float(np.std(val, ddof=1) / np.sqrt(len(val))) if len(val) > 1 else 0.0
    return percent(fmean(val)), percent(error)


def words(settings: Mapping[str, object], model: str, document: Document) -> str:
    """`layers 8, width 64, α 0.1, …`: what was searched; a switch is named where it is on."""
    searched = document["searched"].get(model, SHOWN)
    names = [name for name in SHOWN if name in settings and name in searched]
    told = {SHORT.get(name, name): settings[name] for name in names}
    return ", ".join(
        name if value is True else f"{name} {_short(value)}"
        for name, value in told.items()
        if value is not False
    )


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def importance_table(document: Document) -> Group:
    """The share of each setting in what sets the best trials apart."""
    model = document["winner"]["model"]
    if not document["importances"]:
        return Group(f"What mattered: too few trials of {model} to say")
    table = Table("setting", "share", "±", box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for one in document["importances"]:
        table.add_row(one["name"], f"{one['share']:.0%}", f"{one['error']:.0%}")
    return Group(f"What mattered among the settings of {model} (share in the best tenth)", table)


def draw_study(document: Document) -> Figure:
    """Left: the score of each trial and the best so far; right: what mattered."""
    drawing = figure(2)
    left, right = drawing.axes
    trials = sorted(document["trials"], key=lambda trial: trial["number"])
    styles = styles_of(trial["model"] for trial in trials)
    _draw_trials(left, document, trials, styles)
    _draw_importances(right, document, styles[document["winner"]["model"]].colour)
    shared_legend(drawing)
    return drawing


def _draw_trials(
    axes: Axes, document: Document, trials: list[Document], styles: Mapping[str, LineStyle]
) -> None:
    scored = [trial for trial in trials if trial["outcome"] != "lost"]
    for model in dict.fromkeys(trial["model"] for trial in scored):
        style = styles[model]
        for outcome, face in (("complete", style.colour), ("given up", "none")):
            own = [one for one in scored if (one["model"], one["outcome"]) == (model, outcome)]
            x, y = [one["number"] for one in own], [100 * fmean(one["val"]) for one in own]
            label = model if outcome == "complete" else None
            axes.scatter(
                x,
                y,
                s=18,
                label=label,
                marker=style.marker,
                edgecolors=style.colour,
                facecolors=face,
            )
    _draw_best(axes, [one for one in scored if one["outcome"] == "complete"])
    axes.set_xlabel("trial (hollow: given up early)")
    axes.set_ylabel(f"validation {document['measured']} in %")
    axes.set_title(f"{document['graph']}: {document['tried']} settings")


def _draw_best(axes: Axes, complete: list[Document]) -> None:
    if complete:
        scores = [100 * fmean(one["val"]) for one in complete]
        best = np.maximum.accumulate(scores)
        numbers = [one["number"] for one in complete]
        axes.step(numbers, best, where="post", color=GREY, label="best so far", zorder=0)
        low = float(np.percentile(scores, 10))
        span = max(best[-1] - low, 1.0)
        axes.set_ylim(low - 0.35 * span, best[-1] + 0.1 * span)


def _draw_importances(axes: Axes, document: Document, colour: str) -> None:
    shares = document["importances"][:MOST_BARS][::-1]
    axes.set_title(f"What mattered for {document['winner']['model']}")
    if not shares:
        axes.text(0.5, 0.5, "too few trials to say", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    names, values = [one["name"] for one in shares], [100 * one["share"] for one in shares]
    errors = [100 * one["error"] for one in shares]
    axes.barh(names, values, xerr=errors, color=colour, alpha=0.8, ecolor=GREY, capsize=2)
    axes.set_xlabel("share in what sets the best tenth apart, in %")
