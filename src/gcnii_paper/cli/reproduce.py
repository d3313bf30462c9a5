"""gcnii reproduce: the paper's tables and figures, ours beside the printed numbers.

Its further commands search settings that nobody has published, adopt the winners, measure what
`train` combines on graphs of one's own, and carry runs between a ledger and files.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from gcnii.cli.options import Device, Json, print_json, refuse_below_one, refuse_unwritable
from gcnii.errors import InputError, notice
from gcnii.files import Document
from gcnii_paper.tables import beyond, table1
from gcnii_paper.tables.printed import MANY, PER_SPLIT, SINGLE, UNJUDGED
from gcnii_paper.tables.registry import TITLES, cells_of, choose

if TYPE_CHECKING:
    from gcnii_paper.ledger import Ledger
    from gcnii_paper.search import Search
    from gcnii_paper.tables.cells import Cell, MeasuredCell

# torch takes seconds to import; --help and wrong usage are answered without it: hence imports below

CLOSING = 0.05  # share of a budget in which what was done is read again and printed

app = App(name="reproduce")
Jobs = Annotated[
    int,
    Parameter(
        help="Number of processes that work in parallel; pays on a GPU if training runs are small."
    ),
]
Table = Annotated[
    str,
    Parameter(
        help=f"{', '.join((table1.NAME, *TITLES))} or all; or {beyond.NAME}, which is not of the "
        "paper: our record settings beside the best known numbers."
    ),
]
Runs = Annotated[
    int | None,
    Parameter(
        help=f"Number of seeds per cell; default: what a verdict needs, which is {MANY} beside a "
        f"mean of {MANY} runs, {SINGLE} beside one run or an unknown number, {PER_SPLIT} for "
        f"each of ten splits, and {UNJUDGED} where there is no verdict (1 on a stand-in); in "
        f"{beyond.NAME} {beyond.RUNS_PUBLIC} on public splits, {beyond.RUNS_SPLITS} elsewhere."
    ),
]
LedgerFile = Annotated[
    Path | None,
    Parameter(
        name="--ledger", help="The file of finished runs; default: one in the user's data folder."
    ),
]


@app.default
def reproduce(
    table: Table,
    /,
    *,
    only: Annotated[str, Parameter(show_default=False)] = "",
    runs: Runs = None,
    device: Device = "auto",
    jobs: Jobs = 1,
    ledger: LedgerFile = None,
    missing: Annotated[bool, Parameter(negative=())] = False,
    budget: str | None = None,
    searches: Annotated[Path, Parameter(name="--searches")] = Path("results/search"),
    json: Json = False,
) -> None:
    """Run what is missing of a table or figure, and print it beside the paper's numbers.

    Parameters
    ----------
    only
        Only cells with this text in their name, such as cora or table2/gcnii/cora.
    missing
        Only what is missing: cells without runs and those with fewer than their verdict needs, the
        cheapest first. Settings that nobody published are searched for and adopted.
    budget
        With --missing: stop after this time, such as 20m. Nothing is lost; the same command goes
        on.
    searches
        With --missing: the folder that `search` writes.
    """
    if table == table1.NAME:
        _print_data_sets(only, json)
        return
    if missing:
        if runs is not None or jobs != 1:
            raise InputError("--missing takes neither --runs nor --jobs; leave them out")
        _print(_run_missing(table, only, ledger, searches, budget, device), json)
        return
    if budget is not None:
        raise InputError("--budget goes with --missing; add it, or leave --budget out")
    best = beyond.choose_best(only) if table == beyond.NAME else ()
    cells = _records_of(best) if best else choose(table, only)
    refuse_below_one(runs=runs, jobs=jobs)
    found = _run(cells, ledger, runs=runs, device=device, jobs=jobs)
    if best:
        _print_beyond(best, [*found, *_plain(best, ledger)], json)
    else:
        _print(found, json)


def _print_data_sets(only: str, as_json: bool) -> None:
    """Table 1: what the data sets hold, beside what the paper says."""
    from gcnii.cli.terminal import table_console
    from gcnii_paper.documents import Part

    found = table1.rows(only=only)
    if as_json:
        print_json({"rows": [row.document() for row in found]})
        return
    part = Part("", table1.HEADS, (row.words for row in found))
    drawn = part.terminal()
    notes = (f"  {note}" for note in table1.notes_on(found))
    table_console(narrow=60).print(table1.TITLE, drawn, *notes, sep="\n")


def _records_of(chosen: Sequence[beyond.BestKnown]) -> list[Cell]:
    """The cells of the data sets that have a record."""
    names = {best.cell for best in chosen}
    return [cell for cell in cells_of(beyond.NAME) if cell.id in names]


def _plain(chosen: Sequence[beyond.BestKnown], ledger: Path | None) -> list[MeasuredCell]:
    """What the ledger has of the paper's GCNII on the data sets that have a record."""
    from gcnii_paper.ledger import measured

    held = {cell.graph for cell in _records_of(chosen)}
    names = {best.plain for best in chosen if best.graph in held}
    with _open(ledger) as book:
        return [measured(cell, book) for cell in cells_of("all") if cell.id in names]


