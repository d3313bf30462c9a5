"""Where a result comes from: versions of the software, and the state of git; no torch."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import gcnii

PATIENCE = 10  # seconds, in a large repository
PACKAGES = ("torch", "triton", "torch-geometric", "numpy")
ARCHIVED = "$Format:%H$"  # `git archive` writes the commit here, because of .gitattributes


@cache
def versions() -> dict[str, str | None]:
    """package → version; None where it is not installed."""

    def version(package: str) -> str | None:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return None

    own = {"gcnii": gcnii.__version__, "python": ".".join(map(str, sys.version_info[:3]))}
    return own | {package: version(package) for package in PACKAGES}


@cache
def commit() -> str | None:
    """The commit of this code, marked `-dirty` if files in src/ differ; None if it is not known.

    It is known in the code's own repository, and in an archive that `git archive` made of it.
    Git is asked once.  Call this before the work begins: a commit made while a table runs must not
    change what is recorded, because the code that computes the table has been loaded already.
    """
    here = Path(__file__)
    # The folder may lie in a repository that is not its own, such as a virtual environment within
    # another project.
    if not _git(here.parent, "ls-files", "--error-unmatch", here.name):
        return None if ARCHIVED.startswith("$") else ARCHIVED[:7]
    source = Path(gcnii.__file__).parents[1]
    found = _git(source, "rev-parse", "--short=7", "HEAD")
    # Results that have just been written do not make other code of it.
    unchanged = _git(source, "status", "--porcelain", ".") == ""
    return found if unchanged or found is None else f"{found}-dirty"


def git_state(folder: Path) -> str | None:
    """The commit of the repository around a folder, marked `-dirty` if files differ; else None."""
    return _git(folder, "describe", "--always", "--abbrev=40", "--dirty", "--exclude", "*")


def _git(folder: Path, *words: str) -> str | None:
    # A repository can name a program as its fsmonitor, and git would run it.
    return ask(["git", "-C", str(folder), "-c", "core.fsmonitor=false", *words])


def ask(command: list[str]) -> str | None:
    """What a program prints; None if it is not there, fails, or takes too long."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
        return run.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
