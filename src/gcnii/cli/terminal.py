"""The terminal: tables on stdout, progress bars on stderr.

Tables are as wide as the terminal; in a file or a pipe, as wide as they need to be.  Where stderr
is not a terminal, plain lines take the place of bars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from gcnii.errors import visible
from gcnii.train.callbacks import VisibleColumn, lines_without_bar, make_progress

NARROW = 80  # columns; a narrower terminal wraps the lines itself, and no number is cut short
WIDE = 1000  # more than any table needs


class _VisibleConsole(Console):
    """A console that shows control characters in a cell as escapes instead of obeying them."""

    def render_str(self, text: str, **how: Any) -> Text:
        """Rich's text of a string."""
        return super().render_str(visible(text), **how)


def table_console(narrow: int = NARROW) -> Console:
    """A console on stdout that is `narrow` columns wide or more, and never wraps in a pipe."""
    console = _VisibleConsole(highlight=False)
    console.width = max(console.width, narrow) if console.is_terminal else WIDE
    return console


def plain_table(*heads: str, numbers: slice = slice(0)) -> Table:
    """A table without a frame; the columns in `numbers` are aligned right."""
    table = Table(*heads, box=None, header_style="bold")
    for column in table.columns[numbers]:
        column.justify = "right"
    return table


@contextmanager
def reading_bar(*, hidden: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A callback with the name of a file, the bytes read and its size; it draws the bar."""
    console = Console(stderr=True)
    columns = (VisibleColumn("reading {task.description}", markup=False), BarColumn(12))
    amounts = (TaskProgressColumn(), TransferSpeedColumn())
    off = hidden or not console.is_terminal
    progress = Progress(*columns, *amounts, console=console, disable=off, transient=True)
    tasks: dict[str, TaskID] = {}

    def show(name: str, read: int, size: int) -> None:
        progress.start()  # with the first large file, not before
        if name not in tasks:
            tasks[name] = progress.add_task(name, total=size)
        progress.update(tasks[name], completed=read)

    try:
        yield show
    finally:
        progress.stop()


@contextmanager
def counting_bar(
    title: str, steps: int, *, hidden: bool = False
) -> Iterator[Callable[[str], None]]:
    """A callback that advances by one of `steps` steps and shows the text that it is given."""
    console, count = Console(stderr=True), MofNCompleteColumn()
    off, done = hidden or not console.is_terminal, list[str]()

    def said() -> str:
        return ", ".join([f"{title}: {len(done)} of {steps}", *(one for one in done[-1:] if one)])

    bar = make_progress(console, title, count, f"{steps}/{steps}", disable=off)
    with bar as progress, lines_without_bar(said, hidden=hidden or console.is_terminal):
        task = progress.add_task(title, total=steps, now="")

        def show(now: str) -> None:
            done.append(now)
            progress.update(task, advance=1, now=now)

        yield show