def _print_beyond(
    chosen: Sequence[beyond.BestKnown], found: Sequence[MeasuredCell], as_json: bool
) -> None:
    from gcnii.cli.terminal import table_console
    from gcnii_paper.report.markdown import as_json as document
    from gcnii_paper.standing import RULE, beyond_rows, notes_on, terminal_table

    rows = beyond_rows(found, chosen)
    if as_json:
        print_json({"rows": [row.document() for row in rows], "rule": RULE} | document(found))
        return
    console = table_console(narrow=60)
    console.print(
        terminal_table(rows), *(f"  {note}" for note in (*notes_on(rows), RULE)), sep="\n"
    )


def _run(
    cells: Sequence[Cell], ledger: Path | None, *, runs: int | None, device: str, jobs: int
) -> list[MeasuredCell]:
    from gcnii.train.hardware import choose_device
    from gcnii_paper.ledger import measured
    from gcnii_paper.reproduce import reproduce as run

    choose_device(device)  # refuses an unknown one before a ledger is made
    with _open(ledger) as book, _says_what_is_kept(f"{book.path} keeps every finished run"):
        if jobs == 1:
            run(cells, book, runs=runs, device=device, verbose=None)
        else:
            _run_parallel(cells, book.path, runs=runs, device=device, jobs=jobs)
        return [measured(cell, book) for cell in cells]


def _run_missing(
    table: str, only: str, ledger: Path | None, searches: Path, budget: str | None, device: str
) -> list[MeasuredCell]:
    """Do what fits into the budget; the cells that have new runs."""
    start = time.monotonic()
    from gcnii.train.hardware import choose_device
    from gcnii.tuning.portfolio import seconds_of
    from gcnii_paper.ledger import measured
    from gcnii_paper.reproduce import Shift, about, lacking, total_seconds
    from gcnii_paper.tables.registry import FILE

    if table == beyond.NAME:
        raise InputError(f"--missing is for the paper's tables, not for {beyond.NAME}")
    cells = choose(table, only)
    until = start + (1 - CLOSING) * (seconds_of(budget) if budget else inf)
    choose_device(device)  # refuses an unknown one before a ledger is made
    tell = partial(print, file=sys.stderr, flush=True)
    with _open(ledger) as book, _says_what_is_kept(f"{book.path} keeps every finished run"):
        lacks = lacking(cells, book, searches, device)
        tell(f"missing: {len(lacks)} cells, {about(total_seconds(lacks))}; in this order:")
        for lack in lacks:
            tell(f"  {lack}")
        shift = Shift(book, searches, FILE, device, until, None)
        done = list(shift.work(lacks, tell))
        left = lacking(cells, book, searches, device)
        tell(f"left: {len(left)} cells, {about(total_seconds(left))}")
        return [measured(cell, book) for cell in done]


def _run_parallel(
    cells: Sequence[Cell], ledger: Path, *, runs: int | None, device: str, jobs: int
) -> None:
    from gcnii.cli.terminal import counting_bar
    from gcnii.parallel import run_parallel
    from gcnii_paper.reproduce import reproduce_one

    one = partial(reproduce_one, ledger=ledger, runs=runs, device=device)
    with counting_bar("cells", len(cells)) as show:
        for cell, _ in run_parallel(one, cells, jobs):
            show(cell.id)


