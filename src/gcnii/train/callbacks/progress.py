"""The progress bar of a training: on stderr, or in the output of a notebook's cell."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from gcnii.files import one_line
from gcnii.train.callbacks.report import Callback, EpochReport

BAR = 12  # columns of the bar
FIXED = BAR + len("0:00:00") + 4  # columns of the bar, the time and the gaps between columns
READABLE = 12  # text in fewer columns is left out
REDRAW = 0.2  # seconds between two pictures in a notebook
EVERY = 15.0  # seconds between two lines where there is no bar


@contextmanager
def training_bar(title: str, epochs: int) -> Iterator[Callback]:
    """A callback for `fit`: counts up to `epochs` per run, and jumps when a run stops early.

    Where stderr is neither a terminal nor a notebook, the bar is printed once, at the end.
    """
    with make_progress(Console(stderr=True), title, TaskProgressColumn(), "100%") as progress:
        task = progress.add_task(title, total=epochs, now="")

        def show(now: EpochReport) -> None:
            running = min(len(now.measures), now.runs - now.runs_done)
            losses = f"train {now.train_loss:.3f}  val {now.val_loss:.3f}"
            progress.update(
                task,
                total=epochs * now.runs,
                completed=now.runs_done * epochs + min(now.epoch + 1, epochs) * running,
                now=f"{losses}  score {100 * now.val:.1f}",
            )
            if isinstance(progress, NotebookProgress):
                progress.redraw()

        yield show


@contextmanager
def lines_without_bar(now: Callable[[], str], *, hidden: bool = False) -> Iterator[None]:
    """Within, a plain line on stderr now and then, which says what `now` does.

    For where there is no bar, in a pipe or a file: nobody should wait for minutes without a word.
    """
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(EVERY):
            with suppress(Exception):  # a database may be away for a moment, or a pipe closed
                print(f"gcnii: {one_line(now())}", file=sys.stderr, flush=True)

    thread = threading.Thread(target=watch, daemon=True)
    if not hidden:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if not hidden:
            thread.join()


def make_progress(
    console: Console, title: str, count: ProgressColumn, longest: str, *, disable: bool = False
) -> Progress:
    """Title, bar, count (at most as long as `longest`), time left and, where it fits, `now`."""
    room = max(console.width - FIXED - len(longest), READABLE)
    rest = room - len(title)
    kind = NotebookProgress if console.is_jupyter and not disable else Progress
    return kind(
        _text("{task.description}", room),
        BarColumn(bar_width=BAR),
        count,
        TimeRemainingColumn(elapsed_when_finished=True),
        *([_text("{task.fields[now]}", rest)] if rest >= READABLE else []),
        console=console,
        disable=disable,
    )


def _text(what: str, width: int) -> TextColumn:
    return VisibleColumn(what, markup=False, table_column=Column(no_wrap=True, max_width=width))


class VisibleColumn(TextColumn):
    """Text of a bar on one line, with control characters as escapes: names are of the user's."""

    def render(self, task: Task) -> Text:
        """Rich's text."""
        shown = super().render(task)
        shown.plain = one_line(shown.plain)
        return shown


class NotebookProgress(Progress):
    """A bar in the output of a notebook's cell; rich's own would need ipywidgets."""

    def start(self) -> None:
        """Make a place in the output; rich refreshes it when a task is added."""
        from IPython.display import display

        self.handle = display(self._picture(), raw=True, display_id=True)

    def stop(self) -> None:
        """Draw the bar as it is at the end."""
        self.refresh()

    def refresh(self) -> None:
        """Draw the bar in its place."""
        self.handle.update(self._picture(), raw=True)
        self.drawn = time.monotonic()

    def redraw(self) -> None:
        """Draw the bar, unless it has just been drawn."""
        if time.monotonic() - self.drawn > REDRAW:
            self.refresh()

    def _picture(self) -> dict[str, str]:
        text = io.StringIO()
        plain = Console(file=text, width=self.console.width, color_system=None, force_jupyter=False)
        plain.print(self.get_renderable())
        return {"text/plain": text.getvalue().rstrip()}
