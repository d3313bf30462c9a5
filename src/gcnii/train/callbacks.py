"""Callbacks of `fit`: what they are told, curves as CSV and for TensorBoard, the progress bar."""

from __future__ import annotations

import csv
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TextIO

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

from gcnii.errors import InputError, UsageError, one_line
from gcnii.files import first_bytes, naming, refuse_replacing, user_path

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class EpochMeasures(NamedTuple):
    """What an epoch measured on one run.  Not the test score: nothing may be chosen by it."""

    train_loss: float
    val_loss: float
    val: float


class EpochReport(NamedTuple):
    """One epoch of the runs that are trained together.

    Attributes
    ----------
    epoch : int
        Counts from 0.
    runs_done : int
        Runs that have stopped.
    runs : int
        All runs of the fit.
    measures : dict
        seed → what the epoch measured, for each run that took part in it.
    setting : int
        The place of the runs' settings, where a fit tries several: each has its own report, and
        its own curves in a log.
    settings : dict
        The settings of the model and of the Recipe that these runs are trained with.

    Examples
    --------
    >>> import gcnii
    >>> seen = []
    >>> graph = gcnii.load("csbm", n=60)
    >>> def note(now):
    ...     seen.append(now.epoch)
    >>> result = gcnii.fit(graph, layers=2, epochs=3, callbacks=[note])
    >>> seen
    [0, 1, 2]
    """

    epoch: int
    runs_done: int
    runs: int
    measures: Mapping[int, EpochMeasures]
    setting: int = 0
    settings: Mapping[str, object] = MappingProxyType({})

    @property
    def train_loss(self) -> float:
        """The mean over the runs."""
        return fmean(now.train_loss for now in self.measures.values())

    @property
    def val_loss(self) -> float:
        """The mean over the runs."""
        return fmean(now.val_loss for now in self.measures.values())

    @property
    def val(self) -> float:
        """The mean over the runs of the validation score, in [0, 1]."""
        return fmean(now.val for now in self.measures.values())

    @property
    def prefix(self) -> str:
        """Of the names of its curves: `setting-2/`, and nothing of the first setting."""
        return f"setting-{self.setting}/" if self.setting else ""


Callback = Callable[[EpochReport], object]


class StopTraining(Exception):
    """Raised by a callback to end all training now, as if patience had run out.

    Runs that have begun keep their best weights so far and are finished; runs that have not begun
    are absent from the result; the checkpoint is removed, since nothing is left to resume.  A GPU
    trains up to 64 epochs before it reports them, and these still count.

    An exception and not a return value, so that no lambda stops training by what it happens to
    return.  Its text is logged.  Any other exception of a callback is raised by `fit`, once a
    checkpoint is saved.

    Examples
    --------
    >>> import gcnii
    >>> def enough(now):
    ...     if now.epoch == 1:
    ...         raise gcnii.StopTraining("two epochs are enough")
    >>> result = gcnii.fit(gcnii.load("csbm", n=60), layers=2, epochs=9, callbacks=[enough])
    >>> result.runs[0].epochs
    2
    """


HEADER = ("seed", "epoch", *EpochMeasures._fields)  # as in the curves.csv of a bundle


class CsvLog:
    """A callback that writes a row per epoch and run: seed, epoch, train_loss, val_loss, val.

    Rows are in the file as soon as an epoch is reported.  The file is opened at the first report,
    and an older log of this name is then replaced; any other file is refused.  `fit` closes it.
    Where a fit tries several settings, the second has a file of its own, NAME-setting-1.csv.

    Parameters
    ----------
    path : str or Path
        A .csv file.
    overwrite : bool
        Replace a file that is not a log, too; a file of a bundle is never replaced.

    Examples
    --------
    >>> import gcnii
    >>> from pathlib import Path
    >>> graph = gcnii.load("csbm", n=60)
    >>> result = gcnii.fit(graph, layers=2, epochs=3, callbacks=[gcnii.CsvLog("curves.csv")])
    >>> Path("curves.csv").read_text().splitlines()[0]
    'seed,epoch,train_loss,val_loss,val'
    """

    def __init__(self, path: Path | str, *, overwrite: bool = False):
        self.path, self.overwrite, self.closed = user_path(path), overwrite, False
        self.files: dict[Path, TextIO] = {}

    def __call__(self, now: EpochReport) -> None:
        """Add a row for each run that took part in this epoch."""
        own = f"-{now.prefix[:-1]}" if now.prefix else ""
        path = self.path.with_name(f"{self.path.stem}{own}{self.path.suffix}") if own else self.path
        file = self.files.get(path) or self._open(path)
        rows = ((seed, now.epoch, *measures) for seed, measures in now.measures.items())
        with naming(path):
            csv.writer(file, lineterminator="\n").writerows(rows)
            file.flush()

    def _open(self, path: Path) -> TextIO:
        if self.closed:
            raise UsageError(f"{path} is complete; make a new CsvLog for each fit")
        refuse_replacing(path, is_log, overwrite=self.overwrite)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.files[path] = file = path.open("w", encoding="ascii", newline="")
        except (OSError, ValueError) as error:  # ValueError: of a name that no file can have
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"the log {path} cannot be written: {reason}; choose another name"
            ) from None
        file.write(",".join(HEADER) + "\n")
        return file

    def close(self) -> None:
        """Close the file."""
        self.closed = self.closed or bool(self.files)
        for file in self.files.values():
            file.close()
        self.files.clear()