def _print(found: Sequence[MeasuredCell], as_json: bool) -> None:
    from gcnii.cli.terminal import table_console
    from gcnii_paper.report.markdown import as_json as document
    from gcnii_paper.report.markdown import reproduced_tables

    if as_json:
        print_json(document(found))
        return
    console = table_console(narrow=60)  # these tables adapt to narrow terminals
    for part in reproduced_tables(found):
        console.print(part)


@app.command(name="export")
def export_cells(*, out: Path = Path("results/cells"), ledger: LedgerFile = None) -> None:
    """Write every cell that has runs in the ledger to a file of its own.

    Parameters
    ----------
    out
        A folder for TABLE/CELL.json.
    """
    refuse_unwritable(out)
    from gcnii_paper.ledger import export_cells as export

    path = _path(ledger)
    if not path.exists():
        raise InputError(
            f"{path} does not exist; give --ledger the file that `gcnii reproduce` wrote"
        )
    with _open(path) as book:
        files = export(book, _every_cell(), out)
    print(f"{len(files)} cells in {out}")


@app.command(name="import")
def import_runs(folder: Path, /, *, ledger: LedgerFile = None) -> None:
    """Add runs from files to the ledger, if they were measured exactly as a cell's are.

    Parameters
    ----------
    folder
        A folder of `export`, or of the output of `gcnii train --json`.
    """
    _refuse_not_a_folder(folder, "gcnii reproduce export")
    from gcnii_paper.ledger import find_runs

    if not any(folder.rglob("*.json")):
        raise InputError(
            f"{folder} holds no JSON document; give the folder that `gcnii reproduce export` wrote"
        )
    found = find_runs(_every_cell(), folder)  # before a ledger is made: may refuse
    with _open(ledger) as book:
        print(f"{book.record_all(found.runs)} new runs in {book.path}")
    if found.strangers:
        left_out = f"documents left out because they match no cell of the tables: {found.strangers}"
        warnings.warn(left_out, stacklevel=2)


def _every_cell() -> tuple[Cell, ...]:
    return (*cells_of("all"), *cells_of(beyond.NAME))


def _path(ledger: Path | None) -> Path:
    from gcnii_paper.ledger import default_path

    return ledger or default_path()


def _open(ledger: Path | None) -> Ledger:
    from gcnii_paper.ledger import Ledger

    path = _path(ledger)
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a ledger; give --ledger a file")
    refuse_unwritable(path.parent, "--ledger")
    return Ledger(path)


def _refuse_not_a_folder(path: Path, command: str) -> None:
    """Raise InputError, naming the command that writes such a folder, if `path` is not one."""
    if not path.is_dir():
        raise InputError(f"{path} is not a folder; give the one that `{command}` wrote")


