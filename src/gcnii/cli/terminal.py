"""stdout and stderr: streams that are safe to print to, tables, progress bars.

Tables are as wide as the terminal; in a file or a pipe, as wide as they need to be, unless the
environment has COLUMNS.  Where stderr
is not a terminal, plain lines take the place of bars.  What goes to stderr is made visible where it
is printed: Rich's bars would be shown as escapes.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
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
from rich.text import Text

from gcnii.errors import visible
from gcnii.files import naming
from gcnii.report.tables import wrapped
from gcnii.train.callbacks import VisibleColumn, lines_without_bar, make_progress

# columns: in a narrower terminal the table of flags has no room for text, and its layout never ends
NARROWEST = 40
STDOUT = "the standard output"
LONGEST_WIDTH = 18  # digits of a width that is believed
WIDEST = 1000  # columns; a line of a table is padded to the width of the terminal


class NamedStream(io.TextIOWrapper):
    """A file or pipe as stdout, whose errors say so: those of other files have their own names."""

    def __init__(self, stream: io.TextIOWrapper):
        super().__init__(
            stream.buffer, stream.encoding, stream.errors, line_buffering=stream.line_buffering
        )
        self.stream = stream  # which closes the file when nobody has it any more

    def write(self, text: str) -> int:
        with naming(STDOUT):
            return super().write(text)

    def flush(self) -> None:
        with naming(STDOUT):
            super().flush()


class VisibleStream(io.TextIOWrapper):
    """A terminal that is shown control characters as escapes instead of obeying them.

    Rich, whose colours are such characters, writes to `rich_proxied_file` instead.
    """

    def __init__(self, stream: io.TextIOWrapper):
        escapes = stream.errors == "surrogateescape"  # which would let single bytes through
        errors = "backslashreplace" if escapes else stream.errors
        super().__init__(stream.buffer, stream.encoding, errors, line_buffering=True)
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write the text as `visible` makes it."""
        return super().write(visible(text))


def prepare_streams() -> None:
    """Open closed streams, limit the width, and show a terminal what it would obey."""
    _open_closed()
    _replace_unencodable()
    limit_width()
    if type(sys.stdout) is io.TextIOWrapper:
        sys.stdout = (VisibleStream if sys.stdout.isatty() else NamedStream)(sys.stdout)


def _open_closed() -> None:
    """Where the caller closed stdout or stderr, what is printed there goes nowhere.

    Python has None in their place, and the next file that is opened would get their number.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, io.TextIOWrapper(io.FileIO(nowhere, "w"), "utf-8"))


def _replace_unencodable() -> None:
    """Print `?` for what stdout cannot encode; in a C locale, where only odd bytes pass, too."""
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        narrow = stream.errors == "surrogateescape" and stream.encoding.lower() != "utf-8"
        if stream.errors == "strict" or narrow:
            stream.reconfigure(errors="replace")


def limit_width() -> None:
    """Assume NARROWEST to WIDEST columns, whatever the terminal or the environment says."""
    os.environ.pop("LINES", None)  # Rich stumbles over some that are not numbers, such as ²
    asked = os.environ.get("COLUMNS", "")
    if asked and not (asked.isascii() and asked.isdecimal() and len(asked) <= LONGEST_WIDTH):
        del os.environ["COLUMNS"]
    columns = shutil.get_terminal_size().columns
    if os.environ.get("COLUMNS") or not NARROWEST <= columns <= WIDEST:
        os.environ["COLUMNS"] = str(min(max(columns, NARROWEST), WIDEST))


NARROW = 80  # columns; a narrower terminal wraps the lines itself, and no number is cut short
WIDE = 1000  # more than any table needs


class _VisibleConsole(Console):
    """A console that shows control characters in a cell as escapes instead of obeying them."""

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(visible(text), **how)


def table_console(narrow: int = NARROW) -> Console:
    """A console on stdout that is `narrow` columns wide or more, and never wraps in a pipe."""
    console = _VisibleConsole(highlight=False)
    console.width = _width(console, narrow)
    return console


def _width(console: Console, narrow: int) -> int:
    """Of a terminal, or what COLUMNS says."""
    asked = console.is_terminal or os.environ.get("COLUMNS")
    return max(console.width, narrow) if asked else WIDE


def say(text: str, below: str = "") -> None:
    """Print sentences, wrapped between words where tables would be.

    below  what the lines after the first begin with
    """
    print(wrapped(text, table_console().width, below))


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
