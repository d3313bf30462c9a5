"""Where a measured number comes from: versions of the software, and the commit of this code."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import gcnii

PACKAGES = ("torch", "triton", "torch-geometric", "numpy")


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
    """The commit of this code, marked `-dirty` if files differ; None outside its own repository.

    Git is asked once.  Call this before the work begins: a commit made while a table runs must not
    change what is recorded, because the code that computes the table has been loaded already.
    """
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        # The folder may lie in a repository that is not its own, such as a virtual environment
        # within another project.
        _ask([*git, "ls-files", "--error-unmatch", Path(__file__).name])
        return _ask([*git, "describe", "--always", "--dirty", "--exclude", "*"])
    except (OSError, subprocess.CalledProcessError):
        return None


def _ask(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
