"""What is checked of every file that holds a table, whatever its format."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TypeAlias

from gcnii.errors import DataError, Problems

# Called with the bytes read so far and the bytes of the file, from 0 on in each pass over it.
Progress: TypeAlias = Callable[[int, int], None]


# Called with the name of the file as well.
Watcher: TypeAlias = Callable[[str, int, int], None]

LARGE = 10_000_000  # bytes: a smaller file is read before anyone asks
ALWAYS_READ = 5_000_000  # cells of a table of nodes; each takes about 40 bytes while it is read
MOST_EMPTY = 20  # times the cells that are given
WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(show: Watcher) -> Iterator[None]:
    """Tell `show` how far the reading of large files is, for as long as the block lasts."""
    token = WATCHER.set(show)
    try:
        yield
    finally:
        WATCHER.reset(token)


def no_progress(read: int, size: int) -> None:
    """Show nothing."""


def progress_of(path: Path) -> Progress:
    """What tells the watcher about this file."""
    show = WATCHER.get()
    return partial(show, path.name) if show and path.stat().st_size >= LARGE else no_progress


def is_file(path: Path, problems: Problems) -> bool:
    """Whether a path can be read as a file; a pipe or a device might never end."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            path.open("rb").close()
            return True
        reason = "Is a directory" if stat.S_ISDIR(mode) else "Is not a regular file"
    except OSError as error:
        reason = error.strerror or type(error).__name__
    problems.add(f"cannot read {path} ({reason}); make it a readable file")
    return False


def note_repeated_names(name: str, header: Iterable[str], problems: Problems) -> None:
    """Note the names that several columns have."""
    for column, count in Counter(header).items():
        if count > 1:
            problems.add(f"{name} has {count} columns called {column!r}; rename or remove one")


def refuse_empty_cells(owner: str, rows: int, columns: int, given: int) -> None:
    """Raise DataError for a table that has hardly any of its cells, and would fill the memory."""
    if rows * columns > max(ALWAYS_READ, given * MOST_EMPTY):
        raise DataError(
            f"{owner} have {columns:,} attributes, but {given / rows:.2g} of them each on average: "
            f"a table of {rows:,} × {columns:,} cells would be nearly empty; keep fewer, or "
            "give a sparse matrix of features (features.npz beside nodes.csv; X in Python)"
        )
