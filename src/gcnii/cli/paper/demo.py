"""gcnii demo: over-smoothing, and GCNII without it, on the built-in digits graph."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table

from gcnii.cli.console import table_console
from gcnii.cli.options import Device, Json, print_json, refuse_unwritable
from gcnii.cli.progress import training_bar
from gcnii.metrics.objective import percent
from gcnii.paper.demo import EPOCHS, MAIN, STEPS, Step, run, sweeps
from gcnii.paper.report.figures.curves import draw_curves
from gcnii.train.result import Result

Results = dict[Step, Result]


def demo(
    *,
    out: Annotated[Path, Parameter(help="Where to write the bundle and curves.png.")] = Path(
        "runs/demo"
    ),
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Train GCNII and a plain GCN at 2 to 64 layers on the digits graph; print, plot and save what
    came out.
    """
    refuse_unwritable(out)
    results: Results = {}
    for step in STEPS:
        with training_bar(step.title, EPOCHS) as show:
            results[step] = run(step, device, show)
        if results[step].interrupted:
            raise KeyboardInterrupt
    results[MAIN[0]].save(out)
    draw_curves(
        out / "curves.png", {step.title: results[step] for step in MAIN}, dict(sweeps(results))
    )
    if json:
        tests = {step.title: result.summary()["test_mean"] for step, result in results.items()}
        print_json({"graph": "digits", "test": tests, "bundle": str(out)})
    else:
        _print(results, out)


def _print(results: Results, out: Path) -> None:
    table = Table(
        "model",
        "val",
        "test",
        "seconds",
        title="digits: 1,797 images, 20 labels a class; accuracy in %",
    )
    for step in MAIN:
        best = results[step].runs[0]
        table.add_row(step.title, percent(best.val), percent(best.test), f"{best.seconds:.1f}")
    for column in table.columns[1:]:
        column.justify = "right"
    table_console().print(table)
    shallow, deep, ours = (percent(results[step].test[0]) for step in (MAIN[1], MAIN[2], MAIN[0]))
    print(
        f"Over-smoothing: with 64 layers a GCN falls from {shallow} to {deep}, what guessing gives; "
        f"GCNII keeps {ours} at the same depth.\n"
        f"bundle {out}, plot {out / 'curves.png'}\n"
        f"Try next: gcnii train cora --runs 3, gcnii predict {quote(str(out))}, "
        "or gcnii train PATH with your own graph."
    )
