"""gcnii train: train a model on a graph and save it as a bundle."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table

from gcnii.cli.console import table_console
from gcnii.cli.flags import with_settings
from gcnii.cli.options import (
    Device,
    Directed,
    Json,
    Offline,
    load_graph,
    print_json,
    refuse_unwritable,
)
from gcnii.cli.progress import training_bar
from gcnii.data import fetch_neighbourhood
from gcnii.errors import InputError
from gcnii.metrics.objective import percent
from gcnii.train.fit import fit
from gcnii.train.plan import make_plan
from gcnii.train.result import Result

Source = Annotated[
    str, Parameter(help="A name of `gcnii data list`, or a folder with nodes.csv and edges.csv.")
]


@with_settings
def train(
    graph: Source = "digits",
    /,
    *,
    model: Annotated[str, Parameter(help="A name of `gcnii models`.")] = "gcnii",
    runs: Annotated[
        int | None,
        Parameter(help="Train so many seeds; by default one for each split of the graph."),
    ] = None,
    seed: Annotated[int, Parameter(help="The first seed.")] = 0,
    split: Annotated[
        int | None,
        Parameter(help="Train every seed on this split; else seed s takes split s mod n."),
    ] = None,
    device: Device = "auto",
    out: Annotated[
        Path | None, Parameter(help="The bundle's folder; by default runs/GRAPH-MODEL.")
    ] = None,
    json: Json = False,
    directed: Directed = False,
    offline: Offline = False,
    **settings: Any,
) -> None:
    """Train a model on a graph and save it as a bundle.

    A killed training goes on where it stopped when the same command is given again.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    data = load_graph(graph, directed=directed, offline=offline)
    plan = make_plan(model, given, data)
    fetch_neighbourhood(data.source, plan.recipe.geometry, offline)
    count = max(len(data.splits), 1) if runs is None else runs
    if count < 1 or seed < 0:
        raise InputError(f"--runs must be at least 1 and --seed at least 0, got {count} and {seed}")
    folder = out or Path("runs") / f"{data.name}-{model}"
    refuse_unwritable(folder)
    checkpoint = folder / "checkpoint.safetensors"
    with training_bar(f"{model} on {data.name}", plan.recipe.epochs) as show:
        result = fit(
            data,
            model,
            seeds=range(seed, seed + count),
            split=split,
            device=device,
            checkpoint=checkpoint,
            on_epoch=show,
            **given,
        )
    result.save(folder)
    if not result.interrupted:
        checkpoint.unlink(missing_ok=True)
    _print(result, folder, json)
    if result.interrupted:
        sys.exit(1)


def _print(result: Result, folder: Path, as_json: bool) -> None:
    if result.interrupted:
        again = "the bundle holds the best weights so far; the same command goes on from here"
        print(f"gcnii: stopped by Ctrl-C; {again}", file=sys.stderr)
    if as_json:
        print_json(result.summary() | {"bundle": str(folder)})
        return
    table_console().print(runs_table(result))
    print(
        f"\n{result!r}\nbundle: {folder}   (label nodes with: gcnii predict {quote(str(folder))})"
    )


def runs_table(result: Result) -> Table:
    """A row a run."""
    table = Table(
        "seed",
        "split",
        "val",
        "test",
        "best epoch",
        "epochs",
        "seconds",
        box=None,
        header_style="bold",
    )
    for column in table.columns:
        column.justify = "right"
    for run in result.runs:
        scores = (percent(run.val), percent(run.test))
        counts = (str(run.best_epoch + 1), str(run.epochs), f"{run.seconds:.1f}")
        table.add_row(str(run.seed), str(run.split), *scores, *counts)
    return table
