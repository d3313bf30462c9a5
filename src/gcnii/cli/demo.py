"""gcnii demo: what a graph adds on the built-in customers, and what depth does on the digits.

Who leaves is told better by a customer's columns and calls than by the columns alone, and for one
customer it is said why.  Then GCNII and a plain GCN get 2 to 64 layers: the GCN does well with 2
and guesses with 64; GCNII does as well with 64 as with 2.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.table import Table

from gcnii.cli.options import Device, Json, print_json, refuse_unwritable
from gcnii.cli.terminal import say, table_console
from gcnii.data import load
from gcnii.files import Document, refuse_replacing
from gcnii.graph import Graph
from gcnii.report.figures import depth_axis, draw_line, figure, is_figure, save, styles_of
from gcnii.report.tables import plain_table
from gcnii.results.fit import Session, fit_plans
from gcnii.results.result import Result
from gcnii.targets.scores import percent
from gcnii.train.plan import Plan, make_plan
from gcnii.train.presets import preset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gcnii.inference.explain import Explanation

LEAVES = "leaves"  # a label of customers
SEEN = {"mlp": "columns alone (MLP)", "gcnii": "columns and calls (GCNII)"}
DEPTHS = (2, 4, 8, 16, 32, 64)
GIVEN: dict[str, object] = {}  # settings on customers: the defaults
EPOCHS = 60  # enough for every depth: the validation loss of GCNII is flat by then


class Step(NamedTuple):
    """One training of the second part."""

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


def demo(*, out: Path = Path("runs/demo"), device: Device = "auto", json: Json = False) -> None:
    """Show what a graph adds on customers, and what depth does on digits; save a bundle, a plot.

    Parameters
    ----------
    out
        A folder for the bundle and curves.png.
    """
    refuse_unwritable(out)
    refuse_replacing(out / "curves.png", is_figure)
    customers, digits = load("customers"), load("digits")
    both = {
        model: _trained(
            customers, make_plan(model, GIVEN, customers), f"customers, {title}", device
        )
        for model, title in SEEN.items()
    }
    why, before = _explained(both, customers, device)
    if not json:
        print(f"customers: {customers.n:,} of a phone company, and who calls whom; who leaves?")
        table_console().print(_table({SEEN[model]: both[model] for model in SEEN}, "seen"))
        say(f"By the columns alone, {why.node} {LEAVES} with a probability of {before:.3f}.")
        for sentence in why.sentences:
            say(sentence)
    results = {step: _trained(digits, _plan(digits, step), step.title, device) for step in STEPS}
    both["gcnii"].save(out)
    save(draw(results), out / "curves.png")
    if json:
        print_json(_document(both, why, results, out))
        return
    print("\ndigits: 1,797 images, each joined to those like it; 20 labels a class")
    table_console().print(_table({step.title: results[step] for step in MAIN}, "model"))
    say(_conclusion(results))
    print(f"plot: {out / 'curves.png'}\nbundle: {out}")
    print(f"Try next: gcnii report run {quote(str(out))}, or gcnii train FOLDER with your tables")


def _trained(graph: Graph, plan: Plan, title: str, device: str) -> Result:
    session = Session(device=device, verbose=None, title=title)
    result = fit_plans(graph, [plan], session, calibrate="temperature")
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def _plan(graph: Graph, step: Step) -> Plan:
    settings = {"layers": step.layers, "epochs": EPOCHS}
    return make_plan(step.model, {**preset(graph.name, step.model), **settings})


def _explained(both: dict[str, Result], graph: Graph, device: str) -> tuple[Explanation, float]:
    """Why the customer leaves on whom the two differ most, and how likely it seemed before."""
    assert graph.classes is not None
    assert graph.nodes is not None
    j = graph.classes.index(LEAVES)
    before, after = (both[model].predict_proba(graph, device=device)[:, j] for model in SEEN)
    i = int(np.where(graph.labelled, -1, after - before).argmax())
    why = both["gcnii"].explain(graph, node=graph.nodes[i], label=LEAVES)
    return why, float(before[i])


def _document(both: dict[str, Result], why: Explanation, results: Results, out: Path) -> Document:
    def tests(by_name: dict[str, Result]) -> Document:
        return {name: result.summary()["test_mean"] for name, result in by_name.items()}

    return {
        "customers": {"test": tests(both), "explained": why.document()},
        "digits": {"test": tests({step.title: one for step, one in results.items()})},
        "bundle": str(out),
        "plot": str(out / "curves.png"),
    }


def _table(results: dict[str, Result], head: str) -> Table:
    table = plain_table(head, "validation accuracy", "test accuracy", "seconds")
    for name, result in results.items():
        best = result.runs[0]
        table.add_row(name, percent(best.val), percent(best.test), f"{best.seconds:.1f}")
    return table


def _conclusion(results: Results) -> str:
    ours, shallow, deep = (percent(results[step].test[0]) for step in MAIN)
    return (
        f"Over-smoothing: with 64 layers a GCN falls from {shallow} to {deep}, no better than a "
        f"guess; GCNII keeps {ours} at the same depth."
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
