"""gcnii tune: search the settings that are best for a graph, and save the result as a bundle."""

from __future__ import annotations

import shlex
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gcnii.analysis.report import draw_study, importance_table, trial_table
from gcnii.cli.flags import rest, with_settings
from gcnii.cli.options import (
    Device,
    Json,
    Quiet,
    RestOffline,
    RestTables,
    Several,
    Source,
    Threads,
    bundle_line,
    load_graph,
    print_json,
    refuse_below_one,
    refuse_unwritable,
    words_of,
)
from gcnii.cli.portfolio import evaluation_of, leaderboard_table, say_first
from gcnii.cli.terminal import table_console
from gcnii.errors import InputError, suggestion
from gcnii.files import Document, refuse_replacing
from gcnii.report.figures import is_figure, save
from gcnii.results.card import short_form
from gcnii.results.ensemble import Ensemble
from gcnii.results.fit import Session
from gcnii.targets.scores import METRICS, Metric
from gcnii.tuning.question import Question
from gcnii.tuning.tune import BUDGET, limits_of, require_optuna

if TYPE_CHECKING:
    from gcnii.tuning.closing import Tuned
    from gcnii.tuning.study import Tuner

PICTURE = "search.png"
NAMES = "names from `gcnii models`,"
MACHINES = rest(0, "If several machines search")
Budget = Annotated[
    str | None,
    Parameter(
        help="Time limit, including the final training, such as 90s, 10m or 2h; "
        f"default: {BUDGET}, unless --trials is given."
    ),
]


@with_settings
def tune(
    graph: Source = "digits",
    /,
    *,
    budget: Budget = None,
    trials: int | None = None,
    models: str | None = None,
    seeds: int | None = None,
    metric: str = "auto",
    storage: Annotated[str | None, Parameter(group=MACHINES)] = None,
    jobs: int = 1,
    slurm: Annotated[Several, Parameter(group=MACHINES, show_default=False)] = (),
    out: Path | None = None,
    device: Device = "auto",
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
    tables: RestTables = None,
    offline: RestOffline = False,
    **settings: object,
) -> None:
    """Search settings by validation, many at once; the same command again goes on.

    Parameters
    ----------
    trials
        Number of settings to try, including what `gcnii train` would train, which is always tried.
    models
        Names from `gcnii models`, separated by commas; mlp and gcn are always included. Default:
        gcnii-plus, gcnii-star, gcn, dropedge-gcn (where edges are of one type), graphsage-mean and
        mlp.
    seeds
        Runs per setting; default: 3, more where there are few labels.
    metric
        The metric to maximise on validation: auto, accuracy, f1, auc or ap.
    storage
        A database that several machines share, each running the same command, such as
        postgresql+psycopg://user@host/name; default: SQLite in the folder.
    jobs
        Number of processes that search in parallel.
    slurm
        KEY=VALUE: start the jobs as a Slurm job array with this option, such as partition=gpu; may
        be given several times.
    out
        Folder for the study and the bundle; default: runs/GRAPH-tune-KEY.
    """
    began = time.time()
    if quiet:
        warnings.simplefilter("ignore")
    require_optuna()
    from gcnii.tuning.study import Tuner

    refuse_below_one(trials=trials, seeds=seeds, jobs=jobs)
    limits = limits_of(budget, trials)
    options, measured = _options(slurm), _metric(metric)
    names = None if models is None else tuple(words_of(models, "--models", NAMES))
    fixed = {name: value for name, value in settings.items() if value is not None}
    data = load_graph(graph, tables, offline=offline, quiet=quiet)
    tuner = Tuner.of(
        Question.of(data, names, seeds, measured, fixed),
        storage=storage,
        jobs=jobs,
        slurm=options,
        out=out,
        session=Session(device=device, threads=threads, offline=offline),
        command=_own_words(storage),
    )
    refuse_unwritable(tuner.folder)
    refuse_replacing(tuner.folder / PICTURE, is_figure)
    try:
        tuned = tuner.run(*limits, verbose=False if quiet else None, began=began, lines=not quiet)
    except KeyboardInterrupt:
        print(f"gcnii: stopped; {_kept(tuner)}", file=sys.stderr)
        sys.exit(1)
    words = [graph, *(tables.words if tables else ()), "--settings", str(tuner.folder)]
    _save_and_print(tuned, tuner, shlex.join(["gcnii", "train", *words]), json, device)


def _own_words(storage: str | None) -> str:
    """This command, without the password of the storage."""
    from gcnii.tuning.storage import shown

    words = sys.argv[1:]
    if storage:
        words = [word.replace(storage, shown(storage)) for word in words]
    return shlex.join(["gcnii", *words])


def _save_and_print(tuned: Tuned, tuner: Tuner, command: str, as_json: bool, device: str) -> None:
    document, short = tuned.document(), short_form(tuned.result, device)
    picture = save(draw_study(document), tuner.folder / PICTURE)
    if as_json:
        about = {"bundle": str(tuner.folder), "picture": str(picture), "train": command}
        print_json(document | about | evaluation_of(short))
        return
    after = say_first(short)
    _print(tuned, document, [*tuned.lines(), *after])
    print(f"\n{bundle_line(tuner.folder)}")
    print(f"picture: {picture}")
    which = "best setting alone" if isinstance(tuned.result, Ensemble) else "winner again"
    print(f"train the {which}: {command}")


def _print(tuned: Tuned, document: Document, lines: list[str]) -> None:
    console = table_console()
    console.print(trial_table(document), "")
    console.print(importance_table(document), "")
    if isinstance(tuned.result, Ensemble):
        console.print(leaderboard_table(tuned.result), "")
    for line in lines:
        print(line)


def _kept(tuner: Tuner) -> str:
    """What there is after Ctrl-C."""
    try:
        done, best = tuner.so_far()
    except (InputError, OSError):  # it was stopped before there was anything
        done, best = 0, None
    found = f", the best {tuner.question.score.shown(best.score)} ({best.model})" if best else ""
    kept = "1 setting is" if done == 1 else f"{done} settings are"
    return f"{kept} kept{found}. Run the same command again to go on."


def _metric(name: str) -> Metric:
    if name in METRICS:
        return name
    raise InputError(f"no metric {name!r}; {suggestion(name, METRICS)}")


def _options(pairs: tuple[str, ...]) -> dict[str, str] | None:
    """--slurm KEY=VALUE … as a dictionary."""
    if not pairs:
        return None
    if wrong := [pair for pair in pairs if not pair.partition("=")[0] or "=" not in pair]:
        raise InputError(f"--slurm must be KEY=VALUE, such as partition=gpu, got {wrong[0]!r}")
    return {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
