"""The terminal: tables on stdout, progress bars on stderr.

Tables are as wide as the terminal; in a file or a pipe, as wide as they need to be.  There are no
bars where stderr is not a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TransferSpeedColumn,
)
from rich.table import Table

from gcnii.train.callbacks.progress import make_progress

NARROW = 80  # columns; a narrower terminal wraps the lines itself, and no number is cut short
WIDE = 1000  # more than any table needs


def table_console(narrow: int = NARROW) -> Console:
    """A console on stdout that is `narrow` columns wide or more, and never wraps in a pipe."""
    console = Console(highlight=False)
    console.width = max(console.width, narrow) if console.is_terminal else WIDE
    return console


def plain_table(*heads: str, numbers: slice = slice(0)) -> Table:
    """A table without a frame; the columns in `numbers` are aligned right."""
    table = Table(*heads, box=None, header_style="bold")
    for column in table.columns[numbers]:
        column.justify = "right"
    return table


@contextmanager
def reading_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A callback with the name of a file, the bytes read and its size; the bar begins with it."""
    console = Console(stderr=True)
    hidden = not console.is_terminal
    columns = (TextColumn("reading {task.description}", markup=False), BarColumn(12))
    amounts = (TaskProgressColumn(), TransferSpeedColumn())
    with Progress(*columns, *amounts, console=console, disable=hidden, transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def show(name: str, read: int, size: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=size)
            progress.update(tasks[name], completed=read)

        yield show


@contextmanager
def counting_bar(title: str, steps: int) -> Iterator[Callable[[str], None]]:
    """A callback that advances by one of `steps` steps and shows the text that it is given."""
    console, count = Console(stderr=True), MofNCompleteColumn()
    hidden = not console.is_terminal
    with make_progress(console, title, count, f"{steps}/{steps}", disable=hidden) as progress:
        task = progress.add_task(title, total=steps, now="")

        def show(now: str) -> None:
            progress.update(task, advance=1, now=now)

        yield show
