"""The terminal: tables on stdout, progress bars on stderr.

Tables are as wide as the terminal; in a file or a pipe, as wide as they need to be.  There are no
bars where stderr is not a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

from gcnii.files import visible

if TYPE_CHECKING:
    from gcnii.train.fit import EpochReport

NARROW = 80  # columns; a narrower terminal wraps the lines itself, and no number is cut short
WIDE = 1000  # more than any table needs
BAR = 12  # columns of the bar
FIXED = BAR + len("0:00:00") + 4  # columns of the bar, the time and the gaps between columns
READABLE = 12  # text in fewer columns is left out


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
def training_bar(title: str, epochs: int) -> Iterator[Callable[[EpochReport], None]]:
    """A callback for `fit`: counts up to `epochs` per run, and jumps when a run stops early."""
    with _progress(title, TaskProgressColumn(), "100%") as progress:
        task = progress.add_task(title, total=epochs, now="")

        def show(now: EpochReport) -> None:
            running = min(now.runs_now, now.runs - now.runs_done)
            losses = f"train {now.train_loss:.3f}  val {now.val_loss:.3f}"
            progress.update(
                task,
                total=epochs * now.runs,
                completed=now.runs_done * epochs + (now.epoch + 1) * running,
                now=f"{losses}  score {100 * now.val:.1f}",
            )

        yield show


@contextmanager
def counting_bar(title: str, steps: int) -> Iterator[Callable[[str], None]]:
    """A callback that advances by one of `steps` steps and shows the text that it is given."""
    with _progress(title, MofNCompleteColumn(), f"{steps}/{steps}") as progress:
        task = progress.add_task(title, total=steps, now="")

        def show(now: str) -> None:
            progress.update(task, advance=1, now=now)

        yield show


def _progress(title: str, count: ProgressColumn, longest: str) -> Progress:
    """Title, bar, count (at most as long as `longest`), time left and, where it fits, `now`."""
    console = Console(stderr=True)
    room = max(console.width - FIXED - len(longest), READABLE)
    rest = room - len(title)
    return Progress(
        _text("{task.description}", room),
        BarColumn(bar_width=BAR),
        count,
        TimeRemainingColumn(elapsed_when_finished=True),
        *([_text("{task.fields[now]}", rest)] if rest >= READABLE else []),
        console=console,
        disable=not console.is_terminal,
    )


def _text(what: str, width: int) -> TextColumn:
    return TextColumn(what, markup=False, table_column=Column(no_wrap=True, max_width=width))
