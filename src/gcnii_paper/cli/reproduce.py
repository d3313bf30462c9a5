"""gcnii reproduce: the paper's tables and figures, ours beside the printed numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from gcnii.cli.options import Device, Json, print_json, refuse_below_one, refuse_unwritable
from gcnii.errors import InputError
from gcnii_paper.cli.options import Jobs, refuse_not_a_folder, says_what_is_kept
from gcnii_paper.tables import beyond
from gcnii_paper.tables.registry import TITLES, cells_of, choose

# torch takes seconds to import; --help and wrong usage are answered without it: hence imports below
if TYPE_CHECKING:
    from gcnii_paper.ledger.ledger import Ledger
    from gcnii_paper.tables.cells import Cell, MeasuredCell

app = App(name="reproduce")
app.command(
    "gcnii_paper.cli.search:search",
    name="search",
    help="Search settings for cells without published ones, by validation alone.",
)
app.command(
    "gcnii_paper.cli.search:adopt",
    name="adopt",
    help="Use the best settings of finished searches in the tables' cells.",
)
app.command(
    "gcnii_paper.cli.search:adopt_record",
    name="adopt-record",
    help="Make the winners of studies of `gcnii tune` the record settings of their data sets.",
)
app.command(
    "gcnii_paper.cli.defaults:defaults",
    name="defaults",
    help="The default for graphs without published settings: measure what is missing, and choose.",
)

Table = Annotated[
    str,
    Parameter(
        help=f"{', '.join(TITLES)} or all; or {beyond.NAME}, which is not of the paper: our record "
        "settings beside the best known numbers."
    ),
]
Only = Annotated[
    str,
    Parameter(
        show_default=False,
        help="Only cells with this text in their name, such as cora or table2/gcnii/cora.",
    ),
]
Runs = Annotated[
    int | None,
    Parameter(
        help="Number of seeds per cell; default: 100 in Table 2, 3 on PPI (1 on its stand-in), "
        f"10 elsewhere; in {beyond.NAME} {beyond.RUNS_PUBLIC} on public splits, "
        f"{beyond.RUNS_SPLITS} elsewhere."
    ),
]
LedgerFile = Annotated[
    Path | None,
    Parameter(
        name="--ledger", help="The file of finished runs; default: one in the user's data folder."
    ),
]
CellsFolder = Annotated[Path, Parameter(help="A folder for TABLE/CELL.json.")]
Documents = Annotated[
    Path, Parameter(help="A folder of `export`, or of the output of `gcnii train --json`.")
]


@app.default
def reproduce(
    table: Table,
    /,
    *,
    only: Only = "",
    runs: Runs = None,
    device: Device = "auto",
    jobs: Jobs = 1,
    ledger: LedgerFile = None,
    json: Json = False,
) -> None:
    """Run what is missing of a table or figure, and print it beside the paper's numbers."""
    best = beyond.choose_best(only) if table == beyond.NAME else ()
    cells = _records_of(best) if best else choose(table, only)
    refuse_below_one("--runs", runs)
    refuse_below_one("--jobs", jobs)
    found = _run(cells, ledger, runs=runs, device=device, jobs=jobs)
    if best:
        _print_beyond(best, [*found, *_plain(best, ledger)], json)
    else:
        _print(found, json)


def _records_of(chosen: Sequence[beyond.BestKnown]) -> list[Cell]:
    """The cells of the data sets that have a record."""
    names = {best.cell for best in chosen}
    return [cell for cell in cells_of(beyond.NAME) if cell.id in names]


def _plain(chosen: Sequence[beyond.BestKnown], ledger: Path | None) -> list[MeasuredCell]:
    """What the ledger has of the paper's GCNII on the data sets that have a record."""
    from gcnii_paper.ledger.ledger_io import measured

    held = {cell.graph for cell in _records_of(chosen)}
    names = {best.plain for best in chosen if best.graph in held}
    with _open(ledger) as book:
        return [measured(cell, book) for cell in cells_of("all") if cell.id in names]


def _print_beyond(
    chosen: Sequence[beyond.BestKnown], found: Sequence[MeasuredCell], as_json: bool
) -> None:
    from gcnii.cli.terminal import table_console
    from gcnii_paper.report.beyond.rows import beyond_rows
    from gcnii_paper.report.beyond.standing import RULE
    from gcnii_paper.report.beyond.tables import notes_on, terminal_table
    from gcnii_paper.report.terminal import as_json as document

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
    from gcnii_paper.ledger.ledger_io import measured
    from gcnii_paper.reproduce import reproduce as run

    choose_device(device)  # refuses an unknown one before a ledger is made
    with _open(ledger) as book, says_what_is_kept(f"{book.path} keeps every finished run"):
        if jobs == 1:
            run(cells, book, runs=runs, device=device, verbose=None)
        else:
            _run_parallel(cells, book.path, runs=runs, device=device, jobs=jobs)
        return [measured(cell, book) for cell in cells]


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
    from gcnii_paper.report.terminal import as_json as document
    from gcnii_paper.report.terminal import reproduced_tables

    if as_json:
        print_json(document(found))
        return
    console = table_console(narrow=60)  # these tables adapt to narrow terminals
    for part in reproduced_tables(found):
        console.print(part)


@app.command(name="export")
def export_cells(*, out: CellsFolder = Path("results/cells"), ledger: LedgerFile = None) -> None:
    """Write every cell that has runs in the ledger to a file of its own."""
    refuse_unwritable(out)
    from gcnii_paper.ledger import ledger_io

    path = _path(ledger)
    if not path.exists():
        raise InputError(
            f"{path} does not exist; give --ledger the file that `gcnii reproduce` wrote"
        )
    with _open(path) as book:
        files = ledger_io.export_cells(book, _every_cell(), out)
    print(f"{len(files)} cells in {out}")


@app.command(name="import")
def import_runs(folder: Documents, /, *, ledger: LedgerFile = None) -> None:
    """Add runs from files to the ledger, if they were measured exactly as a cell's are."""
    refuse_not_a_folder(folder, "gcnii reproduce export")
    from gcnii_paper.ledger import ledger_io

    if not any(folder.rglob("*.json")):
        raise InputError(
            f"{folder} holds no JSON document; give the folder that `gcnii reproduce export` wrote"
        )
    found = ledger_io.find_runs(_every_cell(), folder)  # before a ledger is made: may refuse
    with _open(ledger) as book:
        print(f"{book.record_all(found.runs)} new runs in {book.path}")
    if found.strangers:
        left_out = f"documents left out because they match no cell of the tables: {found.strangers}"
        warnings.warn(left_out, stacklevel=2)


def _every_cell() -> tuple[Cell, ...]:
    return (*cells_of("all"), *cells_of(beyond.NAME))


def _path(ledger: Path | None) -> Path:
    from gcnii_paper.ledger.ledger import default_path

    return ledger or default_path()


def _open(ledger: Path | None) -> Ledger:
    from gcnii_paper.ledger.ledger import Ledger

    path = _path(ledger)
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a ledger; give --ledger a file")
    refuse_unwritable(path.parent, "--ledger")
    return Ledger(path)
