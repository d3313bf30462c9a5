"""gcnii demo: over-smoothing, and GCNII without it, on the built-in digits graph.

A plain GCN does well with 2 layers and guesses with 64; GCNII does as well with 64 as with 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from cyclopts import Parameter
from rich.table import Table

from gcnii.cli.options import Device, Json, print_json, refuse_unwritable
from gcnii.cli.terminal import table_console
from gcnii.data import load
from gcnii.files import refuse_replacing
from gcnii.report.figures import LineStyle, depth_axis, figure, is_figure, save, styles_of
from gcnii.results.fit import Session, fit_plans
from gcnii.results.result import Result
from gcnii.targets.scores import percent
from gcnii.train.plan import make_plan
from gcnii.train.presets import preset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEPTHS = (2, 4, 8, 16, 32, 64)
GRAPH = "digits"
EPOCHS = 60  # enough for every depth: the validation loss of GCNII is flat by then


class Step(NamedTuple):
    """One training of the demo."""

    model: str
    layers: int

    @property
    def title(self) -> str:
        """Its name in the table."""
        return f"{NAMES[self.model]}, {self.layers} layers"


NAMES = {"gcnii": "GCNII", "deep-gcn": "GCN"}
STEPS = tuple(Step(model, layers) for layers in DEPTHS[::-1] for model in NAMES)
MAIN = (Step("gcnii", 64), Step("deep-gcn", 2), Step("deep-gcn", 64))  # the rows of the table
Results = dict[Step, Result]
Folder = Annotated[Path, Parameter(help="A folder for the bundle and curves.png.")]


def demo(*, out: Folder = Path("runs/demo"), device: Device = "auto", json: Json = False) -> None:
    """Train GCNII and a plain GCN with 2 to 64 layers on digits; print, plot and save it."""
    refuse_unwritable(out)
    refuse_replacing(out / "curves.png", is_figure)
    results = _train(device)
    results[MAIN[0]].save(out)
    curves = {step.title: results[step] for step in MAIN}
    draw_curves(out / "curves.png", curves, dict(sweeps(results)))
    if json:
        tests = {step.title: result.summary()["test_mean"] for step, result in results.items()}
        print_json({"graph": "digits", "test": tests, "bundle": str(out)})
    else:
        table_console().print(_table(results))
        print(_conclusion(results, out))


def _train(device: str) -> Results:
    results: Results = {}
    for step in STEPS:
        results[step] = run(step, device, verbose=None)
        if results[step].interrupted:
            raise KeyboardInterrupt
    return results


def _table(results: Results) -> Table:
    title = "digits: 1,797 images, 20 labels per class; accuracy in %"
    table = Table("model", "val", "test", "seconds", title=title)
    for step in MAIN:
        best = results[step].runs[0]
        table.add_row(step.title, percent(best.val), percent(best.test), f"{best.seconds:.1f}")
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _conclusion(results: Results, out: Path) -> str:
    ours, shallow, deep = (percent(results[step].test[0]) for step in MAIN)
    return (
        f"Over-smoothing: with 64 layers a GCN falls from {shallow} to {deep}, as good as a guess; "
        f"GCNII keeps {ours} at the same depth.\n"
        f"bundle {out}, plot {out / 'curves.png'}\n"
        f"Try next: gcnii train cora --runs 3, gcnii predict {quote(str(out))}, "
        "or gcnii train PATH with your own graph."
    )


def run(step: Step, device: str = "auto", verbose: bool | None = False) -> Result:
    """Train one of STEPS on `digits`; `verbose` as in `fit`."""
    settings = {"layers": step.layers, "epochs": EPOCHS}
    plan = make_plan(step.model, {**preset(GRAPH, step.model), **settings})
    session = Session(device=device, verbose=verbose, title=step.title)
    return fit_plans(load(GRAPH), [plan], session)


def sweeps(results: dict[Step, Result]) -> Iterator[tuple[str, list[Result]]]:
    """Each model's name, and its results in the order of DEPTHS."""
    for model, name in NAMES.items():
        yield name, [results[Step(model, layers)] for layers in DEPTHS]


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
