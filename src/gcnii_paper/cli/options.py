"""Options and refusals that the commands of `gcnii reproduce` share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcnii.errors import InputError

Jobs = Annotated[
    int,
    Parameter(
        help="Number of processes that work in parallel; pays on a GPU if the trainings are small."
    ),
]


def refuse_not_a_folder(path: Path, command: str) -> None:
    """Raise InputError, naming the command that writes such a folder, if `path` is not one."""
    if not path.is_dir():
        raise InputError(f"{path} is not a folder; give the one that `{command}` wrote")


@contextmanager
def says_what_is_kept(words: str) -> Iterator[None]:
    """On Ctrl-C, print `words` and exit with code 1."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"gcnii: stopped; {words}", file=sys.stderr)
        sys.exit(1)
