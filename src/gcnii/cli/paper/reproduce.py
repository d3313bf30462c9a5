"""gcnii reproduce: the paper's tables and figures, ours beside the printed numbers."""

from __future__ import annotations

import json as json_format
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from gcnii.cli.options import Device, Json, print_json, refuse_unwritable
from gcnii.errors import InputError
from gcnii.paper.tables.registry import TITLES, cells_of, choose

# torch takes seconds to import, which nobody waits for who asks for help or misspells a table:
# hence imports below.
if TYPE_CHECKING:
    from gcnii.paper.ledger.ledger import Ledger

app = App(
    name="reproduce",
    help="Run the paper's tables and figures, as far as they have not been run yet.",
)

Table = Annotated[str, Parameter(help=f"{', '.join(TITLES)} or all.")]
Only = Annotated[
    str,
    Parameter(help="Only cells with this word in their name, such as cora or table2/gcnii/cora."),
]
Jobs = Annotated[
    int,
    Parameter(
        help="How many to run at once, each in a process of its own; on a GPU, small ones pay."
    ),
]
LedgerFile = Annotated[
    Path | None,
    Parameter(
        name="--ledger", help="The file of finished runs; by default in the user's data folder."
    ),
]


@app.default
def reproduce(
    table: Table,
    /,
    *,
    only: Only = "",
    runs: Annotated[
        int | None,
        Parameter(
            help="Seeds a cell; by default 100 in Table 2, 10 elsewhere, 3 on PPI (1 on its stand-in)."
        ),
    ] = None,
    device: Device = "auto",
    jobs: Jobs = 1,
    ledger: LedgerFile = None,
    json: Json = False,
) -> None:
    """Run what is missing of a table or figure, keep each finished run, and print ours beside the
    paper's numbers.

    Stopped or killed, it goes on where it was when the same command is given again; two at once
    share the work.
    """
    cells = choose(table, only)
    if runs is not None and runs < 1:
        raise InputError(f"--runs must be at least 1, got {runs}")
    _refuse_no_jobs(jobs)
    from gcnii.cli.console import table_console
    from gcnii.cli.progress import counting_bar, training_bar
    from gcnii.paper.ledger.ledger_io import measured
    from gcnii.paper.parallel import run_parallel
    from gcnii.paper.report.terminal import as_json, reproduced_tables
    from gcnii.paper.reproduce import reproduce as run
    from gcnii.paper.reproduce import reproduce_one
    from gcnii.train.hardware import choose_device

    choose_device(device)  # refuses what is none, before there is a ledger
    with _open(ledger) as book:
        try:
            if jobs == 1:
                run(cells, book, runs=runs, device=device, watch=training_bar)
            else:
                one = partial(reproduce_one, ledger=book.path, runs=runs, device=device)
                with counting_bar(table, len(cells)) as show:
                    for cell, _ in run_parallel(one, cells, jobs):
                        show(cell.id)
        except KeyboardInterrupt:
            print(f"gcnii: stopped; {book.path} keeps every finished run", file=sys.stderr)
            sys.exit(1)
        found = [measured(cell, book) for cell in cells]
    if json:
        print_json(as_json(found))
        return
    console = table_console(narrow=60)  # these tables make themselves narrow
    for part in reproduced_tables(found):
        console.print(part)


@app.command(name="export")
def export_cells(
    *,
    out: Annotated[Path, Parameter(help="A folder for TABLE/CELL.json.")] = Path("results/cells"),
    ledger: LedgerFile = None,
) -> None:
    """Write every cell that has runs in the ledger to a file of its own."""
    refuse_unwritable(out)
    from gcnii.paper.ledger import ledger_io

    path = _path(ledger)
    if not path.exists():
        raise InputError(
            f"{path} does not exist; give --ledger the file of `gcnii reproduce`, which makes one"
        )
    with _open(path) as book:
        files = ledger_io.export_cells(book, cells_of("all"), out)
    print(f"{len(files)} cells in {out}")


