"""gcnii train: train a model on a graph and save it as a bundle."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table

from gcnii.cli.flags import with_settings
from gcnii.cli.options import (
    Device,
    Json,
    Offline,
    Quiet,
    Source,
    Tables,
    load_graph,
    print_json,
    refuse_unwritable,
)
from gcnii.cli.terminal import plain_table, table_console
from gcnii.errors import InputError
from gcnii.files import document_key
from gcnii.graph import Graph
from gcnii.metrics.objective import percent
from gcnii.train.callbacks.csv_log import CsvLog
from gcnii.train.callbacks.report import Callback
from gcnii.train.callbacks.tensorboard import TensorBoard
from gcnii.train.fit import fit_plan
from gcnii.train.plan import Plan, make_plan
from gcnii.train.results.result import Result, refuse_replacing

ModelName = Annotated[str, Parameter(help="A name from `gcnii models`.")]
Runs = Annotated[
    int | None,
    Parameter(help="Number of seeds (runs); default: one for each split of the graph."),
]
Seed = Annotated[int, Parameter(help="The first seed.")]
Split = Annotated[
    int | None,
    Parameter(
        help="Train every seed on this split; default: seed s on split s modulo their number."
    ),
]
Threads = Annotated[
    int | None,
    Parameter(help="CPU threads; default: one for small graphs, else as many as there are cores."),
]
Bundle = Annotated[
    Path | None, Parameter(help="Folder for the bundle; default: runs/GRAPH-MODEL-KEY.")
]
Log = Annotated[
    Path | None,
    Parameter(help="A .csv file for the loss and score of each epoch, as they come."),
]
TensorBoardFolder = Annotated[
    Path | None, Parameter(help="A folder for the same curves, to see with TensorBoard.")
]


@with_settings
def train(
    graph: Source = "digits",
    /,
    *,
    model: ModelName = "gcnii",
    runs: Runs = None,
    seed: Seed = 0,
    split: Split = None,
    device: Device = "auto",
    threads: Threads = None,
    out: Bundle = None,
    log: Log = None,
    tensorboard: TensorBoardFolder = None,
    json: Json = False,
    quiet: Quiet = False,
    tables: Tables | None = None,
    offline: Offline = False,
    **settings: object,
) -> None:
    """Train a model on a graph and save it as a bundle; the same command again resumes it."""
    if quiet:
        warnings.simplefilter("ignore")
    data = load_graph(graph, tables, offline=offline, quiet=quiet)
    plan = make_plan(model, _given(settings), data)
    seeds = _seeds(data, runs, seed)
    folder = out or _folder(data, plan)
    refuse_unwritable(folder)
    refuse_replacing(folder, data, plan)
    callbacks = _writers(folder, log, tensorboard)
    verbose = False if quiet else None
    training = partial(fit_plan, data, plan, seeds=seeds, split=split, device=device)
    training = partial(training, threads=threads, callbacks=callbacks, verbose=verbose)
    result = _fit(training, folder)
    _print(result, folder, json)
    if result.interrupted:
        sys.exit(1)


def _folder(graph: Graph, plan: Plan) -> Path:
    """runs/GRAPH-MODEL-KEY: another graph of this name, or other settings, have another folder."""
    key = document_key(plan.identity(graph))[:8]
    return Path("runs") / f"{graph.name}-{plan.model}-{key}"


def _given(settings: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if value is not None}


def _seeds(graph: Graph, runs: int | None, first: int) -> range:
    count = max(len(graph.splits), 1) if runs is None else runs
    if count < 1 or first < 0:
        raise InputError(
            f"--runs must be at least 1 and --seed at least 0, got {count} and {first}"
        )
    return range(first, first + count)


def _writers(bundle: Path, log: Path | None, tensorboard: Path | None) -> list[Callback]:
    """The writers of curves that are asked for; a bundle holds nothing but its own files."""
    for flag, path in (("--log", log), ("--tensorboard", tensorboard)):
        if path and bundle.absolute() in (path.absolute(), *path.absolute().parents):
            raise InputError(f"{path} is in the folder of the bundle; choose another {flag}")
        if path:
            refuse_unwritable(path.parent, flag)
    return [
        *([CsvLog(log)] if log else []),
        *([TensorBoard(tensorboard)] if tensorboard else []),
    ]


def _fit(training: Callable[..., Result], folder: Path) -> Result:
    """Train with a checkpoint in `folder`, and save the bundle there."""
    checkpoint = folder / "checkpoint.safetensors"
    result = training(checkpoint=checkpoint)
    result.save(folder)
    if not result.interrupted:
        checkpoint.unlink(missing_ok=True)
    return result


def _print(result: Result, folder: Path, as_json: bool) -> None:
    if result.interrupted:
        kept = "the bundle holds the best weights so far. Run the same command again to resume."
        print(f"gcnii: stopped by Ctrl-C; {kept}", file=sys.stderr)
    if as_json:
        print_json(result.summary() | {"bundle": str(folder)})
        return
    table_console().print(_runs_table(result))
    print(
        f"\n{result!r}\nbundle: {folder}   (label nodes with: gcnii predict {quote(str(folder))})"
    )


def _runs_table(result: Result) -> Table:
    """One row per run."""
    heads = ("seed", "split", "val", "test", "best epoch", "epochs", "seconds")
    table = plain_table(*heads, numbers=slice(None))
    for run in result.runs:
        scores = (percent(run.val), percent(run.test))
        counts = (str(run.best_epoch + 1), str(run.epochs), f"{run.seconds:.1f}")
        table.add_row(str(run.seed), str(run.split), *scores, *counts)
    return table
