"""Progress bars, on stderr; there are none where stderr is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
from rich.table import Column

from gcnii.train.fit import EpochReport

BAR = 12  # columns of the bar
FIXED = BAR + len("0:00:00") + 4  # of what is always there beside the count, and the gaps
READABLE = 12  # fewer columns than this say nothing


@contextmanager
def training_bar(title: str, epochs: int) -> Iterator[Callable[[EpochReport], None]]:
    """A callback for `fit`; the bar counts epochs up to `epochs` a run, and jumps when runs stop
    early.
    """
    with _progress(title, TaskProgressColumn(), "100%") as progress:
        task = progress.add_task(title, total=epochs, now="")

        def show(now: EpochReport) -> None:
            progress.update(
                task,
                total=epochs * now.runs,
                completed=now.runs_done * epochs
                + (now.epoch + 1) * (min(now.runs_now, now.runs - now.runs_done)),
                now=f"train {now.train_loss:.3f}  val {now.val_loss:.3f}  score {100 * now.val:.1f}",
            )

        yield show


@contextmanager
def counting_bar(title: str, steps: int) -> Iterator[Callable[[str], None]]:
    """A callback that says what the next of `steps` steps is."""
    with _progress(title, MofNCompleteColumn(), f"{steps}/{steps}") as progress:
        task = progress.add_task(title, total=steps, now="")

        def show(now: str) -> None:
            progress.update(task, advance=1, now=now)

        yield show


def _progress(title: str, how_far: ProgressColumn, longest: str) -> Progress:
    """On stderr, where that is a terminal: what it is, how far, how long, and as much of its `now`
    as there is room.
    """
    console = Console(stderr=True)
    room = max(console.width - FIXED - len(longest), READABLE)
    rest = room - len(title)
    return Progress(
        _text("{task.description}", room),
        BarColumn(bar_width=BAR),
        how_far,
        TimeRemainingColumn(elapsed_when_finished=True),
        *([_text("{task.fields[now]}", rest)] if rest >= READABLE else []),
        console=console,
        disable=not console.is_terminal,
    )


def _text(what: str, width: int) -> TextColumn:
    return TextColumn(what, markup=False, table_column=Column(no_wrap=True, max_width=width))