@app.command(name="import")
def import_runs(
    folder: Annotated[
        Path, Parameter(help="A folder of `export`, or of what `gcnii train --json` printed.")
    ],
    /,
    *,
    ledger: LedgerFile = None,
) -> None:
    """Take runs from files into the ledger, where they were measured as a cell of the tables is."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; give the one that `gcnii reproduce export` wrote")
    from gcnii.paper.ledger import ledger_io

    if not any(folder.rglob("*.json")):
        raise InputError(
            f"{folder} holds no JSON document; give the folder that `gcnii reproduce export` wrote"
        )
    # and refuse what is wrong, before there is a ledger
    found = ledger_io.find_runs(cells_of("all"), folder)
    with _open(ledger) as book:
        print(f"{book.record_all(found.runs)} new runs in {book.path}")
    if found.strangers:
        warnings.warn(
            f"documents left out, as no cell of the tables is measured so: {found.strangers}",
            stacklevel=2,
        )


@app.command(name="search")
def search(
    name: Annotated[
        str, Parameter(help="A cell without published settings, or a word in the names of several.")
    ],
    /,
    *,
    budget: Annotated[int, Parameter(help="Tries, with those that are kept already.")] = 30,
    device: Device = "auto",
    jobs: Jobs = 1,
    out: Annotated[Path, Parameter(help="A folder for NAME.json with every try.")] = Path(
        "results/search"
    ),
) -> None:
    """Search settings that nobody published, at random, by validation alone."""
    if budget < 1:
        raise InputError(f"--budget must be at least 1, got {budget}")
    _refuse_no_jobs(jobs)
    refuse_unwritable(out)
    from gcnii.cli.progress import counting_bar
    from gcnii.paper.parallel import run_parallel
    from gcnii.paper.search.search import run_search
    from gcnii.paper.search.spaces import choose_searches
    from gcnii.train.hardware import choose_device

    def tell(record: dict[str, Any]) -> None:
        winner = (
            record["winner"]
            and f"{json_format.dumps(record['winner'])}, best of {record['budget']} by validation"
        )
        print(f"{record['search']}: {winner or 'no winner, every try failed'}")

    searches = choose_searches(name)
    choose_device(device)  # refuses what is none, before a graph is fetched
    try:
        if jobs == 1:
            for chosen in searches:
                with counting_bar(chosen.name, budget) as show:
                    record = run_search(chosen, out, budget, device, show)
                tell(record)
            return
        one = partial(run_search, folder=out, budget=budget, device=device)
        with counting_bar("searches", len(searches)) as show:
            for chosen, record in run_parallel(one, searches, jobs):
                show(chosen.name)
                tell(record)
    except KeyboardInterrupt:
        print(f"gcnii: stopped; {out} keeps every finished try", file=sys.stderr)
        sys.exit(1)


@app.command(name="adopt")
def adopt(
    folder: Annotated[Path, Parameter(help="The folder of `search`.")] = Path("results/search"),
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="A file for them; by default the one that the cells read.")
    ] = None,
) -> None:
    """Take the winners of the searches that have enough tries as settings of their cells; others
    stay as they are.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder; give the one that `gcnii reproduce search` wrote")
    from gcnii.files import write_document
    from gcnii.paper.search.search import winners
    from gcnii.paper.tables.searched import ENOUGH, FILE

    found, file = winners(folder), out or FILE
    if not found:
        raise InputError(
            f"{folder} has no winner of at least {ENOUGH} tries; go on with `gcnii reproduce search`"
        )
    adopted = _adopted(file) | found
    write_document(file, {name: dict(sorted(adopted[name].items())) for name in sorted(adopted)})
    print(
        f"{len(found)} winners of searches with at least {ENOUGH} tries; {file} holds {len(adopted)}"
    )


def _adopted(file: Path) -> dict[str, Any]:
    from gcnii.files import read_document

    return (
        read_document(file, {str: dict}, "file of adopted settings", dict) if file.exists() else {}
    )


def _refuse_no_jobs(jobs: int) -> None:
    if jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {jobs}")


def _path(ledger: Path | None) -> Path:
    from gcnii.paper.ledger.ledger import default_path

    return ledger or default_path()


def _open(ledger: Path | None) -> Ledger:
    from gcnii.paper.ledger.ledger import Ledger

    path = _path(ledger)
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a ledger; give --ledger a file")
    refuse_unwritable(path.parent, "--ledger")
    return Ledger(path)