@contextmanager
def _says_what_is_kept(words: str) -> Iterator[None]:
    """On Ctrl-C, print `words` and exit with code 1."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"gcnii: stopped; {words}", file=sys.stderr)
        sys.exit(1)


@app.command
def search(
    name: str,
    /,
    *,
    trials: int = 30,
    budget: Annotated[int | None, Parameter(name="--budget", show=False)] = None,
    device: Device = "auto",
    jobs: Jobs = 1,
    out: Path = Path("results/search"),
) -> None:
    """Search settings for cells without published ones, by validation alone.

    Parameters
    ----------
    name
        A cell without published settings, or a text in the names of several.
    trials
        Number of settings to try, including those tried before.
    out
        A folder for NAME.json with every try.
    """
    if budget is not None:
        notice(f"--budget is called --trials now; use --trials {budget}")
        trials = budget
    refuse_below_one(trials=trials, jobs=jobs)
    refuse_unwritable(out)
    searches = _choose(name, device)
    with _says_what_is_kept(f"{out} keeps every finished try"):
        for record in _search_records(searches, out, trials=trials, device=device, jobs=jobs):
            print(f"{record['search']}: {_outcome(record)}")


def _choose(name: str, device: str) -> list[Search]:
    from gcnii.train.hardware import choose_device
    from gcnii.tuning.tune import require_optuna
    from gcnii_paper.search import choose_searches

    require_optuna("reproduce search")
    searches = choose_searches(name)
    choose_device(device)  # refuses an unknown one before a graph is fetched
    return searches


def _search_records(
    searches: Sequence[Search], folder: Path, *, trials: int, device: str, jobs: int
) -> Iterator[Document]:
    from gcnii.cli.terminal import counting_bar
    from gcnii.parallel import run_parallel
    from gcnii_paper.searching import run_search

    if jobs == 1:
        for chosen in searches:
            with counting_bar(chosen.name, trials) as show:
                record = run_search(chosen, folder, trials, device, show)
            yield record
        return
    one = partial(run_search, folder=folder, trials=trials, device=device)
    with counting_bar("searches", len(searches)) as show:
        for chosen, record in run_parallel(one, searches, jobs):
            show(chosen.name)
            yield record


def _outcome(record: Document) -> str:
    if not record["winner"]:
        return "no winner, every try failed"
    return f"{json.dumps(record['winner'])}, best of {record['budget']} by validation"


@app.command
def adopt(folder: Path = Path("results/search"), /, *, out: Path | None = None) -> None:
    """Use the best settings of finished searches in the tables' cells; keep all others.

    Parameters
    ----------
    folder
        The folder that `search` wrote.
    out
        The file to add them to; default: the one that the cells read.
    """
    _refuse_not_a_folder(folder, "gcnii reproduce search")
    from gcnii_paper.search import adopt as adopt_winners
    from gcnii_paper.tables.registry import ENOUGH, FILE

    file = out or FILE
    found, adopted = adopt_winners(folder, file)
    print(f"{found} winners of at least {ENOUGH} tries adopted; {file} holds {adopted}")


@app.command(name="adopt-record")
def adopt_record(
    *studies: Path, out: Path | None = None, keep: Path = Path("results/beyond/studies")
) -> None:
    """Make the winners of studies of `gcnii tune` the record settings of their data sets.

    Give all studies of a data set at once: the best by validation wins, and all their settings
    count as tried.

    Parameters
    ----------
    studies
        A study.json of `gcnii tune`, or its folder.
    out
        The file to add them to; default: the one that --preset record reads.
    keep
        A folder for copies of the studies.
    """
    if not studies:
        raise InputError("give at least one study.json that `gcnii tune` wrote, or its folder")
    from gcnii.train.presets import FILE
    from gcnii_paper.search import adopt_studies

    file = out or FILE
    refuse_unwritable(keep, "--keep")
    refuse_unwritable(file.parent)
    for name, record in adopt_studies(studies, file, keep).items():
        best = f"by validation ({100 * record.val:.1f}) the best of {record.tried} settings"
        print(f"{name}: {record.model}, {best}")
    print(f"{file} holds them; measure them with: gcnii reproduce beyond")


@app.command
def defaults(
    *,
    only: Annotated[str, Parameter(show_default=False)] = "",
    data: Path | None = None,
    kept: Annotated[Path | None, Parameter(show_default=False)] = None,
    device: Device = "auto",
    out: Path = Path("results/defaults"),
) -> None:
    """Train every model that `train` combines on a graph of one's own, on twenty graphs.

    Parameters
    ----------
    only
        Only graphs with this text in their name.
    data
        A folder with facebook.npz, humango.npz, cora-ml.npz and twitch-engb.npz, which the catalog
        does not have; without it they are not measured.
    kept
        A folder for the probabilities of every member; what it holds is not trained again. Default:
        one in the user's data folder.
    out
        A folder for GRAPH.json.
    """
    refuse_unwritable(out)
    if data:
        _refuse_not_a_folder(data, "a download of these files")
    from platformdirs import user_data_path

    from gcnii.train.hardware import choose_device
    from gcnii_paper.defaults import GRAPHS, defaults_tables, judge, measure, read_defaults

    names = [name for name in GRAPHS if only in name]
    if not names:
        raise InputError(f"no graph has {only!r} in its name; known: {', '.join(GRAPHS)}")
    choose_device(device)  # refuses an unknown one before a graph is loaded
    folder = kept or user_data_path("gcnii") / "defaults"
    told = partial(print, file=sys.stderr, flush=True)
    measure(folder, names, data=data, device=device, told=told)
    judge(folder, out, GRAPHS)
    print(defaults_tables(read_defaults(out)), end="")
