"""gcnii train without a model, on a graph of your own: several models, combined."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.progress import MofNCompleteColumn
from rich.table import Table

from gcnii.cli.flags import RUNNING
from gcnii.cli.options import (
    SWITCH,
    Device,
    Json,
    Quiet,
    RestOffline,
    Threads,
    bundle_line,
    own_command,
    print_json,
    refuse_unwritable,
    seeds_of,
)
from gcnii.cli.terminal import counting_bar, say, table_console
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.nn.settings import Settings
from gcnii.report.tables import plain_table
from gcnii.results.bundle import (
    claimed_ensemble,
    ensemble_folder,
    finished_ensemble,
    save_claimed,
)
from gcnii.results.card import ShortForm, board, short_form
from gcnii.results.ensemble import REFIT, Ensemble
from gcnii.results.fit import Calibrate, Session
from gcnii.train.callbacks import lines_without_bar, make_progress
from gcnii.train.plan import AUTO
from gcnii.tuning.portfolio import Course, Effort, prepared
from gcnii.tuning.refit import ALL, budget_before, refit_folder, refitted

# Members that are no networks: label propagation, trees, and trees without the graph; of numbers,
# linear regression as well.
OTHERS = 3


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Running:
    """Flags of a training: how much is trained, where, and what is written and printed of it.

    Parameters
    ----------
    effort
        How much is trained where several models are combined; default: standard.
    budget
        How long that may take in all, such as 90s, 5m or 1h.
    refit
        Train the combined models once more on every label, those of the test nodes among them, into
        a second bundle for use; its scores are those that were measured before.
    runs
        Number of seeds (runs); default: one for each split of the graph.
    seed
        The first seed.
    split
        Train every seed on this split; default: seed s on split s modulo their number.
    out
        Folder for the bundle; default: runs/GRAPH-MODEL-KEY.
    overwrite
        Replace the bundle or the checkpoint of another training run in the folder, and any file at
        --log.
    calibrate
        Calibrate the probabilities by a temperature, on the validation nodes, or not. Labels do not
        change.
    log
        A .csv file for the loss and score of each epoch, written while it trains; or the word
        tensorboard, for a folder of that name beside the bundle; or mlflow, for a run.
    tensorboard
        A folder for the curves, to view in TensorBoard.
    explain_settings
        Print every setting in force and where its value comes from, and train nothing.
    """

    effort: Effort | None = None
    budget: str | None = None
    refit: Literal["all"] | None = None
    runs: int | None = None
    seed: int = 0
    split: Annotated[int | None, Parameter(group=RUNNING)] = None
    device: Device = "auto"
    threads: Threads = None
    out: Path | None = None
    overwrite: Annotated[bool, SWITCH, Parameter(group=RUNNING)] = False
    calibrate: Annotated[Calibrate, Parameter(group=RUNNING)] = "temperature"
    log: Annotated[str | None, Parameter(group=RUNNING)] = None
    tensorboard: Annotated[Path | None, Parameter(group=RUNNING)] = None
    explain_settings: Annotated[bool, SWITCH, Parameter(group=RUNNING)] = False
    json: Json = False
    quiet: Quiet = False
    offline: RestOffline = False


def asked_course(graph: Graph, given: Settings, how: Running, began: float) -> Course:
    """The portfolio that is asked for, to be trained; by default, a seed for each split or fold."""
    by_default = how.runs is None and how.seed == 0
    return prepared(
        graph,
        given,
        Session(device=how.device, threads=how.threads, offline=how.offline),
        effort=how.effort or "standard",
        budget=budget_before(how.refit, how.budget),
        seeds=None if by_default else seeds_of(graph, how.runs, how.seed),
        split=how.split,
        began=began,
    )


def combine(course: Course, how: Running) -> None:
    """Train the portfolio, save the ensemble as a bundle, and print the leaderboard."""
    graph = course.graph
    folder = how.out or ensemble_folder(graph.name, graph.fingerprint, course.settings)
    refuse_unwritable(folder)
    measured = _measured(course, folder, how)
    stopped, again = measured.interrupted, refit_folder(folder) if how.refit else None
    if again and not stopped:
        stopped = not _refit(measured, course, again, how)
    _print(measured, folder, None if stopped else again, how)
    if not (how.refit or stopped or how.json):
        print("To train on every label for use: the same command with --refit all.")
    if stopped:
        print("gcnii: stopped; run the same command again to resume.", file=sys.stderr)
        sys.exit(1)


def _measured(course: Course, folder: Path, how: Running) -> Ensemble:
    """The ensemble that the folder holds; if it has none, one that is trained and saved."""
    which = course.graph.fingerprint, course.settings
    with claimed_ensemble(folder, *which, overwrite=how.overwrite):
        found = None if how.overwrite else finished_ensemble(folder, *which)
        if found is not None:
            if not how.quiet:
                print(f"gcnii: {folder} holds this ensemble; nothing was trained", file=sys.stderr)
            return found.knowing(course.graph)
        with _members_bar(course, hidden=how.quiet) as show:
            ensemble = course.run(folder, show)
        save_claimed(ensemble, folder, overwrite=how.overwrite, command=own_command())
        return ensemble


def _refit(measured: Ensemble, course: Course, folder: Path, how: Running) -> bool:
    """Save the ensemble of members that are trained on every label; False if someone stops it."""
    graph, settings = course.graph, measured.settings | {REFIT: ALL}
    with claimed_ensemble(folder, graph.fingerprint, settings, overwrite=how.overwrite):
        count, title = len(measured.members), f"training on every label of {graph.name}"
        try:
            with counting_bar(title, count, hidden=how.quiet) as show:
                ensemble = refitted(measured, graph, course.session, folder, show)
        except KeyboardInterrupt:
            return False
        save_claimed(ensemble, folder, overwrite=how.overwrite, command=own_command())
        return True


@contextmanager
def _members_bar(course: Course, *, hidden: bool) -> Iterator[Callable[[str], None]]:
    """A callback with the name of what is trained now; trainings that are done are counted.

    First each member is trained once, then those that stay with the other folds held out.
    """
    title, console, begun = f"training {course.graph.name}", Console(stderr=True), list[str]()
    bar = make_progress(
        console, title, MofNCompleteColumn(), "99/99", disable=hidden or not console.is_terminal
    )

    def total() -> int:
        if len(set(begun)) == len(begun):
            others = OTHERS + bool(course.graph.targets)
            return max(len(course.points) + others, len(begun))
        return len(set(begun)) + len(course.members) * (len(course.layout) - 1)

    def said() -> str:
        return ", ".join([f"{title}: {max(len(begun) - 1, 0)} of {total()}", *begun[-1:]])

    with bar as progress, lines_without_bar(said, hidden=hidden or console.is_terminal):
        task = progress.add_task(title, total=total(), now="")

        def show(name: str) -> None:
            begun.append(name)
            progress.update(task, total=total(), completed=len(begun) - 1, now=name)

        yield show
        progress.update(task, completed=total())


def print_members(course: Course, source: str, how: Running) -> None:
    """The networks that would be trained, each with its settings.

    source  who chose a portfolio instead of one model: it is given, or the default
    """
    points = course.points.values()
    rows = [(point.name, point.model, {**point.settings, **course.given}) for point in points]
    if how.json:
        members = [dict(zip(("name", "model", "settings"), row, strict=True)) for row in rows]
        model = {"value": AUTO, "source": source}
        print_json({"graph": course.graph.name, "model": model, "members": members})
        return
    table = plain_table("member", "model", "settings", numbers=slice(0))
    for name, model_name, settings in rows:
        words = ", ".join(f"{setting} {value}" for setting, value in settings.items())
        table.add_row(name, model_name, words)
    table_console().print(table)


def _print(ensemble: Ensemble, folder: Path, again: Path | None, how: Running) -> None:
    """What was measured, and where the bundles of it and of a refit are."""
    from gcnii.inference.evaluate import graph_helps  # not for those who train one model

    short, labels = short_form(ensemble, how.device), not ensemble.origin.targets
    helps = graph_helps(ensemble, how.device) if labels else None
    if how.json:
        bundles = {"bundle": str(folder)} | ({"refit_bundle": str(again)} if again else {})
        helped = {"graph_helps": helps.document() if helps else None}
        print_json(ensemble.summary() | bundles | evaluation_of(short) | helped)
        return
    after = say_first(short)
    table_console().print(leaderboard_table(ensemble))
    for sentence in ensemble.left_out:
        say(f"{sentence}.")
    print(f"\n{ensemble!r}")
    for sentence in (*([helps.sentence] if helps else []), *after):
        say(sentence)
    print(bundle_line(again or folder))
    if again:
        print(f"It was trained on every label; {folder} is the bundle that was measured.")


def say_first(short: ShortForm | None) -> list[str]:
    """Say what comes before any table; return the sentences that come after it."""
    if short and short.first:
        say(short.first)
        print()
    return short.lines() if short else []


def evaluation_of(short: ShortForm | None) -> Document:
    """The short form in the JSON of a command."""
    return {"evaluation": short.document() if short else None}


def leaderboard_table(ensemble: Ensemble) -> Table:
    """One row per member, the ensemble last."""
    heads, rows = board(ensemble)
    table = plain_table(*heads, numbers=slice(2, None))
    table.title, table.title_justify = (
        f"validation {ensemble.measured}{ensemble.score.in_percent}",
        "left",
    )
    for name, sees, *numbers in rows:
        table.add_row(name, sees.replace("graph and features", "both"), *numbers)
    return table