def is_log(path: Path) -> bool:
    """Whether a file is a log, judged by its first line."""
    return first_bytes(path).partition(b"\n")[0].rstrip() == ",".join(HEADER).encode()


FLUSH = 10  # seconds until a new point can be seen


class TensorBoard:
    """A callback that writes train_loss, val_loss and val of each run, to see with TensorBoard.

    Each seed is a run of its own, in folder/seed-SEED, so that the curves of all seeds share a
    chart; of further settings, in folder/setting-1/seed-SEED. An older log in the folder is hidden
    by the new one.  `fit` closes it.

    Parameters
    ----------
    folder : str or Path

    Examples
    --------
    >>> import gcnii
    >>> from pathlib import Path
    >>> graph = gcnii.load("csbm", n=60)
    >>> result = gcnii.fit(graph, layers=2, epochs=3, callbacks=[gcnii.TensorBoard("logs")])
    >>> [path.name for path in Path("logs").iterdir()]
    ['seed-0']
    """

    def __init__(self, folder: Path | str):
        try:
            import torch.utils.tensorboard  # noqa: F401 - missing: said now, not after an epoch
        except ImportError:
            raise InputError(
                "TensorBoard needs the tensorboard package: pip install 'gcnii[tensorboard]', "
                "or use CsvLog"
            ) from None
        self.folder, self.closed = user_path(folder), False
        if os.path.exists(self.folder) and not self.folder.is_dir():
            raise InputError(f"{self.folder} is a file; give TensorBoard a folder")
        self.writers: dict[tuple[int, int], SummaryWriter] = {}

    def __call__(self, now: EpochReport) -> None:
        """Add a point to the curves of each run that took part in this epoch."""
        for setting, seed in list(self.writers):
            if setting == now.setting and seed not in now.measures:  # it has stopped
                self.writers.pop((setting, seed)).close()
        for seed, measures in now.measures.items():
            writer = self.writers.get((now.setting, seed)) or self._open(now, seed)
            for tag, value in measures._asdict().items():
                writer.add_scalar(tag, value, now.epoch)

    def _open(self, now: EpochReport, seed: int) -> SummaryWriter:
        from torch.utils.tensorboard import SummaryWriter

        if self.closed:
            raise UsageError(f"{self.folder} is complete; make a new TensorBoard for each fit")
        place = str(self.folder / f"{now.prefix}seed-{seed}")
        # purge_step: what an earlier log has from this epoch on is no longer shown
        try:
            writer = SummaryWriter(place, purge_step=now.epoch, flush_secs=FLUSH)
        except (OSError, ValueError) as error:  # ValueError: of a name that no folder can have
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"the folder {place} cannot be written to: {reason}; give TensorBoard another"
            ) from None
        self.writers[now.setting, seed] = writer
        return writer

    def close(self) -> None:
        """Write what is left, and close the files."""
        self.closed = self.closed or bool(self.writers)
        for writer in self.writers.values():
            writer.close()
        self.writers.clear()


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
    """Print a plain line on stderr now and then in this context, with what `now` returns.

    For where there is no bar, in a pipe or a file: nobody should wait for minutes without a word.
    """

    def say() -> None:
        print(f"gcnii: {one_line(now())}", file=sys.stderr, flush=True)

    with nullcontext() if hidden else every(EVERY, say):
        yield


@contextmanager
def every(seconds: float, work: Callable[[], object]) -> Iterator[None]:
    """Repeat this in a thread, at an interval of `seconds`, within this context; ignore its errors.

    A database may be away for a moment, or a pipe closed.
    """
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(seconds):
            with suppress(Exception):
                work()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
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
    """Text of a bar on one line, with control characters escaped: names come from the user."""

    def render(self, task: Task) -> Text:
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
