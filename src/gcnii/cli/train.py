"""gcnii train: train a model on a graph and save it as a bundle."""

from __future__ import annotations

import hashlib
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
from cyclopts import Parameter
from rich.table import Table

import gcnii
from gcnii.cli.flags import RUNNING, with_settings
from gcnii.cli.options import (
    RestTables,
    Source,
    bundle_line,
    load_graph,
    own_command,
    print_json,
    refuse_unwritable,
    seeds_of,
)
from gcnii.cli.portfolio import (
    Running,
    asked_course,
    combine,
    evaluation_of,
    print_members,
    say_first,
)
from gcnii.cli.terminal import say, table_console
from gcnii.errors import InputError
from gcnii.files import CHECKPOINT, Document, document_key, refuse_replacing
from gcnii.graph import Graph, Piece
from gcnii.nn.settings import Settings
from gcnii.report.tables import plain_table
from gcnii.results.bundle import claimed_folder, run_folder, save_run
from gcnii.results.card import short_form
from gcnii.results.fit import Calibrate, Session, fit_plans, notice_limit
from gcnii.results.result import Result
from gcnii.train.callbacks import Callback, CsvLog, TensorBoard, is_log
from gcnii.train.distributed.world import joined, meeting, own_device, started
from gcnii.train.hardware import choose_device
from gcnii.train.plan import (
    Plan,
    Preset,
    chosen_model,
    combines,
    make_plan,
    source_of_model,
    warn_about,
    warn_of_idle,
)
from gcnii.train.recipe import in_force
from gcnii.train.stopping import Run, make_runs

MLFLOW = "mlflow"
BOARD = "tensorboard"  # the word of --log, and the folder beside the bundles
AS_USUAL = Running()


@with_settings
def train(
    graph: Source = "digits",
    /,
    *,
    model: Annotated[str | None, Parameter(show_default=False)] = None,
    study: Annotated[Path | None, Parameter(name="--settings")] = None,
    preset: Annotated[Preset, Parameter(group=RUNNING)] = "published",
    how: Running = AS_USUAL,
    tables: RestTables = None,
    **settings: object,
) -> None:
    """Train a model on a graph and save it as a bundle; the same command again resumes it.

    Parameters
    ----------
    model
        A name from `gcnii models`, or auto: several models, combined by weights that validation
        chooses. Default: auto on a graph without published settings, else gcnii, or the model of
        the record.
    study
        A folder of `gcnii tune`, or a bundle: train with its model and settings, except those that
        are given.
    preset
        Where settings that are not given come from: published, or the record, the best that
        `gcnii tune` has found for a data set, including the model.
    """
    rank, size = started()
    if how.quiet or rank > 0:  # rank 0 speaks for all
        how = replace(how, quiet=True)
        warnings.simplefilter("ignore")
    given, began = _given(settings), time.monotonic()

    def read() -> Graph:
        share = (rank, size)
        return load_graph(graph, tables, offline=how.offline, quiet=how.quiet, share=share)

    def plan(data: Graph) -> Plan:
        found = _plan(data, model, given, study, preset)
        warn_of_idle(found.recipe, given)
        return found

    data, alone = read() if size == 1 else None, bool(study or how.log or how.tensorboard)
    if data and combines(data, model, preset, given, one_training=alone):
        course = asked_course(data, given, how, began)
        if how.explain_settings:
            return print_members(course, source_of_model(model, preset), how)
        return combine(course, how)
    if how.effort or how.budget or how.refit:
        raise InputError(
            "--effort, --budget and --refit are for several models; leave out what asks for one, "
            "such as --model or --layers"
        )
    if how.explain_settings:
        return None if rank else _print_settings(data or read(), plan, how.json)
    return _train_one(lambda: data or read(), plan, how, study)


def _given(settings: Mapping[str, object]) -> Settings:
    return {name: value for name, value in settings.items() if value is not None}


def _train_one(
    read: Callable[[], Graph], make: Callable[[Graph], Plan], how: Running, study: Path | None
) -> None:
    """Train one model, in one process or in several that were started together."""
    rank, _ = started()
    where = own_device(choose_device(how.device))
    with ExitStack() as claim:  # of the folder, until the bundle is in it
        with joined(where) as world:
            with meeting(world) as given:
                data = read()
                plan, seeds = make(data), seeds_of(data, how.runs, how.seed)
                folder = how.out or run_folder(data, plan)
                own, writers = make_runs(data, seeds, how.split), list[Callback]()
                if rank == 0:  # who alone writes
                    refuse_unwritable(folder)
                    claim.enter_context(claimed_folder(folder, data, plan, own, how.overwrite))
                    writers = _writers(folder, data, how, study)
                if world:
                    given |= _compared(data, plan, own, folder, where.type, how.calibrate)
            session = Session(
                device=str(where),
                threads=how.threads,
                verbose=False if how.quiet else None,
                callbacks=writers,
                checkpoint=folder / CHECKPOINT,
                world=world,
                offline=how.offline,
            )
            result = fit_plans(data, [plan], session, seeds, how.split, how.calibrate)
        if rank == 0:  # the others have the same result
            _save_and_print(result, folder, how)
    if result.interrupted:
        sys.exit(1)


