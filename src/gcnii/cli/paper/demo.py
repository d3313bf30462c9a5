"""gcnii demo: over-smoothing, and GCNII without it, on the built-in digits graph."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table

from gcnii.cli.options import Device, Json, print_json, refuse_unwritable
from gcnii.cli.terminal import table_console
from gcnii.metrics.objective import percent
from gcnii.paper.demo import MAIN, STEPS, Step, run, sweeps
from gcnii.paper.report.figures.curves import draw_curves
from gcnii.train.results.result import Result

Results = dict[Step, Result]
Folder = Annotated[Path, Parameter(help="A folder for the bundle and curves.png.")]


def demo(*, out: Folder = Path("runs/demo"), device: Device = "auto", json: Json = False) -> None:
    """Train GCNII and a plain GCN with 2 to 64 layers on digits; print, plot and save it."""
    refuse_unwritable(out)
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
