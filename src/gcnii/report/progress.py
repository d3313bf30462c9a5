"""Progress bars, on stderr; there are none where stderr is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gcnii.train import Epoch


@contextmanager
def training_bar(title: str, epochs: int) -> Iterator[Callable[[Epoch], None]]:
    """A callback for `fit`; the bar counts epochs up to `epochs` a run, and jumps when runs stop early."""
    with _progress("losses") as progress:
        task = progress.add_task(title, total=epochs, losses="")

        def show(now: Epoch) -> None:
            progress.update(
                task,
                total=epochs * now.runs,
                completed=now.runs_done * epochs + (now.epoch + 1) * (min(now.runs_now, now.runs - now.runs_done)),
                losses=f"train {now.train_loss:.3f}  val {now.val_loss:.3f}  score {100 * now.val:.1f}",
            )

        yield show


@contextmanager
def counting_bar(title: str, steps: int) -> Iterator[Callable[[str], None]]:
    """A callback that says what the next of `steps` steps is."""
    with _progress("now") as progress:
        task = progress.add_task(title, total=steps, now="")

        def show(now: str) -> None:
            progress.update(task, advance=1, now=now)

        yield show


def _progress(field: str) -> Progress:
    """On stderr, where that is a terminal: what it is, how far, and the task's text of this name."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(f"{{task.fields[{field}]}}", markup=False),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        disable=not console.is_terminal,
    )