def _compared(
    graph: Graph, plan: Plan, runs: list[Run], folder: Path, device: str, calibrate: Calibrate
) -> Document:
    """What all processes of a training must have been given alike, by name.

    Digests stand for what is long; the graph's fingerprint is needed for the checkpoint anyway.
    """
    whole = hashlib.sha256(graph.fingerprint.encode())
    if graph.part is not None and not isinstance(graph, Piece):  # parts have a seal
        whole.update(graph.part.tobytes())
    return {
        "graph": whole.hexdigest()[:16],
        "the graph's classes": document_key({"names": graph.classes}),
        "the graph's features": document_key({"names": graph.features}),
        "the graph's parts": graph.whole.seal if isinstance(graph, Piece) else None,
        "model": plan.model,
        **in_force(plan.settings),
        "calibrate": calibrate,
        "seeds": [run.seed for run in runs],
        "splits": [run.split for run in runs],
        "output folder": os.path.abspath(folder),
        "version of gcnii": gcnii.__version__,
        "version of torch": torch.__version__.partition("+")[0],
        "device": device,
    }


def _plan(
    graph: Graph, model: str | None, given: Settings, study: Path | None, preset: Preset
) -> Plan:
    """What is given, over what a study has found, or over the preset."""
    if study is None:
        plan = make_plan(chosen_model(model, graph, preset), given, graph, preset)
        warn_about(graph, plan, given)
        source = source_of_model(model, preset)
        return replace(plan, sources={"model": source, **plan.sources})
    if preset == "record":
        raise InputError("--settings and --preset record both choose the settings; give one")
    from gcnii.tuning.question import winner_in  # few trainings need it

    found, settings = winner_in(study)
    if model not in (None, found):
        raise InputError(f"{study} holds settings of {found}, got --model {model}; leave it out")
    plan = make_plan(found, settings | given, graph)
    warn_about(graph, plan, given)
    of_study = {name: f"settings of {study}" for name in ("model", *settings) if name not in given}
    return replace(plan, sources={**plan.sources, **of_study})


def _print_settings(graph: Graph, make: Callable[[Graph], Plan], as_json: bool) -> None:
    """The settings in force, and what else was given, each with its source."""
    plan = make(graph)
    counts, sources = in_force(plan.settings), plan.sources
    shown = {
        name: value
        for name, value in plan.settings.items()
        if name in counts or sources[name] == "given"
    }
    if as_json:
        rows = {name: {"value": value, "source": sources[name]} for name, value in shown.items()}
        model = {"value": plan.model, "source": sources["model"]}
        print_json({"graph": graph.name, "model": model, "settings": rows})
        return
    table = plain_table("setting", "value", "source", numbers=slice(0))
    for name, value in {"model": plan.model, **shown}.items():
        table.add_row(name, str(value), sources[name])
    table_console().print(table)


def _writers(bundle: Path, graph: Graph, how: Running, study: Path | None) -> list[Callback]:
    """The writers of curves that are asked for; a bundle holds nothing but its own files.

    study  what is read for the settings, and not to be written over
    """
    log, tensorboard = how.log, how.tensorboard
    if log == BOARD:
        log, tensorboard = None, tensorboard or bundle.parent / BOARD / bundle.name
    table = None if log in (None, MLFLOW) else Path(log)
    if table and table.suffix != ".csv":
        raise InputError(
            f"--log must be a .csv file or one of the words {BOARD} and {MLFLOW}, got {log!r}"
        )
    for flag, path in (("--log", table), ("--tensorboard", tensorboard)):
        if path and bundle.absolute() in (path.absolute(), *path.absolute().parents):
            raise InputError(f"{path} is in the folder of the bundle; choose another {flag}")
        if path:
            refuse_unwritable(path.parent, flag)
    if table:
        refuse_replacing(table, is_log, inputs=[graph.source, study], overwrite=how.overwrite)
    return [
        *([CsvLog(table, overwrite=how.overwrite)] if table else []),
        *([TensorBoard(tensorboard)] if tensorboard else []),
        *(_mlflow(bundle.name) if log == MLFLOW else []),
    ]


def _mlflow(name: str) -> list[Callback]:
    from gcnii.mlflow import MlflowLog  # few trainings need it

    return [MlflowLog(name)]


def _save_and_print(result: Result, folder: Path, how: Running) -> None:
    notice_limit(result)
    try:
        saved = save_run(result, folder, overwrite=how.overwrite, command=own_command())
    except (OSError, InputError):
        _print(result, None, how)  # the scores are there, even if the disk is full
        raise
    if result.interrupted:
        kept = (
            "the bundle holds the best weights so far"
            if saved
            else f"{folder} keeps its old bundle"
        )
        print(f"gcnii: stopped; {kept}. Run the same command again to resume.", file=sys.stderr)
    _print(result, folder if saved else None, how)


def _print(result: Result, bundle: Path | None, how: Running) -> None:
    """The scores, and where the bundle is, if it was saved."""
    short = short_form(result, how.device)
    if how.json:
        about = {"bundle": str(bundle) if bundle else None}
        print_json(result.summary() | about | evaluation_of(short))
        return
    after = say_first(short)
    table_console().print(_runs_table(result))
    print(f"\n{result!r}")
    for line in after:
        say(line)
    if bundle:
        print(bundle_line(bundle))


def _runs_table(result: Result) -> Table:
    """One row per run."""
    heads = ("seed", "split", "val", "test", "best epoch", "epochs", "seconds")
    table = plain_table(*heads, numbers=slice(None))
    score = result.score
    table.title, table.title_justify = f"{result.measured}{score.in_percent}", "left"
    for run in result.runs:
        scores = (score.shown(run.val), score.shown(run.test))
        counts = (str(run.best_epoch), str(run.epochs), f"{run.seconds:.1f}")
        table.add_row(str(run.seed), str(run.split), *scores, *counts)
    return table
