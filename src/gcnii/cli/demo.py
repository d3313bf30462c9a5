"""gcnii demo: over-smoothing, and GCNII without it, on the built-in digits graph.

A plain GCN does well with 2 layers and guesses with 64; GCNII does as well with 64 as with 2.
"""

from __future__ import annotations

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
from gcnii.graph import Graph
from gcnii.report.figures import depth_axis, draw_line, figure, is_figure, save, styles_of
from gcnii.results.fit import Session, fit_plans
from gcnii.results.result import Result
from gcnii.targets.scores import percent
from gcnii.train.plan import make_plan
from gcnii.train.presets import preset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTHS = (2, 4, 8, 16, 32, 64)
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
    graph = load("digits")
    results = {step: _trained(graph, step, device) for step in STEPS}
    results[MAIN[0]].save(out)
    save(draw(results), out / "curves.png")
    if json:
        tests = {step.title: result.summary()["test_mean"] for step, result in results.items()}
        print_json({"graph": graph.name, "test": tests, "bundle": str(out)})
    else:
        table_console().print(_table(results))
        print(_conclusion(results, out))


def _trained(graph: Graph, step: Step, device: str) -> Result:
    settings = {"layers": step.layers, "epochs": EPOCHS}
    plan = make_plan(step.model, {**preset(graph.name, step.model), **settings})
    session = Session(device=device, verbose=None, title=step.title)
    result = fit_plans(graph, [plan], session)
    if result.interrupted:
        raise KeyboardInterrupt
    return result


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


def draw(results: Results) -> Figure:
    """Left: the losses of MAIN, by epoch.  Right: the test score of each model, by layers."""
    drawing = figure(2)
    left, right = drawing.axes
    styles = styles_of(step.title for step in MAIN)
    for step in MAIN:
        colour, _, dash = styles[step.title]
        train_loss, val_loss, _ = np.array(results[step].runs[0].curve).T
        left.plot(val_loss, color=colour, linestyle=dash, label=step.title)
        left.plot(train_loss, color=colour, linestyle=dash, alpha=0.3)
    title = "Training: validation loss (line), training loss (faint)"
    left.set(xlabel="epoch", ylabel="loss", title=title)
    left.legend(frameon=False)
    for model, style in styles_of(NAMES).items():
        sweep = [step for step in results if step.model == model]
        scores = [100 * results[step].test.mean() for step in sweep]
        draw_line(right, [step.layers for step in sweep], scores, style, NAMES[model])
    depth_axis(right, {step.layers for step in results})
    right.set(title="Accuracy against depth", ylim=(0, 102))
    right.legend(frameon=False, loc="lower left")
    return drawing
