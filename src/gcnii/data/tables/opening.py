"""What is checked of every file that holds a table, whatever its format."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from gcnii.errors import Problems

# Called with the bytes read so far and the bytes of the file, from 0 on in each pass over it.
Progress: TypeAlias = Callable[[int, int], None]


def no_progress(read: int, size: int) -> None:
    """Show nothing."""


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
